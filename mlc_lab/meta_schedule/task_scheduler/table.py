"""The summary table of a search, in the course's form."""

from __future__ import annotations

from typing import Any, Sequence

from ...target.gpus import gpu_of

HEAD = ("ID", "Name", "FLOP", "Weight", "Speed (GFLOPS)", "Latency (us)",
        "Weighted Latency (us)", "Trials", "Done")


def rows(tasks: Sequence[Any]) -> list[tuple]:
    """One tuple of texts for each task, in the order of HEAD."""
    out = []
    for number, task in enumerate(tasks):
        best, flop = task.best_time, task.context.flop
        if best is None:
            speed = latency = weighted = "N/A"
        else:
            speed = f"{flop / best / 1e9:.4f}" if flop and best else "N/A"
            latency = f"{best * 1e6:.4f}"
            weighted = f"{best * 1e6 * task.weight:.4f}"
        out.append((str(number), task.context.task_name, str(int(flop)), f"{task.weight:g}", speed,
                    latency, weighted, str(task.trials), "Y" if task.done else ""))
    return out


def text(tasks: Sequence[Any]) -> str:
    """The table with its totals."""
    lines = [HEAD, *rows(tasks)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(HEAD))]
    made = [" | ".join(f"{cell:>{w}}" for cell, w in zip(line, widths)) + " |" for line in lines]
    rule = "-" * len(made[0])
    latency = sum(t.best_time * 1e6 * t.weight for t in tasks if t.best_time is not None)
    return "\n".join([made[0], rule, *made[1:], rule,
                      f"Total trials: {sum(t.trials for t in tasks)}",
                      f"Total latency (us): {latency:.6g}", *_whose(tasks)])


def _whose(tasks: Sequence[Any]) -> list[str]:
    """A line that says whose times these are, where they were not measured."""
    gpus = dict.fromkeys(gpu_of(t.context.target).name for t in tasks if t.modelled)
    if not gpus:
        return []
    which = "" if all(t.modelled for t in tasks) else " of tasks for a GPU"
    return [f"Latencies{which} are by the model of {', '.join(gpus)}, not measured: the device is "
            "simulated here"]
