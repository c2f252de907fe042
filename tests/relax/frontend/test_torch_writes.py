"""Programs of torch that write to tensors: views, masks and indices, inputs and buffers."""

import io
import operator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relax.frontend.test_torch import run

from mlc_lab import relax, tir
from mlc_lab.relax.frontend import detach_params
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx

F = torch.nn.functional


def model(fn, **buffers):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in buffers.items():
                self.register_buffer(name, value.clone())

        def forward(self, x):
            return fn(self, x) if buffers else fn(x)

    return Model()


def exported(fn, x, **buffers):
    return torch.export.export(model(fn, **buffers), (x.clone(),))


def same(got, want):
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == tuple(w.shape) and str(w.dtype).endswith(str(g.dtype))
        np.testing.assert_allclose(g, w.detach().numpy(), rtol=1e-5, atol=1e-6)


def changed(mod):
    return list((mod["main"].attrs or {}).get("changed", ()))


def parts(x):
    z = x * 1
    z[1:3, 2:4] = 1
    z[-1] = z[0]
    z[..., -1] = 0
    z[:, None, 1] += 2
    z[1:][:, ::2][0] = 4
    return z


def stale_views(x):
    z = x.clone()
    v, w = z[0], z.view(-1)[2:6]
    v.add_(1)
    w.zero_()
    return z, v, w


def masks(x):
    z = x.clone()
    z[x > 1] = 0
    z[x < -1] = x[x < -1] * 2
    z.masked_fill_(z == 0, 3.0)
    z[x.sum(1) > 0] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return z


def places(x):
    z = x.clone()
    z[:, torch.tensor([0, 2])] = 7
    z[torch.tensor([0, 1]), torch.tensor([2, 3])] = x[0, :2]
    z[1:, torch.tensor([0])] += 1
    z.index_fill_(0, torch.tensor([-1]), 2.0)
    z.index_add_(1, torch.tensor([0, 0]), x[:, :2])
    z.scatter_(0, torch.tensor([[3, 2, 1, 0]]), 5.0)
    return z


def pieces(x):
    z = x.clone()
    a, b = z.split(2)
    c = z.chunk(2, 1)[1]
    a += 1
    b.mul_(3)
    c.sub_(1)
    z.unbind(0)[2].fill_(9)
    return z, a, b, c


def views_and_copies(x):
    z = x.clone()
    r, t = z.reshape(-1), z.t()
    r[0] = 5
    t[0] = 9
    copy, also = t.contiguous(), t.reshape(-1)
    copy[1] = -1
    also[0] = 100
    return z, r, t, copy, also


def diagonals(x):
    z = x.clone()
    z.diagonal().fill_(3)
    torch.diagonal(z, 1)[1:].mul_(2)
    z.diagonal(-2).copy_(x[0, :2])
    tall = torch.cat([z, x, z])[:, :2].clone()
    tall[:7].fill_diagonal_(9, wrap=True)
    return z, tall, z.clone()[1:].fill_diagonal_(7), torch.stack([z[:3, :3]] * 3).fill_diagonal_(5)


def by_strides(x):
    z = x.clone()
    z.as_strided((2, 2), (1, 4), 1).add_(10)
    z.unfold(0, 2, 2).mul_(2)
    return z


def orders(x):
    z = x.clone()
    p = z.permute(1, 0).unsqueeze(0)
    p[:, 1:].sub_(1)
    z.movedim(0, 1)[2] = 0
    z.mT[0] += 1
    return z, p


def turned_in_place(x):
    z = x.clone().view(1, 4, 4)
    z.squeeze_(0)
    z.t_()
    z[0] = 1
    return z


def results_that_are_given(x):
    z = torch.zeros(4, 4)
    torch.add(x, 1, out=z)
    return z


def other_dtypes(x):
    z = torch.zeros(4, 4, dtype=torch.float64)
    z[1].copy_(x[0])
    z[:, 2] = x[:, 1]
    n = torch.arange(4)
    n[1:] = 7
    m = x > 0
    m[0] = True
    return z, n, m


def the_same_tensor(x):
    z = x.clone()
    y, w = z.detach(), z.clone()
    y.add_(1)
    u = F.relu(z, inplace=True)
    u[0] = -3
    return z, y, w, u


PROGRAMS = [parts, stale_views, masks, places, pieces, views_and_copies, diagonals, by_strides,
            orders, turned_in_place, results_that_are_given, other_dtypes, the_same_tensor]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_written_is_seen_by_all_views(fn):
    torch.manual_seed(0)
    x = torch.randn(4, 4)
    same(run(from_exported_program(exported(fn, x)), x), fn(x.clone()))


#: those that symbolic_trace can trace: it knows no `z[i] = ...`
TRACED = [by_strides, results_that_are_given]


@pytest.mark.parametrize("fn", TRACED, ids=lambda f: f.__name__)
def test_traced_programs(fn):
    x = torch.randn(4, 4)
    traced = torch.fx.symbolic_trace(fn)
    mod = from_fx(traced, [((4, 4), "float32")])
    same(run(mod, x)[:1], traced(x.clone()))


def test_a_traced_program_that_writes_to_views():
    def fn(x):
        z = x.clone()
        v, w, a = z[0], z.view(-1)[2:6], z.split(2)[-1]
        v.add_(1)
        w.zero_()
        a.mul_(2)
        z.diagonal().fill_(3)
        return z, v, w, F.relu(a, inplace=True), z.t()

    x = torch.randn(4, 4)
    same(run(from_fx(torch.fx.symbolic_trace(fn), [((4, 4), "float32")]), x), fn(x.clone()))


def test_item_assignment_in_a_traced_graph():
    graph = torch.fx.Graph()

    def call(fn, *args):
        return graph.call_function(fn, args)

    x = graph.placeholder("x")
    z = graph.call_method("clone", (x,))
    part = call(operator.getitem, z, (slice(1, 3), slice(None)))
    call(operator.setitem, part, (Ellipsis, 0), 5.0)
    call(operator.setitem, z, call(operator.gt, z, 0), -1.0)
    call(operator.setitem, z, (slice(None), [0, 2]), call(operator.getitem, x, (
        slice(None), slice(0, 2))))
    graph.output((z, part))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    x = torch.randn(4, 4)
    same(run(from_fx(module, [((4, 4), "float32")]), x), module(x.clone()))


@pytest.mark.parametrize("importer", ["export", "fx"])
def test_any_number_of_rows(importer):
    def fn(x):
        z = x.clone()
        z[1:].mul_(2)
        z.view(-1, 2)[:, 0].add_(1)
        z.t()[0].zero_()
        return z, z[:, 1]

    shape = (6, 4)
    if importer == "export":
        n = torch.export.Dim("n", min=3, max=40)
        program = torch.export.export(model(fn), (torch.randn(shape),), dynamic_shapes=({0: n},))
        mod = from_exported_program(program)
    else:
        mod = from_fx(torch.fx.symbolic_trace(fn), [((tir.Var("n", "int64"), 4), "float32")])
    assert isinstance(mod["main"].params[0].struct_info.dims[0], tir.Var)
    for rows in (3, 7):
        x = torch.randn(rows, 4)
        same(run(mod, x), fn(x.clone()))


# ------------------------------------------------------------------------------- what is outside


@pytest.mark.parametrize("importer", ["export", "fx"])
def test_a_changed_input_that_is_not_returned_comes_after_the_results(importer):
    def fn(x):
        x[1:].mul_(2)
        return x.sum(1)

    def traced(x):
        x.select(0, 1).mul_(2)
        return x.sum(1)

    x = torch.randn(3, 4)
    if importer == "export":
        mod = from_exported_program(exported(fn, x))
    else:
        fn, mod = traced, from_fx(torch.fx.symbolic_trace(traced), [((3, 4), "float32")])
    now = x.clone()
    want = fn(now)
    assert changed(mod) == ["x"]
    same(run(mod, x), (want, now))


def test_a_changed_input_that_is_returned_is_not_returned_twice():
    def fn(x):
        y = x[1:3]
        y.mul_(2)
        return x

    x = torch.randn(4)
    mod = from_exported_program(exported(fn, x))
    assert changed(mod) == []
    same(run(mod, x), fn(x.clone()))


def accumulate(self, x):
    self.total.add_(x)
    self.count += 1
    return self.total * 2


@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_changed_buffers_come_after_the_results(keep, functional):
    x = torch.randn(3)
    program = exported(accumulate, x, total=torch.ones(3), count=torch.zeros((), dtype=torch.int64))
    if functional:
        program = program.run_decompositions({})
    mod = from_exported_program(program, keep_params_as_input=keep)
    assert changed(mod) == ["total", "count"]
    mod, params = detach_params(mod)
    got = run(mod, x, params=params.get("main", ()))
    same(got, ((x + 1) * 2, x + 1, torch.tensor(1)))


def test_a_program_that_was_saved_and_loaded():
    x = torch.randn(4, 4)
    file = io.BytesIO()
    torch.export.save(exported(views_and_copies, x), file)
    file.seek(0)
    same(run(from_exported_program(torch.export.load(file)), x), views_and_copies(x.clone()))


def test_a_tensor_of_the_model_is_a_part_of_another():
    whole = torch.zeros(3, 4)

    def fn(x):
        whole[1].add_(x)  # while it is traced, whole[1] becomes a tensor of the model of its own
        return whole * 2

    traced = torch.fx.symbolic_trace(fn)
    x = torch.randn(4)
    mod = from_fx(traced, [((4,), "float32")])
    same(run(mod, x)[:1], traced(x))


# ------------------------------------------------------------------------------- refused


@pytest.mark.parametrize("first", ["whole", "row"])
def test_buffers_of_an_exported_model_that_share_memory(first):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.arange(12.0).view(3, 4)
            held = {"whole": whole, "row": whole[1], "turned": whole.t()[2:]}
            for name in (first, *[n for n in held if n != first]):
                self.register_buffer(name, held[name])

        def forward(self, x):
            self.row.add_(x)
            self.turned.mul_(2)
            return self.whole * 1, self.row * 1

    x = torch.randn(4)
    program = torch.export.export(Model(), (x,))
    mod = from_exported_program(program)
    now = Model()
    want = now(x)
    names = changed(mod)
    assert set(names) >= {first}
    same(run(mod, x), (*want, *(getattr(now, n) for n in names)))
    with pytest.raises(ValueError, match="shares its memory with another"):
        from_exported_program(program, keep_params_as_input=True)


def test_a_tensor_that_was_made_while_a_model_was_traced():
    class Model(torch.nn.Module):
        def forward(self, x):
            y = torch.zeros(3, 4)
            y[:, 1:3] = x[:, 1:3]
            y[x > 0.5] += 1
            return y

    x = torch.randn(3, 4)
    traced = torch.fx.symbolic_trace(Model())  # calls y.__setitem__
    mod = from_fx(traced, [((3, 4), "float32")])
    same(run(mod, x)[:1], traced(x))


def test_a_write_to_an_element_that_a_view_has_several_times_is_refused():
    def fn(x):
        z = x.clone()
        z.expand(3, 4)[0].add_(1)
        return z

    with pytest.raises(ValueError, match="expanded tensor .* clone\\(\\) it before"):
        from_exported_program(exported(fn, torch.randn(4)))


def test_a_buffer_that_is_replaced_while_a_model_is_traced():
    def replaced(self, x):
        self.state = self.state + x
        return self.state * 2

    traced = torch.fx.symbolic_trace(model(replaced, state=torch.zeros(3)))
    with pytest.raises(ValueError, match="state was given another value while the model was"):
        from_fx(traced, [((3,), "float32")])


def test_strides_of_a_part_are_refused():
    def fn(x):
        return x[1:].as_strided((2,), (3,))

    with pytest.raises(ValueError, match="as_strided of a tensor that is a part of another"):
        from_exported_program(exported(fn, torch.randn(4)))


def test_programs_without_writes_are_not_watched():
    text = from_exported_program(exported(lambda x: (x[1:] + 1).view(-1), torch.randn(3, 4)))
    assert isinstance(text["main"].body.blocks[0], relax.DataflowBlock)
    assert "scatter" not in text.script()


@pytest.mark.parametrize("shift", [-9, 0, 9])
def test_a_mask_that_is_nowhere_true(shift):
    """The values that are dealt out to the places of a mask may be none."""
    def fn(x):
        z, y, rows = x.clone(), x.clone(), x.clone()
        z[x > 0] = x[x > 0] * 2
        y[x[:, 0] > 0] = x[x[:, 0] > 0] + 1
        rows = rows.masked_scatter(x > 0, torch.masked_select(x, x > 0) * 3)
        return z, y, rows

    seen = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1, (4, 3)).astype("float32"))
    mod = from_exported_program(exported(fn, seen))
    x = seen + shift
    same(run(mod, x.numpy()), fn(x))
