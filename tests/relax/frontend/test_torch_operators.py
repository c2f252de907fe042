"""Single operators of torch over random shapes and values, imported, built and run, against it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import mlc_lab as tvm
from mlc_lab import relax, tir
from mlc_lab.relax.frontend.torch import from_exported_program, from_fx

nn, F = torch.nn, torch.nn.functional
RNG = np.random.default_rng(11)
BOTH = pytest.mark.parametrize("how", ["export", "fx"])


class Model(nn.Module):
    """A function as a model."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def imported(fn, args, how, dynamic=None):
    """A function as a Relax module."""
    if how == "export":
        return from_exported_program(torch.export.export(Model(fn), args, dynamic_shapes=dynamic))
    info = [(tuple(a.shape), str(a.dtype).rpartition(".")[2]) for a in args]
    return from_fx(torch.fx.symbolic_trace(fn), info)


def runner(mod):
    """`main` of a module as a function of torch's tensors that gives a list of arrays."""
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())

    def run(*args):
        out = vm["main"](*(tvm.nd.array(a.numpy()) for a in args))
        return [o.numpy() for o in out] if not hasattr(out, "numpy") else [out.numpy()]

    return run


def agrees(got, want):
    want = list(want) if isinstance(want, (tuple, list)) else [want]
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == tuple(w.shape) and str(w.dtype).endswith(str(g.dtype))
        np.testing.assert_allclose(g, w.detach().numpy(), rtol=1e-4, atol=1e-5)


def check(fn, args, how):
    agrees(runner(imported(fn, args, how))(*args), fn(*args))


def indices(size, *shape, dtype="int64"):
    """Random indices of a dimension from its front and from its end, both ends among them."""
    at = RNG.integers(-size, size, shape)
    at.ravel()[:2] = -1, -size
    return torch.from_numpy(at.astype(dtype))


# ------------------------------------------------------------------------------- indices

AT = torch.tensor([0, -1])
BY_CONSTANTS = {
    "second": lambda a: a[:, torch.tensor([0, -1])],
    "third": lambda a: a[:, :, torch.tensor([-1, 2])],
    "first": lambda a: a[torch.tensor([[-1], [-3]])],
    "last": lambda a: a[..., torch.tensor([-2, -1, 0])],
    "two": lambda a: a[torch.tensor([0, -1]), torch.tensor([-2, 1])],
    "list": lambda a: a[:, [0, -1, 2]],
    "scalar": lambda a: a[:, torch.tensor(-1)],
}


@BOTH
@pytest.mark.parametrize("name", BY_CONSTANTS)
def test_constant_indices_count_from_the_end(name, how):
    fn = BY_CONSTANTS[name]
    for shape in ((3, 4, 5), (4, 3, 3)):
        mod = imported(fn, (torch.rand(shape),), how)
        assert "R.where" not in mod.script() and "R.less" not in mod.script()
        check(fn, (torch.rand(shape),), how)


@BOTH
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_indices_that_are_inputs_count_from_the_end(dtype, how):
    for size in (2, 7):
        a = torch.rand(size, 3, size)
        for shape in ((2,), (2, 3)):
            i = indices(size, *shape, dtype=dtype)
            check(lambda a, i: a[i], (a, i), how)
            check(lambda a, i: a[:, :, i], (a, i), how)
        j = indices(3, 2, dtype=dtype)
        check(lambda a, i, j: a[i, j], (a, indices(size, 2, dtype=dtype), j), how)


def test_indices_of_a_dimension_of_any_size():
    n = torch.export.Dim("n", min=2, max=64)
    args = (torch.rand(5, 3), torch.tensor([0, -1, 2]))
    run = runner(imported(lambda a, i: (a[i], a[torch.tensor([-1, 0])]), args, "export",
                          {"args": ({0: n}, None)}))
    for size in (3, 9):
        a, i = torch.rand(size, 3), indices(size, 3)
        agrees(run(a, i), (a[i], a[torch.tensor([-1, 0])]))


def test_an_index_outside_is_refused():
    traced = torch.fx.symbolic_trace(lambda a: a[:, [0, 4]])
    with pytest.raises(IndexError, match="the index 4 is outside of a dimension of 4"):
        from_fx(traced, [((3, 4), "float32")])


# ------------------------------------------------------------------------------- pooling

#: size, kernel, stride, padding of pools with ceil_mode; in some, the last window of torch's
#: formula would begin in the padding behind, and is none
POOLS = [((6, 5), (3, 2), (2, 3), (1, 1)), ((7, 7), 3, 2, 1), ((5, 6), 2, 3, 1), ((8, 5), 3, 2, 0),
         ((7, 5), (1, 2), 3, 0), ((4, 9), (2, 4), (2, 3), (1, 2)), ((6,), 2, 2, 1), ((5,), 2, 3, 1),
         ((9,), 3, 2, 1), ((5, 6, 7), (3, 2, 2), (2, 3, 2), 1)]


def pools(rank, kernel, stride, padding):
    """All pools with ceil_mode of one geometry."""
    largest, mean = getattr(F, f"max_pool{rank}d"), getattr(F, f"avg_pool{rank}d")

    def fn(x):
        geometry = (kernel, stride, padding)
        out = [largest(x, *geometry, ceil_mode=True), mean(x, *geometry, ceil_mode=True),
               mean(x, *geometry, ceil_mode=True, count_include_pad=False)]
        if rank > 1:
            out.append(mean(x, *geometry, ceil_mode=True, divisor_override=3))
        return tuple(out)

    return fn


@BOTH
@pytest.mark.parametrize("size, kernel, stride, padding", POOLS)
def test_rounding_up_keeps_no_window_that_begins_behind(size, kernel, stride, padding, how):
    check(pools(len(size), kernel, stride, padding), (torch.randn(2, 3, *size) - 3,), how)


@pytest.mark.parametrize("kernel, stride, padding", [
    ((3, 2), (2, 3), 1), ((2, 2), (3, 2), 1), ((3, 3), (2, 2), 1)])
def test_rounding_up_of_any_size(kernel, stride, padding):
    fn = pools(2, kernel, stride, padding)
    shape = (1, 2, tir.Var("h", "int64"), 5)
    run = runner(from_fx(torch.fx.symbolic_trace(fn), [(shape, "float32")]))
    for size in (4, 5, 6, 7, 8, 13):
        x = torch.randn(1, 2, size, 5)
        agrees(run(x), fn(x))


@BOTH
def test_pools_without_a_batch(how):
    check(lambda x: (F.max_pool2d(x, 2, 3, 1, ceil_mode=True), F.avg_pool2d(x, 2)),
          (torch.randn(2, 5, 6),), how)


@BOTH
@pytest.mark.parametrize("size, wanted", [
    ((6, 5), (2, 2)), ((7, 4), (3, None)), ((6, 4), 2), ((7,), 3), ((5, 6, 4), (2, 4, 3))])
def test_adaptive_maxima_of_sizes_that_do_not_divide(size, wanted, how):
    rank = len(size)
    pool = getattr(F, f"adaptive_max_pool{rank}d")
    for shape in ((2, 3, *size), (3, *size)):
        check(lambda x: pool(x, wanted), (torch.randn(shape),), how)
    if how == "fx":
        x = torch.randn(2, 3, *size)
        layer = getattr(nn, f"AdaptiveMaxPool{rank}d")(wanted)
        mod = from_fx(torch.fx.symbolic_trace(nn.Sequential(layer)), [(tuple(x.shape), "float32")])
        agrees(runner(mod)(x), layer(x))


def test_adaptive_maxima_of_any_size():
    shape = (1, 2, tir.Var("h", "int64"), 5)
    fn = torch.fx.symbolic_trace(lambda x: F.adaptive_max_pool2d(x, (3, 2)))
    run = runner(from_fx(fn, [(shape, "float32")]))
    for size in (3, 7):
        x = torch.randn(1, 2, size, 5)
        agrees(run(x), fn(x))


# ------------------------------------------------------------------------------- not


@BOTH
def test_negations(how):
    def fn(x, n):
        mask = x > 0
        return (~mask, ~n, torch.bitwise_not(n), torch.bitwise_not(mask), torch.logical_not(n),
                torch.logical_not(mask), mask.logical_not(), n.bitwise_not(), (~mask).float() * x)

    for shape in ((5,), (3, 4)):
        n = torch.from_numpy(RNG.integers(-3, 3, shape))
        check(fn, (torch.randn(shape), n), how)
        check(lambda n: ~n, (n.int(),), how)


# ------------------------------------------------------------------------------- messages


def test_a_model_that_is_no_graph_is_refused_with_what_to_call():
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"not Linear; trace .*torch\.fx\.symbolic_trace\(model\)"):
        from_fx(layer, [((1, 2), "float32")])
    with pytest.raises(TypeError, match=r"not Linear; export .*torch\.export\.export\(model, "):
        from_exported_program(layer)
    with pytest.raises(TypeError, match="export the model first"):
        from_exported_program(torch.fx.symbolic_trace(layer))
    with pytest.raises(TypeError, match="use from_exported_program"):
        from_fx(torch.export.export(layer, (torch.rand(1, 2),)), [((1, 2), "float32")])


# ------------------------------------------------------------------------------- sizes


def test_dimensions_that_are_derived_of_a_symbol():
    class Halved(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(2, 3, 3, padding=1)

        def forward(self, x, y):
            small = F.avg_pool2d(F.relu(self.layer(x)), (2, 1))  # of h rows
            half = x.reshape(1, 2, x.shape[2] // 2, 2, 6).sum(3)
            return small.flatten(2) * 2, half + y[:, :, 1:], small.mean(2)

    h = torch.export.Dim("h", min=4, max=30)
    model = Halved().eval()
    args = (torch.rand(1, 2, 12, 6), torch.rand(1, 2, 7, 6))
    for shapes in (({2: 2 * h}, {2: h + 1}), ({2: 2 * h}, None)):
        given = args if shapes[1] else (args[0], torch.rand(1, 2, 2, 6))
        if not shapes[1]:
            model.forward = lambda x, y: (model.layer(x) * 2, x + y[:, :, :1], x.flatten(2))
        program = torch.export.export(model, given, dynamic_shapes=shapes, strict=False)
        mod = from_exported_program(program)
        assert isinstance(mod["main"].params[0].struct_info.dims[2], tir.Var)
        run = runner(mod)
        for rows in (4, 9):
            x = torch.rand(1, 2, 2 * rows, 6)
            y = torch.rand(1, 2, rows + 1, 6) if shapes[1] else given[1]
            agrees(run(x, y), model(x, y))


def test_a_dimension_with_an_offset():
    h = torch.export.Dim("h", min=4, max=30)
    fn = lambda x: (x[:, 1:] + x[:, :-1], torch.arange(x.shape[1]) * 2)
    args = (torch.rand(2, 11),)
    run = runner(imported(fn, args, "export", {"args": ({1: 2 * h + 1},)}))
    for half in (4, 8):
        x = torch.rand(2, 2 * half + 1)
        agrees(run(x), fn(x))


# ------------------------------------------------------------------------------- other operators

INF = float("inf")
FUNCTIONS = {
    "movedim": lambda x, y: (torch.movedim(x, 0, -1), x.movedim((0, -1), (1, 0)),
                             torch.moveaxis(x, -1, 0)),
    "stacks": lambda x, y: (torch.hstack([x, y]), torch.vstack([x, y]),
                            torch.hstack([x[0, 0], y[0, 1]]), torch.vstack([x[0, 0], y[0, 1]])),
    "linspace": lambda x, y: (torch.linspace(0, 1, 7), torch.linspace(-2, 5.5, 4) + x[0, 0, 0],
                              torch.linspace(3, 1, 1)),
    "exp2": lambda x, y: (torch.exp2(x), (x * 5).int().exp2()),
    "threshold": lambda x, y: F.threshold(x, 0.1, 2.0),
    "cosine": lambda x, y: (F.cosine_similarity(x, y), F.cosine_similarity(x, y[0], -1),
                            torch.cosine_similarity(x * 0, y, 2)),
    "along": lambda x, y: (
        torch.take_along_dim(x, torch.tensor([-1, 0, 1]).reshape(1, 3, 1), 1),
        torch.take_along_dim(x, torch.tensor([7, 0])),
        torch.take_along_dim(x[:, :, :1], y.argsort(1), 1)),
    "norms": lambda x, y: (
        torch.linalg.norm(x), torch.linalg.norm(x, dim=1), torch.linalg.norm(x, 1, 1, True),
        torch.linalg.norm(x, ord=INF, dim=0), torch.linalg.norm(x, -INF, -1),
        torch.linalg.norm(x[0], "fro"), torch.linalg.vector_norm(x, 3.0, (0, 2), True),
        torch.linalg.vector_norm((x > 0).float(), 0, 1)),
    "tensordot": lambda x, y: (
        torch.tensordot(x, y, ([1], [1])), torch.tensordot(x, y, ([0, 2], [0, 2])),
        torch.tensordot(x, y.movedim(2, 0), 1), torch.tensordot(x, y, 3)),
}


@BOTH
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_operators(name, how):
    fn = FUNCTIONS[name]
    for shape in ((2, 3, 4), (3, 4, 2)):
        if (name, shape) != ("along", (3, 4, 2)):
            check(fn, (torch.randn(shape), torch.randn(shape)), how)


@pytest.mark.parametrize("how", [*BOTH.args[1], "decomposed"])
def test_a_margin_of_several_classes(how):
    """What is named after the first -1 does not count; it does in torch's decomposition."""
    rows, names = torch.randn(4, 4), torch.tensor([[0, 2, -1, 1], [1, -1, 0, 0], [3, 2, 1, 0],
                                                   [-1, 0, 1, 2]])
    for reduction in ("none", "mean", "sum"):
        def fn(x, t, reduction=reduction):
            if how == "decomposed":
                kind = ["none", "mean", "sum"].index(reduction)
                return torch.ops.aten.multilabel_margin_loss_forward(x, t, kind)[0]
            return F.multilabel_margin_loss(x, t, reduction=reduction)

        for args in ((rows, names), (rows[0], names[0])):
            got = runner(imported(fn, args, "export" if how == "decomposed" else how))(*args)
            agrees(got, fn(*args))


def test_other_operators_of_any_size():
    def fn(x, y):
        return (torch.linspace(-1, 2, x.shape[0]), torch.tensordot(x, y, ([0], [0])),
                torch.movedim(x, 0, 1), F.cosine_similarity(x, y, 0), torch.hstack([x, y]))

    shape = (tir.Var("n", "int64"), 3)
    run = runner(from_fx(torch.fx.symbolic_trace(fn), [(shape, "float32")] * 2))
    for size in (1, 2, 9):
        args = torch.rand(size, 3), torch.rand(size, 3)
        agrees(run(*args), fn(*args))


def test_norms_of_matrices_are_refused():
    traced = torch.fx.symbolic_trace(lambda x: torch.linalg.norm(x, 2))
    with pytest.raises(ValueError, match="norm 2 of matrices is not translated"):
        from_fx(traced, [((3, 4), "float32")])


@pytest.mark.parametrize("kind", ["uint8", "int32", "bool"])
@pytest.mark.parametrize("equation", ["ij->i", "ij->", "ii->", "ij->ji", "ij,k->k", "ij,jk->ik"])
def test_whole_numbers_that_einsum_sums(equation, kind):
    parts = equation.partition("->")[0].split(",")
    if kind == "bool" and len(parts) > 1:
        return  # torch has no product of them
    args = tuple(torch.from_numpy(RNG.integers(0, 200, [3] * len(p))).to(getattr(torch, kind))
                 for p in parts)
    check(lambda *a: torch.einsum(equation, *a), args, "export")


@pytest.mark.parametrize(("start", "end", "steps"), [(4.3, -3, 50), (-4.7, 3.2, 5), (2, 9, 1)])
def test_whole_numbers_between_two_numbers(start, end, steps):
    check(lambda x: x + torch.linspace(start, end, steps, dtype=torch.int64),
          (torch.zeros(steps, dtype=torch.int64),), "export")


@pytest.mark.parametrize("options", [
    {"mode": "bilinear"}, {"mode": "bicubic"}, {"mode": "bilinear", "antialias": True}])
def test_images_of_bytes_are_resized_and_rounded(options):
    x = torch.from_numpy(RNG.integers(0, 256, (2, 3, 9, 8))).to(torch.uint8)

    def resized(x):
        return F.interpolate(x, (5, 11), **options)

    got = runner(imported(resized, (x,), "export"))(x)[0]
    assert got.dtype == np.uint8  # torch computes with weights of 16 bits: 1 up or down
    assert np.abs(got.astype("int32") - resized(x).int().numpy()).max() <= 1


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 5), (13, 9)])
def test_a_filter_leaves_out_what_it_does_not_reach(mode, size):
    """A NaN and an infinity change the elements of the result around them alone."""
    x = torch.from_numpy(RNG.standard_normal((1, 2, 11, 12)).astype("float32"))
    x[0, 0, 0, 3], x[0, 1, -1, -1] = float("nan"), float("inf")
    check(lambda x: F.interpolate(x, size, mode=mode, antialias=True), (x,), "export")


@pytest.mark.parametrize(("x", "target"), [
    (torch.tensor(2.0), torch.tensor(0)), (torch.tensor(2.0), torch.tensor(-1)),
    (torch.tensor([[float("nan"), 1, 2], [0, 3, 1]]), torch.tensor([[1, -1, 0], [2, 0, -1]]))])
def test_margins_of_one_class_and_of_nan(x, target):
    check(lambda x, t: F.multilabel_margin_loss(x, t), (x, target), "export")


@pytest.mark.parametrize("low, high", [(2, 1), (0.5, -0.5), (float("nan"), 1), (0, float("nan"))])
def test_limits_that_cross(low, high):
    """The upper one has the last word, and NaN is the result of NaN."""
    x = torch.tensor([-3.0, 0.75, 3, float("nan"), float("inf")])
    check(lambda x: x.clamp(low, high), (x,), "export")


def test_places_repeated_by_counts():
    check(lambda n: torch.repeat_interleave(n), (torch.tensor([1, 2, 0, 3]),), "export")


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_an_operator_in_which_torch_writes_to_what_it_has_made(first, side):
    """pad_sequence has no rule, and its parts write the sequences into zeros."""
    def padded(x, y):
        return torch.ops.aten.pad_sequence.default([x, y], first, 0.5, side)

    check(padded, (torch.randn(3, 4), torch.randn(2, 4)), "export")


@pytest.mark.parametrize("fn, words", [
    (lambda x: torch.topk(x, 9)[0], "k is 9.*has 3 element"),
    (lambda x: torch.topk(x, -1)[0], "k=-1"),
    (lambda x: torch.narrow(x, 1, 2, 5), "5 element.*place 2.*dimension of 3"),
    (lambda x: torch.split(x, 0, 1)[0], "must be positive"),
    (lambda x: torch.split(x, [1, 1], 1)[0], "must fill it"),
    (lambda x: torch.chunk(x, 0, 1)[0], "chunk into 0 parts"),
    (lambda x: torch.tensor_split(x, 0, 1)[0], "tensor_split into 0 parts"),
    (lambda x: torch.flip(x, [0, -2]), "twice"),
    (lambda x: F.pad(x, (-2, -2)), "more.*than it has"),
    (lambda x: F.glu(x, 1), "must be even"), (lambda x: x.unfold(1, 5, 1), "windows of 5"),
    (lambda x: x.unfold(1, 2, 0), "every 0"), (lambda x: F.unfold(x[None, None], 7), "larger than"),
    (lambda x: torch.quantile(x, 1.5), "between 0 and 1"),
])
def test_numbers_that_do_not_fit_are_refused(fn, words):
    """A graph that torch.fx traced was not run: only the importer sees the sizes."""
    with pytest.raises(RuntimeError):
        fn(torch.randn(2, 3))
    with pytest.raises(ValueError, match=words):
        from_fx(torch.fx.symbolic_trace(fn), [((2, 3), "float32")])
