"""Random schedules of random programs: the compiled trace touches what the interpreter touches.

Vectors are taken apart into their elements, and the order within a statement is left open.
"""

from collections import Counter

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schedule.programs import programs
from schedule.test_random import a_random_step

from mlc_lab.backend.interp import interpret
from mlc_lab.backend.interp_access import AccessLog
from mlc_lab.ir import dtype as dt
from mlc_lab.lower import lower
from mlc_lab.observe.access import accesses
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.instrument import only_function
from mlc_lab.observe.measure import random_arrays
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

CACHES = "512:2:32, 2K:4:32"


def touched_by_machine(trace):
    """(buffer, element, write) -> how often, from the compiled program."""
    found = Counter()
    for b, e, n, w in zip(trace.buffer, trace.element, trace.nbytes, trace.write, strict=True):
        place = trace.places[b]
        for lane in range(int(n) // dt.bytes_of(dt.element_of(place.dtype))):
            found[place.name, int(e) + lane, bool(w)] += 1
    return found


def touched_by_interpreter(mod, arrays):
    log = AccessLog()
    interpret(only_function(mod)[1], *[a.copy() for a in arrays], record=log)
    return Counter((a.buffer.name, a.index, a.write) for a in log.accesses)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.data())
def test_the_compiled_trace_touches_what_the_interpreter_touches(program, data):
    sch = Schedule(from_source(program.text))
    for _ in range(data.draw(st.integers(0, 5))):
        a_random_step(data.draw, sch)
    arrays = random_arrays(only_function(sch.mod)[1])
    trace = accesses(sch, registers=False, threads=2, arrays=arrays, limit=200_000)
    assert trace.total == len(trace)
    assert touched_by_machine(trace) == touched_by_interpreter(lower(sch.mod), arrays)
    # And the counts are those of the trace.
    counts = count_accesses(sch, CACHES, registers=False, arrays=arrays)
    assert counts.levels == trace.simulate(CACHES).counts
    assert counts.reads == np.sum(~trace.write) and counts.writes == np.sum(trace.write)
