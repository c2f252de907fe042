"""Tensors for calls of ATen: of any operator by the names of its arguments, and of those operators
whose tensors must fit each other by a row each."""

from __future__ import annotations

import math
from typing import Any, Callable

#: special values that a float tensor may have among its elements
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0)

#: operator -> `row(torch, draw, overload) -> arguments by name`, None for an overload left out
SAMPLES: dict[str, Callable[..., dict[str, Any] | None]] = {}


def sample(*names: str) -> Callable[[Callable], Callable]:
    def add(fn: Callable) -> Callable:
        for name in names:
            SAMPLES[name] = fn
        return fn

    return add


def numbers(torch: Any, draw: Any, *shape: int, positive: bool = False) -> Any:
    """Random floats, sometimes with special values."""
    out = torch.randn(shape)
    if positive:
        return out.abs() + 0.1
    if out.numel() and draw.chance(15):
        flat = out.view(-1)
        flat[draw.integer(0, flat.numel() - 1)] = draw.choice(SPECIAL)
    return out


def tensor_like(torch: Any, draw: Any, name: str, shape: tuple[int, ...], first: bool) -> Any:
    """A tensor by the name of its argument."""
    if name in ("mask", "condition"):
        return torch.rand(shape) > 0.5
    if name in ("index", "indices"):
        return torch.randint(0, min((*shape, 3)) or 1, shape)
    kind = draw.choice(["float", "float", "float", "int", "bool", "double"])
    size = shape
    if not first and draw.chance(25):
        size = tuple(1 if draw.chance(40) else d for d in shape)[draw.integer(0, len(shape)):]
    if kind == "int":
        return torch.randint(-4, 5, size)
    if kind == "bool":
        return torch.rand(size) > 0.5
    out = numbers(torch, draw, *size)
    return out.double() if kind == "double" else out


def lists(torch: Any, draw: Any, shape: tuple[int, ...]) -> list[Any]:
    """A list of tensors of one shape."""
    return [torch.randn(shape) for _ in range(draw.integer(1, 3))]


# ------------------------------------------------------------------------------- places


@sample("gather")
def _gather(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    dim = draw.choice([0, 1, -1])
    return {"self": numbers(torch, draw, 3, 4), "dim": dim, "index": torch.randint(0, 3, (2, 3)),
            "sparse_grad": False}


@sample("scatter", "scatter_add", "scatter_reduce")
def _scatter(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    dim = draw.choice([0, 1, -1])
    index = torch.stack([torch.randperm(3) for _ in range(2)])
    out = {"self": torch.randn(3, 4), "dim": dim, "index": index if dim else index.t(),
           "src": torch.randn(3, 4), "value": draw.choice([2.0, -1])}
    if "scatter_reduce" in str(overload):
        return {**out, "reduce": draw.choice(["sum", "prod", "mean", "amax", "amin"]),
                "index": torch.randint(0, 3, (2, 3)), "include_self": draw.choice([True, False])}
    if "scatter_add" not in str(overload):
        out["reduce"] = draw.choice(["add", "multiply"])
    return out


@sample("index_add", "index_copy", "index_fill", "index_reduce", "index_select")
def _index_along(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    dim = draw.choice([0, 1, -1])
    x = torch.randn(3, 3, 4)
    index = torch.randperm(3)[:2]
    source = torch.randn([2 if k == dim % 3 else n for k, n in enumerate(x.shape)])
    return {"self": x, "dim": dim, "index": index, "source": source,
            "value": torch.tensor(2.0) if "Tensor" in str(overload) else draw.choice([2.0, -1]),
            "reduce": draw.choice(["prod", "mean", "amax", "amin"]),
            "include_self": draw.choice([True, False]), "alpha": draw.choice([1, 2])}


@sample("index", "_unsafe_index", "index_put", "_unsafe_index_put")
def _index(torch: Any, draw: Any, overload: Any) -> dict[str, Any] | None:
    x = numbers(torch, draw, 3, 4, 5)
    i, j = torch.randint(-3, 3, (2,)), torch.randint(0, 3, (3, 1))
    indices = draw.choice([[i], [None, i], [i, j], [None, i, j], [i, None, j], [j, i],
                           [x > 0], [None, x[0] > 0]])
    if "index_put" not in str(overload):
        return {"self": x, "indices": indices}
    if any(t is not None and t.dtype == torch.bool for t in indices):
        values = torch.tensor(3.0)
    else:
        values = draw.choice([torch.tensor(3.0), torch.randn_like(x[tuple(
            slice(None) if t is None else t for t in indices)])])
    return {"self": x, "indices": indices, "values": values,
            "accumulate": draw.choice([False, True]) if values.ndim == 0 or len(indices) < 9
            else False}


@sample("masked_scatter", "masked_select", "masked_fill")
def _masked(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    value = torch.tensor(2.0) if "Tensor" in str(overload) else draw.choice([2.0, -math.inf])
    return {"self": numbers(torch, draw, 3, 4), "mask": torch.rand(draw.choice(
        [(3, 4), (4,), (3, 1)])) > 0.5, "source": torch.randn(12), "value": value}


@sample("embedding")
def _embedding(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"weight": torch.randn(6, 4), "indices": torch.randint(0, 6, (2, 3)),
            "padding_idx": draw.choice([-1, 2])}


@sample("embedding_bag", "_embedding_bag")
def _embedding_bag(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    mode, last = draw.choice([0, 1, 2]), draw.choice([False, True])
    return {"weight": torch.randn(6, 4), "indices": torch.randint(0, 6, (7,)),
            "offsets": torch.tensor([0, 2, 2, 5, 7][:5 if last else 4]), "mode": mode,
            "scale_grad_by_freq": False, "sparse": False, "include_last_offset": last,
            "per_sample_weights": draw.choice([None, torch.randn(7)]) if mode == 0 else None,
            "padding_idx": draw.choice([-1, 2] if "_embedding" in str(overload) else [None, 2, -2])}


@sample("_grouped_mm")
def _grouped_mm(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    a, b, ends = draw.choice([((8, 16), (3, 16, 8), [2, 2, 8]), ((3, 8, 16), (16, 8), [0, 5, 8]),
                              ((8, 16), (16, 8), [4, 4, 16]), ((3, 8, 16), (3, 16, 8), None)])
    offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    return {"self": torch.randn(*a), "mat2": torch.randn(*b), "offs": offs, "bias": None,
            "out_dtype": None}


@sample("bincount")
def _bincount(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randint(0, 5, (7,)), "weights": draw.choice([None, torch.randn(7)]),
            "minlength": draw.choice([0, 3, 9])}


@sample("unique_dim", "unique_consecutive")
def _unique(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randint(0, 3, (6, 2) if "dim" in str(overload) else (8,)),
            "dim": 0 if "unique_dim" in str(overload) else None}


@sample("one_hot")
def _one_hot(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randint(0, 5, (2, 3)), "num_classes": draw.choice([5, 7])}


@sample("take", "take_along_dim", "put")
def _take(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    dim = draw.choice([None, 0, 1])
    index = torch.randint(-12, 12, (5,))
    if "along" in str(overload):
        index = torch.randint(-3, 3, (3, 4))
    if "put" in str(overload):
        index = torch.randperm(12)[:5] - 6
    return {"self": torch.randn(3, 4), "index": index, "indices": index, "dim": dim,
            "source": torch.randn(5), "accumulate": draw.choice([False, True])}


@sample("searchsorted", "bucketize")
def _search(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    edges = torch.randn(5).sort().values
    values: Any = torch.cat([torch.randn(3), edges[:2]])
    if "Scalar" in str(overload):
        values = float(edges[1])
    return {"sorted_sequence": edges, "boundaries": edges, "self": values, "sorter": None,
            "right": (right := draw.choice([False, True])),
            "side": draw.choice([None, "right" if right else "left"]),
            "out_int32": draw.choice([False, True])}


@sample("repeat_interleave")
def _repeat_interleave(torch: Any, draw: Any, overload: Any) -> dict[str, Any] | None:
    if "self" not in str(overload):
        return None
    counted = "Tensor" in str(overload)
    return {"self": torch.randn(3, 4), "dim": 0 if counted else draw.choice([None, 0, 1]),
            "repeats": torch.tensor([2, 0, 1]) if counted else draw.choice([2, 3]),
            "output_size": None}


@sample("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter")
def _written(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    name = overload._schema.name.partition("::")[2]
    x = torch.randn(4, 5)
    if name == "slice_scatter":
        how = {"dim": draw.choice([0, 1]), "start": draw.choice([None, 1, -3]),
               "end": draw.choice([None, 3, -1]), "step": draw.choice([1, 2])}
        part = torch.ops.aten.slice.Tensor(x, **how)
    elif name == "select_scatter":
        how = {"dim": draw.choice([0, 1]), "index": draw.choice([0, -1, 2])}
        part = x.select(**how)
    elif name == "diagonal_scatter":
        how = {"offset": draw.choice([0, 1, -2]), "dim1": 0, "dim2": draw.choice([1, -1])}
        part = x.diagonal(**how)
    else:
        how = {"size": [2, 3], "stride": draw.choice([[5, 1], [1, 2]]), "storage_offset": 1}
        part = x.as_strided(**how)
    return {"self": x, "src": torch.randn(part.shape), **how}


@sample("as_strided", "as_strided_copy")
def _as_strided(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(4, 5), "size": [2, 3], "stride": draw.choice([[5, 1], [1, 2]]),
            "storage_offset": draw.choice([None, 3])}


@sample("unfold", "unfold_copy")
def _unfold(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(4, 5), "dimension": draw.choice([0, 1, -1]),
            "size": draw.choice([2, 3]), "step": draw.choice([1, 2])}


@sample("split_with_sizes", "split_with_sizes_copy")
def _split(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(4, 4), "split_sizes": draw.choice([[1, 3], [2, 0, 2], [4]]),
            "dim": draw.choice([0, 1])}


@sample("unflatten")
def _unflatten(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(4, 6), "dim": 1, "sizes": draw.choice([[2, 3], [-1, 2]])}


@sample("permute", "permute_copy")
def _permute(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(2, 3, 4), "dims": draw.choice([[2, 0, 1], [0, -1, 1]])}


@sample("expand", "expand_copy", "broadcast_to")
def _expand(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(3, 1), "size": draw.choice([[3, 4], [2, -1, 4]])}


@sample("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy", "_reshape_alias")
def _view(torch: Any, draw: Any, overload: Any) -> dict[str, Any] | None:
    if "dtype" in str(overload):
        return None
    if "alias" in str(overload):
        return {"self": torch.randn(3, 4), "size": [2, 6], "stride": [6, 1]}
    size = draw.choice([[12], [2, -1], [3, 2, 2]])
    return {"self": torch.randn(3, 4), "size": size, "shape": size}


# ------------------------------------------------------------------------------- losses


@sample("nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss_forward", "nll_loss2d_forward",
        "cross_entropy_loss")
def _classes(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    flat = "2d" not in str(overload)
    shape = (4, 3) if flat else (2, 3, 2, 2)
    target = torch.randint(0, 3, (shape[0], *shape[2:]))
    if "cross" in str(overload) and draw.chance(30):
        target = torch.rand(shape)
    ignore = draw.choice([-100, 1])
    return {"self": torch.randn(shape).log_softmax(1), "target": target,
            "weight": draw.choice([None, torch.rand(3)]), "reduction": draw.choice([1, 0, 2]),
            "ignore_index": -100 if target.is_floating_point() else ignore,
            "label_smoothing": draw.choice([0.0, 0.2])}


@sample("binary_cross_entropy", "binary_cross_entropy_with_logits")
def _binary(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    x = torch.rand(3, 4) if "logits" not in str(overload) else torch.randn(3, 4)
    return {"self": x, "target": torch.rand(3, 4), "weight": draw.choice([None, torch.rand(4)]),
            "pos_weight": draw.choice([None, torch.rand(4)]), "reduction": draw.choice([1, 0, 2])}


@sample("margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss",
        "hinge_embedding_loss", "kl_div")
def _margins(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    name = overload._schema.name.partition("::")[2]
    rows = torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 3)
    target = torch.tensor([1, -1, 1, -1])
    if name == "margin_ranking_loss":
        rows, target = tuple(r[:, 0] for r in rows), target.float()
    if name == "hinge_embedding_loss":
        target = target[:, None].expand(4, 3).contiguous()
    if name == "kl_div":
        target = rows[1] if draw.chance(50) else torch.rand(4, 3)
    out = {"input1": rows[0], "input2": rows[1], "anchor": rows[0], "positive": rows[1],
           "negative": rows[2], "self": rows[0], "target": target}
    if name == "kl_div":
        out["log_target"] = target is rows[1]
    return out


@sample("multi_margin_loss", "multilabel_margin_loss", "multilabel_margin_loss_forward")
def _margins_of_classes(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rows = torch.randn(4, 3)
    several = "multilabel" in overload._schema.name
    target = torch.stack([torch.randperm(4)[:3] - 1 for _ in range(4)]) if several else (
        torch.randint(0, 3, (4,)))
    return {"self": rows, "target": target, "weight": draw.choice([None, torch.rand(3)]),
            "p": draw.choice([1, 2]), "reduction": draw.choice([1, 0, 2])}


@sample("quantile", "nanquantile")
def _quantile(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    q = draw.choice([0.5, 0.3, 1.0])
    return {"self": numbers(torch, draw, 3, 5),
            "q": q if "scalar" in str(overload) else torch.tensor(draw.choice([[q], [0.1, q]]))}


@sample("vander", "diag_embed", "trace", "tril", "triu", "diagonal", "diagonal_copy", "diag")
def _of_a_matrix(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    vector = "vander" in str(overload)
    return {"self": torch.randn(4) if vector else torch.randn(3, 4), "x": torch.randn(4),
            "dim1": draw.choice([0, -2]), "dim2": draw.choice([1, -1])}
