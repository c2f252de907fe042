"""Which releases of TVM had each name that is spoken here beside those of 0.12 to 0.18.

`docs/compatibility.md` lists these rows; a test holds them against the tables that they are about.
"""

from __future__ import annotations

_2022 = "Relax of 2022, before struct info"
_TRAINING = "Relax of 2022, where training was developed"
_NONE = "no release: versions under development"
_SBLOCK, _TIRX = "0.24 and later", "0.24 and later"

#: where a name stands -> name -> the releases that had it
RELEASES: dict[str, dict[str, str]] = {
    "T": {
        "sblock": _SBLOCK, "sblock_attr": _SBLOCK, "sblock_alloc_buffer": _SBLOCK,
        "alloc_sblock_buffer": _NONE, "store": "0.7 to 0.11", "realize": "0.7 to 0.11",
        "tvm_call_cpacked": "0.11 to 0.23", "var": "0.7 to 0.11", "buffer_decl": "0.8 to 0.12",
        "Buffer[shape, dtype]": "0.9 to 0.11",
    },
    "R": {
        "Any": "0.26 and later", "call_tir_packed": _NONE,
        "invoke_closure_pure": _NONE,
        "entry": "0.12 to 0.18", "match_shape": _2022,
        "call_tir(f, args, shape, dtype=)": _2022,
    },
    "annotations of Relax functions": {
        "Tensor": _2022, "Shape": _2022, "Object": _2022, "Tuple": _2022, "Callable": _2022,
        "_": _2022,
    },
    "relax": {
        "DynTensorType": _2022, "ShapeType": _2022, "ObjectType": _2022, "FuncType": _2022,
        "PackedFuncType": _2022, "RuntimeDepShape": _2022, "function": _2022, "vm_build": _2022,
        "vm.build": _2022, "dataflow": _2022, "output": _2022,
        "TensorType": "0.20 and later", "TupleType": "0.20 and later",
        "PrimType": "0.20 and later", "AnyType": "0.26 and later", "Type": "0.20 and later",
    },
    "relax.op": {
        "transpose": _2022, "concatenate": _2022, "cast": _2022, "trilu": _2022,
        "nn.dense": _2022, "nn.matmul": _2022, "nn.flatten": _2022,
        "nn.cross_entropy": _TRAINING, "nn.softmax_cross_entropy": _TRAINING,
        "nn.sigmoid": _TRAINING, "nn.adaptive_max_pool2d": _NONE,
    },
    "tir.Schedule": {
        "get_sblock": _SBLOCK, "debug_mode=": _NONE,
        "blockize(loop=)": "0.9 to 0.12",
    },
    "meta_schedule": {
        "TuneConfig": "0.9 and 0.10", "ReplayTraceConfig": _NONE,
        "ReplayFuncConfig": _NONE,
        "EvolutionarySearchConfig": _NONE,
        "default_config": "0.9 and 0.10",
    },
    "tvm": {
        "tirx": _TIRX, "s_tir": _TIRX, "script.tirx": _TIRX, "script.relax": "2022",
        "script.parser.tir": "0.12 to 0.18", "script.parser.ir": "0.12 to 0.18",
    },
}

__all__ = ["RELEASES"]
