"""The argument checks of every kernel, driven by a table that the kernel carries.

``mlc_lab_check_args`` reads the packed arguments of tvm-ffi (a type index and eight bytes each),
compares them with the kernel's description, binds symbolic shapes, and writes a plain 64-bit value
per argument: the address of a tensor's first element, an integer, or the bits of a double. Keeping
the checks here, and only a table in the kernel, keeps kernels quick to compile and easy to read.

The description, all fields eight bytes:

    function: name, number of arguments, address of the arguments' rows, number of symbols, address
              of the symbols' names
    argument: name, kind, dtype (code | bits << 8 | lanes << 16), ndim, alignment in bytes,
              address of the extents, address of the strides, symbol of elem_offset

An extent or stride >= 0 is what the argument must have; -1 - k is symbol k, bound where it occurs
first and compared after that; ``ANY`` is not checked here. Strides of null mean a compact tensor.
An integer argument that is itself a shape variable has its symbol, plus one, in ``ndim``.
"""

from __future__ import annotations

from ..llir import FunctionText, ModuleText

TENSOR, INT, FLOAT, HANDLE, BOOL = range(5)
ANY = -(1 << 62)
UNBOUND = -(1 << 63)
ARG_ROW = 8  # words

# Packed type indices of tvm-ffi (c_api.h, TVMFFITypeIndex).
_NONE, _INT, _BOOL, _FLOAT, _POINTER, _DL_TENSOR, _TENSOR = 0, 1, 2, 3, 4, 7, 70

_DTYPE_CODES = ("int", "uint", "float", "handle", "bfloat", "complex", "bool")
_TYPE_NAMES = {
    0: "None",
    1: "an int",
    2: "a bool",
    3: "a float",
    4: "a pointer",
    5: "a dtype",
    6: "a device",
    7: "a tensor",
    8: "a string",
    11: "a string",
    65: "a string",
    68: "a function",
    70: "a tensor",
    71: "a list or tuple",
    72: "a dict",
    75: "a list",
    76: "a dict",
}


def _snprintf(triple: str) -> str:
    return "_snprintf" if "windows" in triple else "snprintf"


def _write_fail(m: ModuleText, triple: str) -> None:
    """Define the functions that raise: with a ready text, and with a printf text."""
    m.declare("void", "TVMFFIErrorSetRaisedFromCStr", ["ptr", "ptr"])
    m.declare("i32", _snprintf(triple), ["ptr", "i64", "ptr", "..."])
    with m.function("i32", "mlc_lab_fail", [("ptr", "kind"), ("ptr", "text")], attrs="cold") as f:
        f.call("void", "TVMFFIErrorSetRaisedFromCStr", ["ptr %kind", "ptr %text"])
        f.ret("i32 -1")
    words = [("i64", name) for name in "abcde"]
    params = [("ptr", "kind"), ("ptr", "format"), ("ptr", "name"), *words]
    with m.function("i32", "mlc_lab_raise", params, attrs="cold noinline") as f:
        text = f.var("[1024 x i8]")
        f.do(
            f"call i32 (ptr, i64, ptr, ...) @{_snprintf(triple)}(ptr {text}, i64 1023, "
            "ptr %format, ptr %name, i64 %a, i64 %b, i64 %c, i64 %d, i64 %e)"
        )
        f.store("i8", "0", f.gep("i8", text, 1023))
        f.call("void", "TVMFFIErrorSetRaisedFromCStr", ["ptr %kind", f"ptr {text}"])
        f.ret("i32 -1")


def _write_match(m: ModuleText, triple: str) -> None:
    """Define the comparison of one number with its entry in the table."""
    params = [("ptr", "desc"), ("ptr", "syms"), ("i64", "want"), ("i64", "got")]
    params += [("ptr", "what"), ("i64", "at"), ("i64", "index")]
    with m.function("i1", "mlc_lab_match", params, "internal", "noinline") as f:

        def fail(tail: str, *operands: str) -> None:
            # "shape[%lld]" becomes text first, then the whole message.
            place = f.var("[64 x i8]")
            f.do(
                f"call i32 (ptr, i64, ptr, ...) @{_snprintf(triple)}"
                f"(ptr {place}, i64 63, ptr %what, i64 %at)"
            )
            row = f.gep(f"[{ARG_ROW} x i64]", f.load("ptr", f.gep("i64", "%desc", 2)), "%index")
            number = f.op("add i64 %index, 1")
            text = m.string("%s: argument %lld (%s): %s is %lld, expected " + tail)
            words = [f"i64 {number}"]
            words += [f"i64 {f.load('i64', row)}", f"i64 {f.op(f'ptrtoint ptr {place} to i64')}"]
            words += ["i64 %got", *operands, "i64 0"][:2]
            name = f.load("ptr", "%desc")
            f.do(
                f"call i32 @mlc_lab_raise(ptr {m.string('ValueError')}, ptr {text}, ptr {name}, "
                f"{', '.join(words)})"
            )
            f.ret("i1 0")

        with f.if_(f.op("icmp eq i64 %want, %got")):
            f.ret("i1 1")
        with f.if_(f.op("icmp sge i64 %want, 0")):
            fail("%lld", "i64 %want")
        with f.if_(f.op(f"icmp eq i64 %want, {ANY}")):
            f.ret("i1 1")
        which = f.op("sub i64 -1, %want")
        slot = f.gep("i64", "%syms", which)
        bound = f.load("i64", slot)
        with f.if_(f.op(f"icmp eq i64 {bound}, {UNBOUND}")):
            f.store("i64", "%got", slot)
            f.ret("i1 1")
        with f.if_(f.op(f"icmp eq i64 {bound}, %got")):
            f.ret("i1 1")
        names = f.load("ptr", f.gep("i64", "%desc", 4))
        symbol = f.load("i64", f.gep("ptr", names, which))
        relation = f.var("[96 x i8]")
        f.do(
            f"call i32 (ptr, i64, ptr, ...) @{_snprintf(triple)}(ptr {relation}, i64 95, "
            f"ptr {m.string('%lld (%s, from an earlier argument)')}, i64 {bound}, i64 {symbol})"
        )
        fail("%s", f"i64 {f.op(f'ptrtoint ptr {relation} to i64')}")


class _Checks:
    """The body of ``mlc_lab_check_args``."""

    def __init__(self, m: ModuleText, f: FunctionText, triple: str) -> None:
        self.m, self.f, self.printf = m, f, _snprintf(triple)
        self.name = f.load("ptr", "%desc")
        self.index = self.arg = self.row = self.out = self.tag = ""  # of the argument at hand

    def field(self, row: str, index: int, ty: str = "i64") -> str:
        return self.f.load(ty, self.f.gep("i64", row, index))

    def fail(self, kind: str, fmt: str, *operands: str) -> None:
        """Raise with a printf text of up to five 64-bit operands, typed ``i64`` or ``ptr``."""
        f = self.f
        words = [o[4:] if o[0] == "i" else f.op(f"ptrtoint {o} to i64") for o in operands]
        words += ["0"] * (5 - len(words))
        f.do(
            f"call i32 @mlc_lab_raise(ptr {self.m.string(kind)}, "
            f"ptr {self.m.string('%s: ' + fmt)}, ptr {self.name}, "
            f"{', '.join('i64 ' + word for word in words)})"
        )
        f.ret("i32 -1")

    def fail_arg(self, kind: str, fmt: str, *operands: str) -> None:
        """Raise with a text that names the argument, counted from one."""
        number = self.f.op(f"add i64 {self.index}, 1")
        self.fail(kind, "argument %lld (%s): " + fmt, f"i64 {number}", f"ptr {self.arg}", *operands)

    def fail_type(self, expected: str) -> None:
        what = self.f.call("ptr", "mlc_lab_type_name", [f"i32 {self.tag}"])
        self.fail_arg("TypeError", f"expected {expected}, got %s", f"ptr {what}")

    def unless(self, cond: str):
        return self.f.else_(cond)

    def match(self, expected: str, actual: str, what: str, at: str) -> None:
        """Compare a number with a table entry, binding it when it is a symbol not yet bound.

        ``what`` is a printf text that takes the position ``at``.
        """
        f = self.f
        ok = f.op(
            f"call i1 @mlc_lab_match(ptr %desc, ptr %syms, i64 {expected}, i64 {actual}, "
            f"ptr {self.m.string(what)}, i64 {at}, i64 {self.index})"
        )
        with self.unless(ok):
            f.ret("i32 -1")

    def tensor(self, value: str) -> None:
        f, row = self.f, self.row
        is_object = f.op(f"icmp eq i32 {self.tag}, {_TENSOR}")
        is_view = f.op(f"icmp eq i32 {self.tag}, {_DL_TENSOR}")
        with self.unless(f.op(f"or i1 {is_object}, {is_view}")):
            self.fail_type("a tensor")
        inside = f.gep("i8", value, 24)  # a tensor object holds its DLTensor after the header
        t = f.op(f"select i1 {is_object}, ptr {inside}, ptr {value}")
        ndim = f.op(f"zext i32 {f.load('i32', f.gep('i8', t, 16))} to i64")
        expected = self.field(row, 3)
        with self.unless(f.op(f"icmp eq i64 {ndim}, {expected}")):
            self.fail_arg(
                "ValueError",
                "expected %lld dimensions, got %lld",
                f"i64 {expected}",
                f"i64 {ndim}",
            )
        dtype = f.op(f"zext i32 {f.load('i32', f.gep('i8', t, 20))} to i64")
        want = self.field(row, 2)
        with self.unless(f.op(f"icmp eq i64 {dtype}, {want}")):
            names = []
            for packed in (want, dtype):
                text = f.var("i8", count=64)
                f.call("void", "mlc_lab_dtype_name", [f"i64 {packed}", f"ptr {text}"])
                names.append(f"ptr {text}")
            self.fail_arg("TypeError", "expected dtype %s, got %s", *names)
        place = f.load("i32", f.gep("i8", t, 8))
        on_cpu, pinned = f.op(f"icmp eq i32 {place}, 1"), f.op(f"icmp eq i32 {place}, 3")
        with self.unless(f.op(f"or i1 {on_cpu}, {pinned}")):
            self.fail_arg(
                "ValueError",
                "the tensor is on device type %lld, but this kernel runs on the CPU; copy it there",
                f"i64 {f.op(f'zext i32 {place} to i64')}",
            )
        shape = f.load("ptr", f.gep("i8", t, 24))
        extents = self.field(row, 5, "ptr")
        with f.for_range("0", expected) as i:
            extent = f.load("i64", f.gep("i64", shape, i))
            self.match(f.load("i64", f.gep("i64", extents, i)), extent, "shape[%lld]", i)
        self.strides(t, shape, expected)
        start = f.load("ptr", t)
        offset = f.load("i64", f.gep("i8", t, 40))
        offset_symbol = self.field(row, 7)
        wants_offset = f.op(f"icmp ne i64 {offset_symbol}, {ANY}")
        with f.if_(wants_offset):
            bits = f.op(f"and i64 {f.op(f'lshr i64 {want}, 8')}, 255")
            size = f.op(f"lshr i64 {f.op(f'add i64 {bits}, 7')}, 3")
            self.match(offset_symbol, f.op(f"sdiv i64 {offset}, {size}"), "elem_offset", "0")
        moved = f.gep("i8", start, offset)
        # With a symbolic elem_offset the kernel adds the offset itself.
        data = f.op(f"select i1 {wants_offset}, ptr {start}, ptr {moved}")
        address = f.op(f"ptrtoint ptr {data} to i64")
        mask = f.op(f"sub i64 {self.field(row, 4)}, 1")
        with self.unless(f.op(f"icmp eq i64 {f.op(f'and i64 {address}, {mask}')}, 0")):
            self.fail_arg(
                "ValueError",
                "the data is not aligned to %lld bytes; pass a copy of it",
                f"i64 {self.field(row, 4)}",
            )
        f.store("i64", address, self.out)

    def strides(self, t: str, shape: str, ndim: str) -> None:
        f = self.f
        strides = f.load("ptr", f.gep("i8", t, 32))
        wanted = self.field(self.row, 6, "ptr")
        compact, given = f.new_label("compact"), f.new_label("strided")
        end, check = f.new_label("checked"), f.new_label("check")
        f.cond_br(f.op(f"icmp eq ptr {wanted}, null"), compact, given)
        f.label(compact)
        none = f.op(f"icmp eq ptr {strides}, null")
        f.cond_br(none, end, check)
        f.label(check)
        product = f.var("i64")
        f.store("i64", "1", product)
        slot = f.var("i64")
        # Strides do not matter where an extent is zero.
        with f.for_range("0", ndim) as d:
            with f.if_(f.op(f"icmp eq i64 {f.load('i64', f.gep('i64', shape, d))}, 0")):
                f.br(end)
        f.store("i64", ndim, slot)
        with f.loop():
            left = f.load("i64", slot)
            with f.if_(f.op(f"icmp eq i64 {left}, 0")):
                f.break_()
            d = f.op(f"sub i64 {left}, 1")
            f.store("i64", d, slot)
            extent = f.load("i64", f.gep("i64", shape, d))
            stride = f.load("i64", f.gep("i64", strides, d))
            expected = f.load("i64", product)
            # The stride of an axis with one element, or of an empty tensor, does not matter.
            unit = f.op(f"icmp sle i64 {extent}, 1")
            same = f.op(f"icmp eq i64 {stride}, {expected}")
            with self.unless(f.op(f"or i1 {unit}, {same}")):
                self.fail_arg(
                    "ValueError",
                    "the tensor is not compact: strides[%lld] is %lld, expected %lld; pass a "
                    "contiguous copy (numpy.ascontiguousarray or tensor.contiguous())",
                    f"i64 {d}",
                    f"i64 {stride}",
                    f"i64 {expected}",
                )
            f.store("i64", f.op(f"mul i64 {expected}, {extent}"), product)
        f.br(end)
        f.label(given)
        total = f.var("i64")
        f.store("i64", "1", total)
        slot = f.var("i64")
        f.store("i64", ndim, slot)
        with f.loop():
            left = f.load("i64", slot)
            with f.if_(f.op(f"icmp eq i64 {left}, 0")):
                f.break_()
            d = f.op(f"sub i64 {left}, 1")
            f.store("i64", d, slot)
            dense = f.load("i64", total)
            extent = f.load("i64", f.gep("i64", shape, d))
            f.store("i64", f.op(f"mul i64 {dense}, {extent}"), total)
            actual = f.var("i64")
            f.store("i64", dense, actual)
            with f.else_(f.op(f"icmp eq ptr {strides}, null")):
                f.store("i64", f.load("i64", f.gep("i64", strides, d)), actual)
            found = f.load("i64", actual)
            self.match(f.load("i64", f.gep("i64", wanted, d)), found, "strides[%lld]", d)
        f.label(end)

    def integer(self, value: str) -> None:
        f = self.f
        is_int, is_bool = (f.op(f"icmp eq i32 {self.tag}, {code}") for code in (_INT, _BOOL))
        with self.unless(f.op(f"or i1 {is_int}, {is_bool}")):
            self.fail_type("an int")
        number = f.op(f"ptrtoint ptr {value} to i64")
        dtype = self.field(self.row, 2)
        bits = f.op(f"and i64 {f.op(f'lshr i64 {dtype}, 8')}, 255")
        up = f.op(f"sub i64 64, {bits}")
        signed = f.op(f"ashr i64 {f.op(f'shl i64 {number}, {up}')}, {up}")
        plain = f.op(f"lshr i64 {f.op(f'shl i64 {number}, {up}')}, {up}")
        unsigned = f.op(f"icmp eq i64 {f.op(f'and i64 {dtype}, 255')}, 1")
        kept = f.op(f"select i1 {unsigned}, i64 {plain}, i64 {signed}")
        with self.unless(f.op(f"icmp eq i64 {kept}, {number}")):
            text = f.var("i8", count=64)
            f.call("void", "mlc_lab_dtype_name", [f"i64 {dtype}", f"ptr {text}"])
            self.fail_arg(
                "ValueError", "%lld does not fit into %s", f"i64 {number}", f"ptr {text}"
            )
        symbol = self.field(self.row, 3)
        with self.unless(f.op(f"icmp eq i64 {symbol}, 0")):
            self.match(f.op(f"sub i64 0, {symbol}"), number, "the value", "0")
        f.store("i64", number, self.out)

    def floating(self, value: str) -> None:
        f = self.f
        is_float = f.op(f"icmp eq i32 {self.tag}, {_FLOAT}")
        number = f.op(f"ptrtoint ptr {value} to i64")
        f.store("i64", number, self.out)
        with self.unless(is_float):
            is_int, is_bool = (f.op(f"icmp eq i32 {self.tag}, {code}") for code in (_INT, _BOOL))
            with self.unless(f.op(f"or i1 {is_int}, {is_bool}")):
                self.fail_type("a float")
            wide = f.op(f"sitofp i64 {number} to double")
            f.store("double", wide, self.out)

    def handle(self, value: str) -> None:
        f = self.f
        known = f.op(f"icmp eq i32 {self.tag}, {_POINTER}")
        for code in (_NONE, _DL_TENSOR, _TENSOR):
            known = f.op(f"or i1 {known}, {f.op(f'icmp eq i32 {self.tag}, {code}')}")
        with self.unless(known):
            self.fail_type("a pointer or a tensor")
        f.store("ptr", value, self.out)
        is_object = f.op(f"icmp eq i32 {self.tag}, {_TENSOR}")
        is_view = f.op(f"icmp eq i32 {self.tag}, {_DL_TENSOR}")
        with f.if_(f.op(f"or i1 {is_object}, {is_view}")):
            inside = f.gep("i8", value, 24)
            t = f.op(f"select i1 {is_object}, ptr {inside}, ptr {value}")
            offset = f.load("i64", f.gep("i8", t, 40))
            f.store("ptr", f.gep("i8", f.load("ptr", t), offset), self.out)

    def run(self) -> None:
        f = self.f
        nargs = f.load("i64", f.gep("i64", "%desc", 1))
        with self.unless(f.op(f"icmp eq i64 {nargs}, {f.op('zext i32 %n to i64')}")):
            given = f.op("zext i32 %n to i64")
            self.fail(
                "TypeError",
                "expects %lld arguments, got %lld",
                f"i64 {nargs}",
                f"i64 {given}",
            )
        with f.for_range("0", f.load("i64", f.gep("i64", "%desc", 3))) as k:
            f.store("i64", str(UNBOUND), f.gep("i64", "%syms", k))
        rows = f.load("ptr", f.gep("i64", "%desc", 2))
        with f.for_range("0", nargs) as i:
            self.index = i
            self.row = f.gep(f"[{ARG_ROW} x i64]", rows, i)
            self.arg = f.load("ptr", self.row)
            self.out = f.gep("i64", "%out", i)
            packed = f.gep("[2 x i64]", "%args", i)
            self.tag = f.load("i32", packed)
            value = f.load("ptr", f.gep("i64", packed, 1))
            end = f.new_label("next")
            labels = [f.new_label("kind") for _ in range(5)]
            cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels))
            f.do(f"switch i64 {self.field(self.row, 1)}, label %{end} [{cases}]")
            f.terminated = True
            writers = (self.tensor, self.integer, self.floating, self.handle, self.integer)
            for label, writer in zip(labels, writers, strict=True):
                f.label(label)
                writer(value)
                f.br(end)
            f.label(end)
        f.ret("i32 0")


def _write_names(m: ModuleText, triple: str) -> None:
    """Define the names of types and dtypes for messages."""
    with m.function("ptr", "mlc_lab_type_name", [("i32", "tag")], "internal", "cold noinline") as f:
        labels = {tag: f.new_label("t") for tag in _TYPE_NAMES}
        cases = " ".join(f"i32 {tag}, label %{label}" for tag, label in labels.items())
        f.do(f"switch i32 %tag, label %other [{cases}]")
        f.terminated = True
        for tag, label in labels.items():
            f.label(label)
            f.ret(f"ptr {m.string(_TYPE_NAMES[tag])}")
        f.label("other")
        f.ret(f"ptr {m.string('an object')}")
    names = ", ".join(f"ptr {m.string(name)}" for name in _DTYPE_CODES)
    m.globals.append(f"@mlc_lab_codes = internal constant [{len(_DTYPE_CODES)} x ptr] [{names}]")
    params = [("i64", "dtype"), ("ptr", "text")]
    with m.function("void", "mlc_lab_dtype_name", params, "internal", "cold noinline") as f:
        printf = f"call i32 (ptr, i64, ptr, ...) @{_snprintf(triple)}(ptr %text, i64 63, ptr "
        code = f.op("and i64 %dtype, 255")
        bits = f.op(f"and i64 {f.op('lshr i64 %dtype, 8')}, 255")
        lanes = f.op("lshr i64 %dtype, 16")
        with f.if_(f.op(f"icmp uge i64 {code}, {len(_DTYPE_CODES)}")):
            f.do(f"{printf}{m.string('with DLPack type code %lld')}, i64 {code})")
            f.ret()
        name = f.load("ptr", f.gep("ptr", "@mlc_lab_codes", code))
        with f.if_(f.op(f"icmp eq i64 {code}, 6")):
            f.do(f"{printf}{m.string('%s')}, ptr {name})")
            f.ret()
        with f.if_(f.op(f"icmp eq i64 {lanes}, 1")):
            f.do(f"{printf}{m.string('%s%lld')}, ptr {name}, i64 {bits})")
            f.ret()
        f.do(f"{printf}{m.string('%s%lldx%lld')}, ptr {name}, i64 {bits}, i64 {lanes})")
        f.ret()


def write(m: ModuleText, triple: str) -> None:
    """Define ``mlc_lab_check_args(desc, args, n, out, syms)``: 0, or -1 with an error raised."""
    _write_fail(m, triple)
    _write_match(m, triple)
    _write_names(m, triple)
    params = [("ptr", "desc"), ("ptr", "args"), ("i32", "n"), ("ptr", "out"), ("ptr", "syms")]
    with m.function("i32", "mlc_lab_check_args", params) as f:
        _Checks(m, f, triple).run()
