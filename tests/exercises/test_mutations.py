"""Mutations of reference answers never crash a check, and are equivalent only where they are.

A mutation drops, swaps, repeats or changes lines of a text, instructions of a trace or a record,
values of a prediction, or parts of the syntax tree of a function, which runs confined as always.
Where a row "equivalent" has full marks, the answer is run once more beside the right program, on
inputs that the check has not seen. More than the suite tries:

    python tests/exercises/test_mutations.py --count 10000 03.2 04.1
"""

import argparse
import ast
import copy
import json
import random
import re
import signal
import sys
import time

import numpy as np
import pytest

from mlc_lab import exercises
from mlc_lab.backend.interp import interpret
from mlc_lab.exercises.answers import read
from mlc_lab.exercises.checks.equivalent import program_of, run_compiled
from mlc_lab.exercises.checks.models import Model, model_of, random_inputs, registered
from mlc_lab.exercises.judging import marks
from mlc_lab.observe.inner_loop import statements_run
from mlc_lab.observe.measure import only_function, random_arrays

#: seeds of inputs from here on are none that a check takes
FRESH = 1_000_003
#: statements of a program that is interpreted; one with more is compiled
INTERPRETED = 150_000
#: mutations of each exercise in the suite
TRIED = 4


def mutated(rng, exercise, answer, sch=None):
    """The answer with one to three changes; of a schedule sometimes its trace instead of its text.

    `sch` is the schedule that the answer made."""
    if exercise.kind == "prediction":
        return _prediction(rng, answer)
    if exercise.kind == "function":
        return _function(rng, answer)
    if exercise.kind == "record":
        return _record(rng, answer)
    if sch is not None and rng.random() < 0.25:
        answer = {"trace": copy.deepcopy(sch.trace.as_json())}
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        answer = _trace(rng, answer) if isinstance(answer, dict) else _text(rng, answer)
    return answer


def _function(rng, text):
    """Python whose tree has one to three changes, which still is Python."""
    tree = ast.parse(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        texts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
                 for part in ast.walk(node)}
        change, node = rng.choice([(how, node) for node in ast.walk(tree) if id(node) not in texts
                                   for how in _CHANGES.get(type(node), ())])
        change(rng, node)
    return ast.unparse(ast.fix_missing_locations(tree))


def _other_constant(rng, node):
    old = node.value
    near = [old + 1, old - 1, -old] if type(old) in (int, float) else []
    node.value = rng.choice([0, 1, -1, 2, None, "", True, 0.5, float("inf"), 10 ** 12, *near])


def _other_operator(rng, node):
    node.op = rng.choice([ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div])()


def _other_comparison(rng, node):
    node.ops[0] = rng.choice([ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq])()


def _without_a_statement(rng, node):
    at = rng.randrange(len(node.body))
    node.body[at] = ast.Pass()


def _statements_swapped(rng, node):
    a, b = rng.randrange(len(node.body)), rng.randrange(len(node.body))
    node.body[a], node.body[b] = node.body[b], node.body[a]


def _arguments_swapped(rng, node):
    rng.shuffle(node.args)


def _without_an_argument(rng, node):
    if node.args:
        del node.args[rng.randrange(len(node.args))]


def _other_name(rng, node):
    node.id = rng.choice([node.id, "None", "factors", "n", "seed", "mod", "new", "f", "len"])


_BODIES = (_without_a_statement, _statements_swapped)
#: by the kind of a node how it is changed
_CHANGES = {
    ast.Constant: (_other_constant,), ast.BinOp: (_other_operator,),
    ast.Compare: (_other_comparison,), ast.Call: (_arguments_swapped, _without_an_argument),
    ast.Name: (_other_name,), ast.FunctionDef: _BODIES, ast.For: _BODIES, ast.If: _BODIES,
    ast.ClassDef: _BODIES}


def _record(rng, text):
    """A record with a changed trace, or with a changed text."""
    if rng.random() < 0.3:
        return _text(rng, text)
    key, measured, more = json.loads(text)
    measured[0] = _trace(rng, {"trace": measured[0]})["trace"]
    return json.dumps([key, measured, more])


def _text(rng, text):
    lines = text.split("\n")
    full = [n for n, line in enumerate(lines) if line.strip()]
    if not full:
        return text
    at, other = rng.choice(full), rng.choice(full)
    how = rng.choice(["drop", "swap", "repeat", "number", "number", "number", "word", "word",
                      "operator"])
    if how == "drop":
        del lines[at]
    elif how == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif how == "repeat":
        lines.insert(other, lines[at])
    elif how == "number":
        _replace(rng, lines, r"(?<![\w.])\d+", lambda old: str(rng.choice(
            [0, 1, 2, 3, 7, 16, int(old) + 1, int(old) - 1, 2 * int(old), 10 ** 12])))
    elif how == "word":
        words = sorted(set(re.findall(r"[A-Za-z_]\w*", text)))
        _replace(rng, lines, r"[A-Za-z_]\w*", lambda old: rng.choice(words))
    else:
        _replace(rng, lines, r"[-+*]|//", lambda old: rng.choice(["+", "-", "*", "//", "%"]))
    return "\n".join(lines)


def _replace(rng, lines, pattern, new):
    """Replace one place, of all lines, where the pattern is."""
    places = [(n, m) for n, line in enumerate(lines) for m in re.finditer(pattern, line)]
    if places:
        n, m = rng.choice(places)
        lines[n] = lines[n][:m.start()] + new(m[0]) + lines[n][m.end():]


def _trace(rng, answer):
    steps = answer["trace"]
    places = list(_places(steps))
    how = rng.choice(["drop", "swap", "value", "value"])
    inner = steps[0] if isinstance(steps, list) and steps and isinstance(steps[0], list) else steps
    if how == "drop" and inner:
        del inner[rng.randrange(len(inner))]
    elif how == "swap" and inner:
        a, b = rng.randrange(len(inner)), rng.randrange(len(inner))
        inner[a], inner[b] = inner[b], inner[a]
    elif places:
        holder, key = rng.choice(places)
        holder[key] = rng.choice([0, 1, -3, 16, 10 ** 12, None, "b0", "l2", "C", [], 0.5])
    return answer


def _places(value):
    """Each (list, index) of a value of a tree of lists that is no list itself."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            if isinstance(item, (list, dict)):
                yield from _places(item)
            else:
                yield value, n


def _prediction(rng, answer):
    if not isinstance(answer, dict):
        return rng.choice([answer, None, "", [], -1, 10 ** 30, [answer], float("nan")])
    answer = copy.deepcopy(answer)
    name = rng.choice(sorted(answer))
    old = answer[name]
    if isinstance(old, list):
        rng.shuffle(old)
        if rng.random() < 0.5 and old:
            old.pop()
    else:
        answer[name] = rng.choice([None, "", 0, -1, 1.5, 10 ** 30, float("inf"), old, [old]])
    return answer


def problem_of(variant, answer, rng):
    """What is wrong with the marks of an answer, or nothing; raises what a check raises."""
    found = marks(variant, answer)
    if not 0 <= found.points <= found.of == variant.points:
        return f"{found.points} points of {found.of}"
    if found.error is not None and (found.points or not found.error["message"]):
        return f"an answer that is not read: {found.error}, {found.points} points"
    if not any(row.kind == "equivalent" and row.passed for row in found.rows):
        return ""
    if variant.exercise.kind == "function":
        return ""  # nothing of it is run here
    have, right = read(variant, answer).mod, program_of(variant)
    for given, expected in zip(*_both(variant, have, right, rng.randrange(FRESH, 2 * FRESH))):
        # sums of float32 in another order; all else is equal to the bit
        if not np.allclose(given.astype("float64"), expected.astype("float64"), rtol=2e-3,
                           atol=2e-3 if expected.dtype.kind == "f" else 0, equal_nan=True):
            return "it is told to compute the same, and does not"
    return ""


def _both(variant, have, right, seed):
    """What both programs give for the same new inputs."""
    if model_of(right) is not None:
        arrays = random_inputs(right, seed)
        with registered(variant.library):
            return Model(have)(arrays), Model(right)(arrays)
    func = only_function(right)[1]
    names = {d.name for b in func.buffer_map.values() for d in b.shape if hasattr(d, "name")}
    sizes = {name: 4 + seed % 7 + n for n, name in enumerate(sorted(names))}
    arrays = random_arrays(func, sizes, seed)
    small = statements_run(right, sizes) <= INTERPRETED
    out = []
    for mod in (have, right):
        if small:
            copies = [a.copy() for a in arrays]
            interpret(mod, *copies, func_name=only_function(mod)[0])
        else:
            copies = run_compiled(mod, arrays)
        out.append(copies)
    return out


def drawn(exercise, rng):
    """A variant of an exercise, and a mutation of its reference."""
    variant = exercise.variant(rng.randrange(8))
    sch = read(variant, variant.reference).sch if exercise.kind == "schedule" else None
    return variant, mutated(rng, exercise, variant.reference, sch)


def told(variant, answer, rng):
    """What is wrong with the marks of an answer, where a check raises too; or nothing."""
    try:
        return problem_of(variant, answer, rng)
    except Exception as error:  # this is what must not be
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("exercise", exercises.catalogue(), ids=lambda e: e.id)
def test_mutations_of_the_reference_are_marked_as_what_they_are(exercise):
    rng = random.Random(exercise.id)
    for _ in range(1 if exercise.kind == "function" else TRIED):  # each is a process
        variant, answer = drawn(exercise, rng)
        problem = told(variant, answer, rng)
        assert not problem, f"{problem}\nvariant {variant.seed}\n{answer}"


class _Late(BaseException):
    """A check took too long."""


def _late(*_):
    raise _Late


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ids", nargs="*", help="exercises, as 03.2; by default all")
    parser.add_argument("--count", type=int, default=1000, help="mutations in all")
    parser.add_argument("--first", type=int, default=0, help="number of the first: each mutation "
                        "follows from its number alone")
    parser.add_argument("--seconds", type=int, default=20, help="of the processor, for one answer")
    args = parser.parse_args()
    chosen = [e for e in exercises.catalogue() if not args.ids or e.id in args.ids]
    bad, start = 0, time.time()
    signal.signal(signal.SIGPROF, _late)  # a busy machine stretches all other times
    signal.signal(signal.SIGALRM, _late)  # and who waits for ever uses no processor
    for number in range(args.first, args.first + args.count):
        exercise, rng = chosen[number % len(chosen)], random.Random(number)
        variant, answer = drawn(exercise, rng)
        signal.setitimer(signal.ITIMER_PROF, args.seconds)
        signal.alarm(20 * args.seconds)
        try:
            problem = told(variant, answer, rng)
        except _Late:
            problem = f"more than {args.seconds} s"
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        if problem:
            bad += 1
            print(f"{number}: {exercise.id} {variant!r}: {problem}\n{answer}\n", flush=True)
        done = number + 1 - args.first
        if done % 200 == 0:
            print(f"{done} mutations, {bad} problems, {time.time() - start:.0f} s", flush=True)
    print(f"{args.count} mutations, {bad} problems, {time.time() - start:.0f} s")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
