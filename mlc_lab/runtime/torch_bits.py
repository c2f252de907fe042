"""Torch tensors whose memory does not hold their numbers: negated and conjugate views.

`x.conj().imag` is a view of x with the negative bit set: its memory holds the numbers with the
other sign, and torch turns them when it reads. DLPack knows no such bit and torch exports the
memory as it is, so a kernel would compute with wrong signs. Such a tensor is refused here,
wherever it comes in.

Tensors that are passed to kernels are exported by a C function that torch names in
`torch.Tensor.__dlpack_c_exchange_api__`, on a path without Python. `guard()` puts a function before
it that looks at the bits: when a kernel is taken from its module, and for kernels that were taken
before torch was loaded, at the end of torch's import. Where the bits are in a tensor object is
found by comparing tensors that have them with tensors that have not; where that does not give one
answer, torch's function stays.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.abc
import sys
from typing import Any

from .llir import ModuleText

__all__ = ["guard", "refuse_lazy_views"]

_ADVICE = ("is a view that torch negates or conjugates when it reads it: its memory holds other "
           "numbers. Pass x.resolve_neg().resolve_conj()")
#: what torch's objects are searched for the bits in, in words of 8 bytes
_OBJECT_WORDS, _TENSOR_WORDS = 8, 24
#: of the struct DLPackExchangeAPI: a header of two words, then five functions
_API_WORDS, _MANAGED, _PLAIN = 7, 3, 5

_state: dict[str, Any] = {"done": False, "guarded": False, "waiting": False, "keep": []}


def refuse_lazy_views(value: Any, what: str = "the tensor") -> None:
    """Raise ValueError for a torch tensor that is a negated or conjugate view."""
    for ask in ("is_neg", "is_conj"):
        test = getattr(value, ask, None)
        if test is not None and callable(test) and test():
            raise ValueError(f"{what} {_ADVICE}")


def guard() -> bool:
    """Have kernels refuse such tensors, now or as soon as torch is loaded. Whether they do now."""
    if _state["done"]:
        return _state["guarded"]
    torch = sys.modules.get("torch")
    if torch is None:
        if not _state["waiting"]:
            _state["waiting"] = True
            sys.meta_path.insert(0, _AtImport())
        return False
    if getattr(getattr(torch, "__spec__", None), "_initializing", False):
        return False  # another thread is importing it
    return _guard_tensors(torch)


def _guard_tensors(torch: Any) -> bool:
    capsule = getattr(getattr(torch, "Tensor", None), "__dlpack_c_exchange_api__", None)
    place = _place_of_bits(torch) if capsule is not None else None
    if place is not None:
        _guard_table(torch, capsule, place)
    _state.update(done=True, guarded=place is not None)
    return _state["guarded"]


class _AtImport(importlib.abc.MetaPathFinder):
    """Finds torch as the other finders do; when it has been executed, its tensors are guarded.

    It stays in `sys.meta_path`: taking it out could make another thread's import skip a finder.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != "torch":
            return None
        others = [f.find_spec for f in sys.meta_path
                  if type(f) is not _AtImport and hasattr(f, "find_spec")]
        spec = next(filter(None, (find(fullname, path, target) for find in others)), None)
        loader: Any = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module: Any) -> None:
            del loader.exec_module
            execute(module)
            # an error of ours must not make the import fail: it waits for the next kernel
            with contextlib.suppress(Exception):
                _guard_tensors(module)

        with contextlib.suppress(AttributeError):  # a loader that takes no attributes
            loader.exec_module = exec_module
        return spec


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address))


def _place_of_bits(torch: Any) -> tuple[int, int, int] | None:
    """(offset of the tensor in its object, offset of the word in the tensor, bits), if certain."""
    shapes = ((), (1,), (2,), (3, 4), (5, 1, 2), (7,))
    try:
        real = [torch.zeros(shape) for shape in shapes]
        number = [torch.zeros(shape, dtype=torch.complex64) for shape in shapes]
        negated = [(x, torch._neg_view(x)) for x in real]
        conjugate = [(x, x.conj()) for x in number]
        inside = set(range(_OBJECT_WORDS))
        for x in (x for pair in negated + conjugate for x in pair):
            inside &= {n for n, word in enumerate(_words(id(x), _OBJECT_WORDS))
                       if word == x._cdata}
        places = [_set_in_second(pairs) for pairs in (negated, conjugate)]
    except (AttributeError, RuntimeError, TypeError):
        return None
    if len(inside) != 1 or any(len(found) != 1 for found in places):
        return None
    (word, first), (other, second) = (found.pop() for found in places)
    if word != other or first == second or any(
            _words(x._cdata, _TENSOR_WORDS)[word] & (first | second) for x in real + number):
        return None
    return 8 * inside.pop(), 8 * word, first | second


def _set_in_second(pairs: Any) -> set[tuple[int, int]]:
    """The (word, bit) that in each pair of tensors is set in the second only, the word differing in
    no other bit."""
    found: set[tuple[int, int]] | None = None
    for pair in pairs:
        a, b = (_words(x._cdata, _TENSOR_WORDS) for x in pair)
        new = {(n, y & ~x) for n, (x, y) in enumerate(zip(a, b))
               if bin(x ^ y).count("1") == 1 and y & ~x}
        found = new if found is None else found & new
    return found or set()


def _guard_table(torch: Any, capsule: Any, place: tuple[int, int, int]) -> None:
    """Put functions that ask for the bits before two of those in torch's table.

    The table is changed where it lies, since tvm-ffi may have remembered its address; where that
    is not known to be possible, torch is given another one.
    """
    from . import jit, linking

    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"dlpack_exchange_api"
    address = api.PyCapsule_GetPointer(capsule, name)
    words = _words(address, _API_WORDS)
    where = jit.host_machine(0)
    text = ModuleText(where.triple, where.data_layout)
    symbols = {n: f"mlc_lab_guarded_{n}" for n in (_MANAGED, _PLAIN) if words[n]}
    for n, symbol in symbols.items():
        _write(text, symbol, words[n], place)
    compiled = jit.compile_ir(str(text), where, level=0)
    library = linking.link(compiled.obj, symbols.values(), {})
    in_place = _is_writable(address, 8 * _API_WORDS)
    kind = ctypes.c_uint64 * _API_WORDS
    table = kind.from_address(address) if in_place else kind(*words)
    for n, symbol in symbols.items():
        table[n] = library.address(symbol)
    _state["keep"] += [table, library, capsule, name]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # torch may call it to the very end
    if not in_place:
        torch.Tensor.__dlpack_c_exchange_api__ = api.PyCapsule_New(
            ctypes.addressof(table), name, None)


def _is_writable(address: int, count: int) -> bool:
    """Whether so many bytes of this process may be written; False where that is not known."""
    try:
        with open("/proc/self/maps") as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    for line in lines:
        span, rights = line.split()[:2]
        low, high = (int(x, 16) for x in span.split("-"))
        if low <= address and address + count <= high:
            return "w" in rights
    return False


def _write(m: ModuleText, symbol: str, original: int, place: tuple[int, int, int]) -> None:
    """Define `int symbol(PyObject* tensor, void* out)`: torch's function, but for such views."""
    tensor, word, bits = place
    fail = ctypes.cast(ctypes.pythonapi.PyErr_SetString, ctypes.c_void_p).value
    message = m.string(f"the torch tensor {_ADVICE}")
    with m.function("i32", symbol, [("ptr", "object"), ("ptr", "out")]) as f:
        inner = f.load("ptr", f.gep("i8", "%object", tensor))
        flags = f.op(f"and i64 {f.load('i64', f.gep('i8', inner, word))}, {bits}")
        with f.if_(f.op(f"icmp ne i64 {flags}, 0")):
            kind = f.op(f"inttoptr i64 {id(ValueError)} to ptr")
            report = f.op(f"inttoptr i64 {fail} to ptr")
            f.do(f"call void {report}(ptr {kind}, ptr {message})")
            f.ret("i32 -1")
        target = f.op(f"inttoptr i64 {original} to ptr")
        f.ret(f"i32 {f.op(f'call i32 {target}(ptr %object, ptr %out)')}")
