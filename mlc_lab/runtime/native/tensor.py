"""Results of native code: tensors that it allocates, and tuples of them.

A tensor is one block of the C heap: the DLPack header, shape, strides, and then the data, aligned.
tvm-ffi makes an object of it; when nobody refers to that any more, the block is freed.
"""

from __future__ import annotations

from ..llir import ModuleText

_TENSOR = 70  # the type index of tensors in tvm-ffi's ABI
# Offsets in DLManagedTensorVersioned.
_CTX, _DELETER, _FLAGS, _DATA, _DEVICE, _NDIM, _DTYPE, _SHAPE, _STRIDES, _OFFSET = (
    8, 16, 24, 32, 40, 48, 52, 56, 64, 72)
_HEADER = 80
_ALIGN = 128
_ARRAY_MAKER = "ffi.Array"


def write(m: ModuleText, triple: str) -> None:
    """Define ``mlc_lab_new_tensor(shape, ndim, dtype, bytes, any)``, which gives the data pointer
    (null when memory is out), and ``mlc_lab_new_tuple(anys, n, any)``: 0, or an error raised."""
    m.declare("ptr", "malloc", ["i64"])
    m.declare("void", "free", ["ptr"])
    m.declare("i32", "TVMFFITensorFromDLPackVersioned", ["ptr", "i32", "i32", "ptr"])
    m.declare("i32", "TVMFFIFunctionGetGlobal", ["ptr", "ptr"])
    m.declare("i32", "TVMFFIFunctionCall", ["ptr", "ptr", "i32", "ptr"])
    m.declare("i32", "TVMFFIObjectDecRef", ["ptr"])
    with m.function("void", "mlc_lab_free_tensor", [("ptr", "self")], "internal") as f:
        f.call("void", "free", ["ptr %self"])
        f.ret()
    _write_new_tensor(m)
    _write_new_tuple(m)


def _write_new_tensor(m: ModuleText) -> None:
    params = [("ptr", "shape"), ("i64", "ndim"), ("i64", "dtype"), ("i64", "bytes"), ("ptr", "any")]
    with m.function("ptr", "mlc_lab_new_tensor", params) as f:
        words = f.op("shl i64 %ndim, 4")  # shape and strides
        head = f.op(f"add i64 {words}, {_HEADER + _ALIGN}")
        block = f.call("ptr", "malloc", [f"i64 {f.op(f'add i64 {head}, %bytes')}"])
        with f.if_(f.op(f"icmp eq ptr {block}, null")):
            f.ret("ptr null")
        start = f.op(f"add i64 {f.op(f'ptrtoint ptr {block} to i64')}, {head}")
        data = f.op(f"inttoptr i64 {f.op(f'and i64 {start}, {-_ALIGN}')} to ptr")
        shape = f.gep("i8", block, _HEADER)
        strides = f.gep("i64", shape, "%ndim")
        f.store("i32", "1", block)
        f.store("i32", "0", f.gep("i8", block, 4))
        f.store("ptr", "null", f.gep("i8", block, _CTX))
        f.store("ptr", "@mlc_lab_free_tensor", f.gep("i8", block, _DELETER))
        f.store("i64", "0", f.gep("i8", block, _FLAGS))
        f.store("ptr", data, f.gep("i8", block, _DATA))
        f.store("i64", "1", f.gep("i8", block, _DEVICE))  # the CPU, number 0
        f.store("i32", f.op("trunc i64 %ndim to i32"), f.gep("i8", block, _NDIM))
        f.store("i32", f.op("trunc i64 %dtype to i32"), f.gep("i8", block, _DTYPE))
        f.store("ptr", shape, f.gep("i8", block, _SHAPE))
        f.store("ptr", strides, f.gep("i8", block, _STRIDES))
        f.store("i64", "0", f.gep("i8", block, _OFFSET))
        stride = f.var("i64", "1")
        with f.for_range("0", "%ndim") as i:
            d = f.op(f"sub i64 {f.op('sub i64 %ndim, 1')}, {i}")
            extent = f.load("i64", f.gep("i64", "%shape", d))
            f.store("i64", extent, f.gep("i64", shape, d))
            step = f.load("i64", stride)
            f.store("i64", step, f.gep("i64", strides, d))
            f.store("i64", f.op(f"mul i64 {step}, {extent}"), stride)
        place = f.gep("i8", "%any", 8)
        code = f.call("i32", "TVMFFITensorFromDLPackVersioned",
                      [f"ptr {block}", "i32 0", "i32 0", f"ptr {place}"])
        with f.if_(f.op(f"icmp ne i32 {code}, 0")):
            f.call("void", "free", [f"ptr {block}"])
            f.ret("ptr null")
        f.store("i64", str(_TENSOR), "%any")
        f.ret(f"ptr {data}")


def _write_new_tuple(m: ModuleText) -> None:
    name = m.string(_ARRAY_MAKER)
    m.globals.append("@mlc_lab_array_maker = internal global ptr null, align 8")
    m.globals.append(f"@mlc_lab_array_name = internal constant {{ptr, i64}} {{ptr {name}, "
                     f"i64 {len(_ARRAY_MAKER)}}}, align 8")
    params = [("ptr", "anys"), ("i32", "n"), ("ptr", "any")]
    with m.function("i32", "mlc_lab_new_tuple", params) as f:
        with f.if_(f.op(f"icmp eq ptr {f.load('ptr', '@mlc_lab_array_maker')}, null")):
            code = f.call("i32", "TVMFFIFunctionGetGlobal",
                          ["ptr @mlc_lab_array_name", "ptr @mlc_lab_array_maker"])
            with f.if_(f.op(f"icmp ne i32 {code}, 0")):
                f.ret(f"i32 {code}")
        maker = f.load("ptr", "@mlc_lab_array_maker")
        f.store("i64", "0", "%any")
        f.store("i64", "0", f.gep("i8", "%any", 8))
        code = f.call("i32", "TVMFFIFunctionCall",
                      [f"ptr {maker}", "ptr %anys", "i32 %n", "ptr %any"])
        # The tuple has references of its own; where it was not made, the items are freed.
        with f.for_range("0", f.op("sext i32 %n to i64")) as i:
            item = f.load("ptr", f.gep("i8", f.gep("[2 x i64]", "%anys", i), 8))
            f.call("i32", "TVMFFIObjectDecRef", [f"ptr {item}"])
        f.ret(f"i32 {code}")
