"""Programs of torch that write to views, imported, against torch.

A program is a list of steps on a growing list of tensors: views of them, writes to them, new values
of them. It is run by torch, exported, and traced by torch.fx; what the module gives, inputs that
were changed included, must be what torch gives. Torch is imported with this file, so that the first
case of a worker has no less time than the others.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
import torch._dynamo

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx

from .harness import Draw, counts, note

SHAPES = ((4, 4), (2, 3, 4), (6,), (3, 1, 4), (2, 6))


def case(draw: Draw) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(draw.integer(0, 3))
    inputs = [torch.randn(draw.choice(SHAPES)) for _ in range(draw.integer(1, 2))]
    steps = program(draw, inputs)
    note("inputs " + ", ".join(str(tuple(t.shape)) for t in inputs))
    for k, (_, text) in enumerate(steps):
        note(f"v{len(inputs) + k} = {text}")
    given = [t.clone() for t in inputs]
    want = [t.clone() for t in run(steps, given)]
    how = draw.choice(["export", "export", "fx"])
    try:
        traced = traced_by(how, steps, inputs)
    except Exception:
        counts[f"{how}, not traced by torch"] += 1
        return
    try:
        if how == "export":
            names, got, want = by_export(traced, inputs, want)
        else:
            names, got, want, given = by_fx(traced, inputs)
    except ValueError as error:
        if "is not translated" not in str(error):
            raise
        counts[f"{how}, refused"] += 1
        return
    counts[f"{how}, {len(names)} changed inputs"] += 1
    for name, value in zip(names, got[len(want):]):
        place = ["x", "y"].index(name)
        np.testing.assert_allclose(value, given[place].numpy(), rtol=1e-5, atol=1e-6)
    assert len(got) == len(want) + len(names), (len(got), len(want), names)
    for k, (g, w) in enumerate(zip(got, want)):
        assert g.shape == tuple(w.shape), (k, g.shape, w.shape)
        np.testing.assert_allclose(g, w.numpy(), rtol=1e-5, atol=1e-6, err_msg=f"result {k}")
    # an input that was changed and is neither among the results nor named would be lost
    for name, now, before in zip("xy", given, inputs):
        if name not in names and not torch.equal(now, before):
            assert any(np.array_equal(g, now.numpy()) for g in got), f"{name} was changed"


def run(steps: list, inputs: list) -> list:
    """All values of a program; the inputs are written to."""
    values = list(inputs)
    for step, _ in steps:
        values.append(step(values))
    return values


def module_of(steps: list, count: int) -> Any:
    if count == 1:
        class Program(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return tuple(run(steps, [x])[1:])
    else:
        class Program(torch.nn.Module):
            def forward(self, x: Any, y: Any) -> Any:
                return tuple(run(steps, [x, y])[2:])
    return Program()


def results(mod: Any, inputs: list) -> tuple[list[str], list[np.ndarray]]:
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    out = vm["main"](*[tvm.nd.array(t.numpy()) for t in inputs])
    return list((mod["main"].attrs or {}).get("changed", ())), [o.numpy() for o in out]


def traced_by(how: str, steps: list, inputs: list) -> Any:
    """What torch makes of a program; it cannot trace all."""
    module = module_of(steps, len(inputs))
    if how == "fx":
        return torch.fx.symbolic_trace(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(module, tuple(t.clone() for t in inputs))


def by_export(exported: Any, inputs: list, want: list) -> Any:
    names, got = results(from_exported_program(exported), inputs)
    return names, got, want[len(inputs):]


def by_fx(traced: Any, inputs: list) -> Any:
    """The traced module is its own oracle: tracing makes `a += 1` another value of a."""
    given = [t.clone() for t in inputs]
    want = [t.clone() for t in traced(*given)]
    names, got = results(from_fx(traced, [(tuple(t.shape), "float32") for t in inputs]), inputs)
    return names, got, want, given


# ------------------------------------------------------------------------------- steps


def program(draw: Draw, inputs: list) -> list:
    """Steps that torch can run."""
    steps: list = []
    values = [t.clone() for t in inputs]
    for _ in range(draw.integer(1, 7)):
        step, text = one_step(draw, values)
        probe = run(steps, [t.clone() for t in inputs])
        try:
            probe.append(step(probe))
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue  # torch has no such program
        if not isinstance(probe[-1], torch.Tensor) or probe[-1].numel() > 200:
            continue
        steps.append((step, text))
        values = probe
    return steps


def one_step(draw: Draw, values: list) -> tuple[Any, str]:
    k = draw.integer(0, len(values) - 1)
    kind = draw.choice([view, write, write, value])
    call, text = kind(draw, values, k)
    return call, text


def bounds(draw: Draw, size: int) -> slice:
    low = draw.integer(0, max(size - 1, 0))
    return slice(low or None, draw.choice([None, draw.integer(low, size), -1]),
                 draw.choice([None, 1, 2]))


def view(draw: Draw, values: list, k: int) -> tuple[Any, str]:
    """A view, or what may be one."""
    shape = values[k].shape
    count = len(shape)
    dim = draw.integer(-count, count - 1) if count else 0
    size = shape[dim] if count else 1
    name = draw.choice(["slice", "select", "t", "view", "unsqueeze", "split", "chunk", "unbind",
                        "narrow", "diagonal", "reshape", "contiguous", "flatten", "squeeze",
                        "permute", "as_strided", "unfold", "detach", "expand", "item"])
    n = draw.integer(0, max(size - 1, 0))
    other = draw.integer(0, max(count - 1, 0))
    cut = bounds(draw, size)
    order = draw.permutation(list(range(count)))
    calls = {
        "slice": lambda x: x[(slice(None),) * (dim % max(count, 1)) + (cut,)],
        "select": lambda x: x.select(dim, n),
        "t": lambda x: x.transpose(dim, other),
        "view": lambda x: x.view(-1), "reshape": lambda x: x.reshape(-1),
        "unsqueeze": lambda x: x.unsqueeze(dim), "squeeze": lambda x: x.squeeze(dim),
        "split": lambda x: x.split(max(n, 1), dim)[-1],
        "chunk": lambda x: x.chunk(2, dim)[0], "unbind": lambda x: x.unbind(dim)[n],
        "narrow": lambda x: x.narrow(dim, n, size - n),
        "diagonal": lambda x: x.diagonal(draw_offset, dim, other),
        "contiguous": lambda x: x.contiguous(), "flatten": lambda x: x.flatten(),
        "permute": lambda x: x.permute(order), "detach": lambda x: x.detach(),
        "as_strided": lambda x: x.as_strided((2, 2), (1, 2), 1),
        "unfold": lambda x: x.unfold(dim, 2, 2), "expand": lambda x: x.expand(2, *x.shape),
        "item": lambda x: x[..., None, n],
    }
    draw_offset = draw.integer(-1, 1)
    fn = calls[name]
    detail = {"slice": (dim, cut), "select": (dim, n), "t": (dim, other), "split": (n, dim),
              "unbind": (dim, n), "narrow": (dim, n), "permute": order, "item": n,
              "diagonal": (draw_offset, dim, other)}.get(name, dim)
    return lambda v: fn(v[k]), f"v{k}.{name} {detail}"


def write(draw: Draw, values: list, k: int) -> tuple[Any, str]:
    """A write; the value is what was written to."""
    shape = tuple(values[k].shape)
    other = draw.integer(0, len(values) - 1)
    name = draw.choice(["add", "mul", "fill", "zero", "set slice", "set item", "set mask",
                        "set mask values", "copy", "masked_fill", "index_fill", "set index",
                        "index_add", "clamp", "relu", "set two", "sub other", "out"])
    at = tuple(bounds(draw, s) for s in shape[:draw.integer(0, len(shape))])
    n = draw.integer(0, max(shape[0] - 1, 0)) if shape else 0
    number = draw.integer(-3, 3)

    def fn(v: list) -> Any:
        x = v[k]
        places = torch.tensor([n, 0])
        if name == "add":
            x.add_(number)
        elif name == "mul":
            x *= 2
        elif name == "fill":
            x.fill_(number)
        elif name == "zero":
            x.zero_()
        elif name == "set slice":
            x[at] = number
        elif name == "set item":
            x[n] = v[other] if v[other].shape == x[n].shape else number
        elif name == "set mask":
            x[x > 0] = number
        elif name == "set mask values":
            x[x > 0] = x[x > 0] * 2
        elif name == "copy":
            x.copy_(v[other])
        elif name == "masked_fill":
            x.masked_fill_(x < 0, number)
        elif name == "index_fill":
            x.index_fill_(0, places[:1], number)
        elif name == "set index":
            x[..., places[:1]] = number
        elif name == "index_add":
            x.index_add_(0, places, torch.ones(2, *x.shape[1:]))
        elif name == "clamp":
            x.clamp_(-0.5, 0.5)
        elif name == "relu":
            torch.nn.functional.relu(x, inplace=True)
        elif name == "set two":
            x[places[:1], 0] = number
        elif name == "sub other":
            x.sub_(v[other])
        elif name == "out":
            torch.add(x, 1, out=x)
        return x

    return fn, f"v{k} {name} {at if 'slice' in name else n} {number} v{other}"


def value(draw: Draw, values: list, k: int) -> tuple[Any, str]:
    """A new value, with memory of its own."""
    name = draw.choice(["clone", "add", "sum", "other", "cat"])
    other = draw.integer(0, len(values) - 1)
    calls = {"clone": lambda v: v[k].clone(), "add": lambda v: v[k] + 1,
             "sum": lambda v: v[k].sum(-1), "other": lambda v: v[k] * v[other],
             "cat": lambda v: torch.cat([v[k], v[other]], 0)}
    return calls[name], f"{name} v{k} v{other}"
