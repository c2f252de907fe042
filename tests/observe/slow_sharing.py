"""What threads do to each other's cache lines, as a reader would count it: the reference. Slow."""


def division(extent, threads):
    """The iterations of each thread: the pool cuts a loop into at most four chunks a thread, and
    each thread begins with those that are its own by position."""
    chunks = min(extent, 4 * threads)
    taken, own = set(), []
    for thread in range(threads):
        first, past = thread * chunks // threads, (thread + 1) * chunks // threads
        mine = [c for c in range(first, past) if c not in taken]
        taken.update(mine)
        own.append([i for c in mine
                    for i in range(c * extent // chunks, (c + 1) * extent // chunks)])
    return [iterations for iterations in own if iterations]


def in_step(threads):
    """The statements of threads, one of each in turn: pairs of a thread and a statement."""
    longest = max(map(len, threads), default=0)
    for number in range(longest):
        for thread, statements in enumerate(threads):
            if number < len(statements):
                yield thread, statements[number]


def sharing(runs, threads):
    """(written lines, shared lines, moves by line) of runs of parallel loops.

    A run is a list of iterations, an iteration a list of statements, a statement a list of (line,
    write). Each line is held by the threads that have a copy, and perhaps owned by one that wrote.
    """
    written, shared, moves = set(), set(), {}
    for iterations in runs:
        has = [[s for i in mine for s in iterations[i]]
               for mine in division(len(iterations), threads)]
        users, writers, owner, copies = {}, {}, {}, {}
        for thread, statement in in_step(has):
            for line, write in statement:
                users.setdefault(line, set()).add(thread)
                if write:
                    writers.setdefault(line, set()).add(thread)
                held = copies.setdefault(line, set())
                if thread not in held and line in owner:
                    moves[line] = moves.get(line, 0) + 1
                if write:
                    owner[line], copies[line] = thread, {thread}
                else:
                    held.add(thread)
        written |= set(writers)
        shared |= {line for line in writers if len(users[line]) > 1}
    return written, shared, moves
