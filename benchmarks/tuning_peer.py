"""TVM's search on one program, in a process of its own: a request on the command line.

Called by tuning.py as `python tuning_peer.py REQUEST`, where REQUEST is JSON: the program's `text`
in the dialect of TVM 0.18, `trials`, `seed`, `target`, `work_dir`, and whether the `course`'s space
is to be used. The last line printed is JSON: `seconds` of the search and `time` of its best kernel.
"""

import json
import sys
import time

import programs


def main():
    """Search, then time the best kernel."""
    import numpy as np
    import tvm
    from tvm import s_tir
    from tvm.s_tir import meta_schedule as ms

    request = json.loads(sys.argv[1])
    s_tir.Schedule.get_block = s_tir.Schedule.get_sblock
    text = request["text"].replace("T.block(", "T.sblock(")
    text = text.replace('"tir.noalias"', '"tirx.noalias"')
    text = text.replace("@T.prim_func", "@T.prim_func(s_tir=True)")
    text = text.replace("T.alloc_buffer", "T.sblock_alloc_buffer")
    func = tvm.script.from_source("# from tvm.script import tirx as T\n" + text)
    target = tvm.target.Target(request["target"])
    options = {}
    if request["course"]:
        options = {"space": programs.stochastic_schedule_mm, "strategy": "replay-trace"}
    start = time.perf_counter()
    database = ms.tune_tir(func, target, request["work_dir"], request["trials"],
                           num_trials_per_iter=64, seed=request["seed"], **options)
    took = time.perf_counter() - start
    sch = ms.tir_integration.compile_tir(database, func, target)
    module = tvm.compile(sch.mod, target=target)
    generator = np.random.default_rng(0)
    shapes = [tuple(map(int, func.buffer_map[p].shape)) for p in func.params]
    arrays = [tvm.runtime.tensor(generator.uniform(-1, 1, s).astype("float32")) for s in shapes]
    entry = sch.mod.get_global_vars()[0].name_hint
    evaluator = module.jit().time_evaluator(entry, tvm.cpu(), number=1, repeat=15, min_repeat_ms=3)
    print("\n" + json.dumps({"seconds": took, "time": min(evaluator(*arrays).results)}))


if __name__ == "__main__":
    main()
