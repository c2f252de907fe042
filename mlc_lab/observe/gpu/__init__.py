"""Kernels for a GPU, run in step: exact counts of what their warps ask of memory, races, a time.

    counts.py       `count_gpu`: counts what the warps of a program do
    results.py      the counts, as objects with a table
    races.py        `find_races`: threads that clash, barriers that some threads miss
    threads.py      `record_threads`: what the threads of one block do, in time order
    steps.py        counts as part of a recording of a schedule
    model.py        the time of a model from the counts
    lockstep.py     all threads of some blocks, statement by statement; expressions.py its values;
                    unrolled.py which loops count as unrolled; repeats.py those whose iterations do
                    alike; needed.py the numbers that have to be computed
    watching.py     what a run tells of: threads, memory, accesses
    sampled.py      counts from the blocks of one multiprocessor
    browser.py      `in_browser`: kernels as WGSL, with all that a page needs to run them
    launching.py    runs the host's function of a program, which launches the kernels
    requests.py     what a warp asks of memory at once: 32-byte sectors, bank conflicts
    occupancy.py    how many blocks a multiprocessor holds, and what limits it
    caches.py       the sectors in simulated caches
"""
