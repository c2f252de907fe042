"""Tensors for calls of ATen's layers: products, convolutions, norms, recurrent layers, windows."""

from __future__ import annotations

import math
from typing import Any

from .torch_samples import numbers, sample

# ------------------------------------------------------------------------------- layers


def _rank(name: str) -> int:
    return next((int(c) for c in "123" if f"{c}d" in name), 2)


def _image(draw: Any, rank: int, channels: int) -> tuple[int, ...]:
    return (draw.integer(1, 2), channels, *(draw.integer(5, 7) for _ in range(rank)))


@sample("conv1d", "conv2d", "conv3d")
def _conv(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank, groups = _rank(str(overload)), draw.choice([1, 2])
    out: dict[str, Any] = {
        "input": torch.randn(_image(draw, rank, 4)),
        "weight": torch.randn(4, 4 // groups, *[draw.choice([3, 2])] * rank),
        "bias": draw.choice([None, torch.randn(4)]), "groups": groups,
        "stride": [draw.choice([1, 2])] * rank, "dilation": [draw.choice([1, 2])] * rank}
    if "padding" in str(overload):
        out["padding"] = draw.choice(["valid", "same"])
        if out["padding"] == "same":
            out["stride"] = [1] * rank
    else:
        out["padding"] = [draw.choice([0, 1, 2])] * rank
    return out


@sample("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank, groups = _rank(str(overload)), draw.choice([1, 2])
    return {"input": torch.randn(_image(draw, rank, 4)),
            "weight": torch.randn(4, 2, *[3] * rank),
            "bias": draw.choice([None, torch.randn(2 * groups)]), "groups": groups,
            "stride": [draw.choice([1, 2])] * rank, "padding": [draw.choice([0, 1])] * rank,
            "output_padding": [draw.choice([0, 1])] * rank,
            "dilation": [draw.choice([1, 2])] * rank}


@sample("convolution", "_convolution")
def _convolution(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    turned = draw.choice([False, True])
    return {"input": torch.randn(1, 4, 6, 6), "weight": torch.randn(4, 2, 3, 3),
            "bias": draw.choice([None, torch.randn(4)]), "stride": [draw.choice([1, 2])] * 2,
            "padding": [draw.choice([0, 1])] * 2, "dilation": [1, 1], "transposed": turned,
            "output_padding": [0, 0], "groups": 2, "benchmark": False, "deterministic": False,
            "allow_tf32": False, "cudnn_enabled": True}


@sample("linear")
def _linear(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"input": numbers(torch, draw, 2, 3, 4), "weight": torch.randn(5, 4),
            "bias": draw.choice([None, torch.randn(5)])}


@sample("bilinear")
def _bilinear(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"input1": torch.randn(2, 3), "input2": torch.randn(2, 4),
            "weight": torch.randn(5, 3, 4), "bias": draw.choice([None, torch.randn(5)])}


@sample("matmul", "linalg_matmul")
def _matmul(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    a, b = draw.choice([((3, 4), (4, 5)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((4,), (2, 4, 3)),
                        ((2, 1, 3, 4), (2, 4, 3)), ((3, 4), (4,))])
    return {"self": numbers(torch, draw, *a), "input": numbers(torch, draw, *a),
            "other": numbers(torch, draw, *b)}


@sample("mm", "bmm", "mv", "dot", "vdot", "outer", "ger")
def _products(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    name = overload._schema.name.partition("::")[2]
    a, b = {"mm": ((3, 4), (4, 5)), "bmm": ((2, 3, 4), (2, 4, 5)), "mv": ((3, 4), (4,)),
            "outer": ((3,), (4,)), "ger": ((3,), (4,))}.get(name, ((4,), (4,)))
    two = numbers(torch, draw, *a), numbers(torch, draw, *b)
    return {"self": two[0], **dict.fromkeys(("mat2", "vec", "tensor", "vec2", "other"), two[1])}


@sample("addmm", "baddbmm", "addbmm", "addmv", "addr")
def _added(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    name = overload._schema.name.partition("::")[2]
    c, a, b = {"addmm": ((3, 5), (3, 4), (4, 5)), "baddbmm": ((2, 3, 5), (2, 3, 4), (2, 4, 5)),
               "addbmm": ((3, 5), (2, 3, 4), (2, 4, 5)), "addmv": ((3,), (3, 4), (4,)),
               "addr": ((3, 4), (3,), (4,))}[name]
    parts = [torch.randn(s) for s in (c, a, b)]
    return {"self": parts[0], **dict.fromkeys(("mat1", "batch1", "mat", "vec1"), parts[1]),
            **dict.fromkeys(("mat2", "batch2", "vec", "vec2"), parts[2])}


@sample("einsum")
def _einsum(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    equation, shapes = draw.choice([("ij,kj->ik", ((3, 4), (5, 4))), ("ij->ji", ((3, 4),)),
                                    ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
                                    ("i,i->", ((4,), (4,)))])
    return {"equation": equation, "tensors": [torch.randn(s) for s in shapes], "path": None}


@sample("tensordot")
def _tensordot(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    dims = draw.choice([([1], [0]), ([0, 1], [1, 0]), ([], [])])
    return {"self": torch.randn(3, 4), "other": torch.randn(4, 3), "dims_self": dims[0],
            "dims_other": dims[1]}


@sample("cdist", "_cdist_forward", "_euclidean_dist")
def _cdist(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"x1": torch.randn(2, 3, 4), "x2": torch.randn(2, 5, 4)}


@sample("pdist", "_pdist_forward")
def _pdist(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(4, 3)}


@sample("scaled_dot_product_attention")
def _attention(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    groups = draw.choice([1, 2])
    mask = draw.choice([None, torch.rand(3, 5) > 0.6, torch.randn(3, 5),
                        torch.where(torch.rand(2, 4, 3, 5) > 0.5, -math.inf, 0.0)])
    return {"query": torch.randn(2, 4, 3, 8), "key": torch.randn(2, 4 // groups, 5, 8),
            "value": torch.randn(2, 4 // groups, 5, 6), "attn_mask": mask, "dropout_p": 0.0,
            "is_causal": mask is None and draw.chance(50), "enable_gqa": groups == 2,
            "scale": draw.choice([None, 0.3])}


@sample("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math")
def _attention_kernel(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    out = _attention(torch, draw, overload)
    return {**out, "key": torch.randn(2, 4, 5, 8), "value": torch.randn(2, 4, 5, 8),
            "attn_mask": draw.choice([None, torch.randn(3, 5)]), "is_causal": False,
            "enable_gqa": False, "dropout_mask": None}


@sample("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
        "cudnn_grid_sampler", "sspaddmm")
def _elsewhere(torch: Any, draw: Any, overload: Any) -> None:
    """Kernels of another device, products of sparse matrices."""
    return None


@sample("chain_matmul", "linalg_multi_dot")
def _chain(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    sizes = [draw.integer(1, 4) for _ in range(draw.integer(3, 5))]
    made = [torch.randn(a, b) for a, b in zip(sizes, sizes[1:])]
    return {"matrices": made, "tensors": made}


@sample("lstm", "gru", "rnn_tanh", "rnn_relu")
def _recurrent(torch: Any, draw: Any, overload: Any) -> dict[str, Any] | None:
    if "data" in str(overload):
        return None  # packed sequences
    layers, both, first, biases = (draw.choice([1, 2]), draw.chance(50), draw.chance(50),
                                   draw.chance(70))
    name, size = overload._schema.name, 4
    gates = 4 if "lstm" in name else 3 if "gru" in name else 1
    ways = 2 if both else 1
    params = []
    for k in range(layers * ways):
        width = 3 if k < ways else size * ways
        params += [torch.randn(gates * size, width), torch.randn(gates * size, size)]
        params += [torch.randn(gates * size), torch.randn(gates * size)] * biases
    states = [torch.randn(layers * ways, 2, size) for _ in range(1 + ("lstm" in name))]
    return {"input": torch.randn((2, 5, 3) if first else (5, 2, 3)), "params": params,
            "hx": states if "lstm" in name else states[0], "has_biases": biases,
            "num_layers": layers, "dropout": 0.0, "train": False, "bidirectional": both,
            "batch_first": first}


@sample("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training",
        "_native_batch_norm_legit")
def _batch_norm(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    def four() -> Any:
        return torch.rand(4) + 0.5

    return {"input": torch.randn(2, 4, *[3] * draw.integer(0, 3)),
            "weight": draw.choice([None, four()]), "bias": draw.choice([None, four()]),
            "running_mean": four(), "running_var": four(),
            "training": "no_stats" in str(overload) or draw.chance(10),
            "momentum": draw.choice([0.1, 0.7]), "eps": draw.choice([1e-5, 0.1]),
            "cudnn_enabled": True}


@sample("instance_norm")
def _instance_norm(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    own = draw.choice([True, False])
    stats = None if own else torch.rand(4) + 0.5
    return {"input": torch.randn(2, 4, 5), "weight": draw.choice([None, torch.rand(4)]),
            "bias": draw.choice([None, torch.rand(4)]), "running_mean": stats,
            "running_var": stats, "use_input_stats": own, "momentum": 0.1,
            "eps": draw.choice([1e-5, 0.1]), "cudnn_enabled": True}


@sample("layer_norm", "native_layer_norm", "rms_norm")
def _layer_norm(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    sizes = draw.choice([[4], [3, 4]])
    return {"input": torch.randn(2, 3, 4), "normalized_shape": sizes,
            "weight": draw.choice([None, torch.rand(sizes)]),
            "bias": draw.choice([None, torch.rand(sizes)]), "eps": draw.choice([1e-5, 0.1])}


@sample("group_norm", "native_group_norm")
def _group_norm(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    groups = draw.choice([2, 1, 4])
    return {"input": torch.randn(2, 4, 3), "num_groups": groups, "group": groups, "N": 2, "C": 4,
            "HxW": 3, "weight": draw.choice([None, torch.rand(4)]),
            "bias": draw.choice([None, torch.rand(4)]), "eps": draw.choice([1e-5, 0.1])}


@sample("prelu", "_prelu_kernel")
def _prelu(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": numbers(torch, draw, 2, 3, 4), "weight": draw.choice(
        [torch.rand(1), torch.rand(3)])}


# ------------------------------------------------------------------------------- windows


@sample(*(f"{kind}_pool{r}d" for kind in ("max", "avg") for r in (1, 2, 3)),
        *(f"max_pool{r}d_with_indices" for r in (1, 2, 3)))
def _pool(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank = _rank(str(overload))
    image = torch.randn(_image(draw, rank, 2))
    if draw.chance(20):
        image = image[0]
    return {"self": image, "kernel_size": [draw.choice([2, 3])] * draw.choice([1, rank]),
            "stride": draw.choice([[], [1], [2] * rank, [3] * rank]),
            "padding": [draw.choice([0, 1])] * rank, "dilation": [draw.choice([1, 2])] * rank,
            "ceil_mode": draw.choice([False, True]),
            "count_include_pad": draw.choice([True, False]),
            "divisor_override": draw.choice([None, 3])}


@sample(*(f"adaptive_{kind}_pool{r}d" for kind in ("max", "avg") for r in (1, 2, 3)),
        *(f"_adaptive_avg_pool{r}d" for r in (2, 3)))
def _adaptive(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank = _rank(str(overload))
    return {"self": torch.randn(_image(draw, rank, 2)),
            "output_size": [draw.integer(1, 4) for _ in range(rank)]}


@sample("im2col")
def _im2col(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(2, 3, 6, 5), "kernel_size": [draw.choice([2, 3]), 2],
            "dilation": [draw.choice([1, 2])] * 2, "padding": [draw.choice([0, 1]), 0],
            "stride": [draw.choice([1, 2]), 1]}


@sample("col2im")
def _col2im(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    from torch.nn import functional as F

    how = {"kernel_size": [draw.choice([2, 3]), 2], "dilation": [draw.choice([1, 2])] * 2,
           "padding": [draw.choice([0, 1]), 0], "stride": [draw.choice([1, 2]), 1]}
    return {"self": F.unfold(torch.randn(2, 3, 6, 5), **how), "output_size": [6, 5], **how}


@sample("pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
        "replication_pad1d", "replication_pad2d", "replication_pad3d")
def _pad(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    name = str(overload)
    rank = _rank(name) if "pad1d" in name or "pad3d" in name else 2
    widths = [draw.integer(-1, 2) for _ in range(2 * rank)]
    mode = draw.choice(["constant", "reflect", "replicate", "circular"])
    return {"self": torch.randn(_image(draw, rank, 2)), "pad": widths, "padding": widths,
            "mode": mode,
            "value": draw.choice([0, 1.5]) if "constant" in name or mode == "constant" else None}


@sample("max_unpool2d", "max_unpool3d")
def _unpool(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank = _rank(str(overload))
    size = [draw.integer(4, 6) for _ in range(rank)]
    pool = getattr(torch.nn.functional, f"max_pool{rank}d")
    values, places = pool(torch.randn(2, 3, *size), 2, return_indices=True)
    return {"self": values, "indices": places, "output_size": size, "stride": [2] * rank,
            "padding": [0] * rank}


_UPSAMPLES = ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
              "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
              "_upsample_nearest_exact3d", "upsample_linear1d",
              "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
              "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")


@sample(*_UPSAMPLES)
def _upsample(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank = _rank(str(overload))
    image = torch.randn(_image(draw, rank, 2))
    by = [draw.choice([2.0, 1.7, 0.6, 1.0]) for _ in range(rank)]
    size = [draw.integer(2, 9) for _ in range(rank)]
    out: dict[str, Any] = {"self": image, "input": image,
                           "align_corners": draw.choice([False, True])}
    if "vec" in str(overload):
        both = draw.choice([True, False])
        return {**out, "output_size": size if both else None, "scale_factors": None if both else by}
    if draw.choice([True, False]):
        return {**out, "output_size": size,
                **dict.fromkeys(("scales", "scales_d", "scales_h", "scales_w"), None)}
    size = [math.floor(n * f) for n, f in zip(image.shape[2:], by)]
    names = ("scales",) if rank == 1 else ("scales_d", "scales_h", "scales_w")[3 - rank:]
    return {**out, "output_size": size, **dict(zip(names, by))}


@sample("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "_grid_sampler_2d_cpu_fallback")
def _grid(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank = 3 if "3d" in str(overload) else 2
    return {"input": torch.randn(2, 3, *[4, 5, 3][:rank]),
            "grid": torch.randn(2, *[3, 4, 2][:rank], rank) * draw.choice([0.6, 1.5]),
            "interpolation_mode": draw.choice([0, 1, 2] if rank == 2 else [0, 1]),
            "padding_mode": draw.choice([0, 1, 2]), "align_corners": draw.choice([False, True])}


@sample("affine_grid_generator")
def _affine_grid(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    rank = draw.choice([2, 3])
    return {"theta": torch.randn(2, rank, rank + 1), "size": [2, 3, *[4, 5, 1][:rank]],
            "align_corners": draw.choice([False, True])}


@sample("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle")
def _shuffle(torch: Any, draw: Any, overload: Any) -> dict[str, Any]:
    return {"self": torch.randn(1, 8, 4, 6), "upscale_factor": 2, "downscale_factor": 2,
            "groups": draw.choice([2, 4])}
