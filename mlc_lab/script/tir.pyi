# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from builtins import bool as _bool
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from mlc_lab.tir.buffer import Buffer as _Buffer
from mlc_lab.tir.expr import BufferLoad as _BufferLoad
from mlc_lab.tir.expr import ExprLike as _ExprLike
from mlc_lab.tir.expr import IterVar as _IterVar
from mlc_lab.tir.expr import PrimExpr as _PrimExpr
from mlc_lab.tir.expr import Range as _Range
from mlc_lab.tir.expr import Var as _Var
from mlc_lab.tir.stmt import BufferRegion as _BufferRegion
from typing import Any as _Any
from typing import Iterable as _Iterable
from . import typing_extensions as _decorators
from typing import TYPE_CHECKING, Any, Callable
from ..above import above
from ..ir import dtype as dt
from ..tir import expr as E
from ..tir import op as O
from ..tir.buffer import Buffer as _Buffer
from ..tir.buffer import decl_buffer as _decl_buffer
from ..tir.function import IndexMap
from ..tir.stmt import BufferRegion
from .intrinsics import CALL_NAMES, DTYPE_FIRST, DTYPE_LAST
from .intrinsics import PRIM_FUNC_OPTIONS as _OPTIONS
from collections.abc import Mapping, Sequence
from ..tir.expr import ExprLike
class Form:
    """A word of the script language whose meaning is in the parser."""
    name: str

    def __init__(self, name: str) -> None:
        ...

    def __repr__(self) -> str:
        ...

    def __call__(self, *args: object, **kwargs: object) -> Any:
        ...
class DtypeName:
    """T.float32 and its like: an annotation, a constant `T.float32(0)`, a new var `T.int32()`."""
    dtype: str

    def __init__(self, dtype: str) -> None:
        ...

    def __repr__(self) -> str:
        ...

    def __call__(self, expr: ExprLike | str | None=None, is_size_var: _bool=False) -> Any:
        """`expr` as this type; without one, a new variable of it."""
class HandleName(DtypeName):
    """T.handle: the type of pointers. T.handle("float32", "shared") is a new typed pointer."""

    def __call__(self, dtype: object=None, storage_scope: str='global', *, is_size_var: _bool=False) -> Any:
        """A new pointer variable; an expression is cast."""
class BufferName(Form):
    """T.Buffer(shape, dtype): the annotation of a parameter, or a buffer over existing data."""

    def __call__(self, shape: Any, dtype: Any='float32', data: Any=None, strides: Any=None, elem_offset: Any=None, scope: str='global', align: int=-1, offset_factor: int=0, buffer_type: str='', axis_separators: Any=None, **_: object) -> _Buffer:
        """A buffer of `shape`; dimensions given by name become new variables."""

    def __getitem__(self, key: Any) -> _Buffer:
        """T.Buffer[(128,), "float32"], the form before TVM 0.11."""

    @staticmethod
    def subscript(key: Any) -> tuple:
        """The arguments that a subscript stands for."""
def dtype_of(value: Any) -> str:
    """A dtype given as string, as T.float32 or as a numpy dtype."""
def as_expr(value: Any) -> Any:
    """A value as an operand: regions with constant extents become vector loads."""
def Not(a: ExprLike) -> Any:
    """The node Not(a), without folding."""
def Cast(dtype: Any, value: Any) -> Any:
    """The node Cast(dtype, value), without folding."""
def cast(value: Any, dtype: Any) -> Any:
    """`value` as `dtype`; constants are converted."""
def Select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Any:
    """true_value where condition holds, else false_value; both sides may be evaluated."""
def Ramp(base: Any, stride: Any, lanes: Any) -> Any:
    """The vector base, base + stride, ... of `lanes` elements."""
def Broadcast(value: Any, lanes: Any) -> Any:
    """The vector of `lanes` times `value`."""
def Shuffle(vectors: Sequence[ExprLike], indices: Sequence[ExprLike]) -> Any:
    """Lanes picked by constant `indices` out of the concatenation of `vectors`."""
ramp = Ramp
broadcast = Broadcast
def call_intrin(dtype: Any, func_name: str | E.PrimExpr, *args: Any, annotations: Any=None) -> Any:
    """A call of an intrinsic by name with the result type given."""
def address_of(load: E.PrimExpr | _Buffer, *indices: ExprLike, dtype: object=None) -> Any:
    """The pointer to an element, T.address_of(A[i, j]); `dtype` may say that it is a handle."""
def call_packed(*args: object) -> Any:
    """A call of a registered function by name."""
tvm_call_packed = call_packed
def type_annotation(dtype: Any) -> Any:
    """A dtype as an argument of an intrinsic."""
def let(var: E.Var, value: ExprLike, body: ExprLike) -> Any:
    """body with var standing for value."""
def comm_reducer(combiner: Callable, identity: Any) -> Any:
    """A commutative reducer: T.comm_reducer(lambda x, y: x + y, [T.float32(0)])"""
def iter_var(var: E.Var | str, dom: E.Range | None, iter_type: str, thread_tag: str='') -> Any:
    """An iterator: T.iter_var(i, I.Range(0, 8), "DataPar", "")"""
def reduce(combiner: E.CommReducer, source: Sequence[ExprLike], init: Sequence[ExprLike], axis: Sequence[E.IterVar], condition: ExprLike=True, value_index: int=0) -> Any:
    """A reduction expression."""
def index_map(mapping: Callable, *, inverse_index_map: Callable[..., Any] | None=None, index_dtype: str='int32') -> IndexMap:
    """A map of indices: T.index_map(lambda i, j: (i // 4, j, i % 4))"""
def target(config: object, host: object=None) -> Any:
    """A target in a function's attributes: T.target("llvm"), T.target({"kind": "cuda"})"""
def Range(begin: ExprLike, end: ExprLike | None=None) -> Any:
    """The integers begin .. end - 1."""
def meta_var(value: ExprLike) -> Any:
    """A value that a script's assignment binds as it is, without a let."""
class MetaVar:
    """What T.meta_var returns."""
    value: Any

    def __init__(self, value: Any) -> None:
        ...
def var(dtype: Any, name: str='') -> Any:
    """A new variable."""
def Var(name: str, dtype: Any='int32') -> Any:
    """A new variable, its name first, as `tir.Var` makes it."""

class Scope:
    """What a `with` of a script opens."""

    def __enter__(self) -> _Any: ...
    def __exit__(self, *_: object) -> None: ...

prim_func = _decorators.TensorIR.no_type_check
macro = _decorators.Macros.no_type_check
def Add(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Add(a, b), without folding."""
def And(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node And(a, b), without folding."""
def Assert(condition: _Any, message: _Any = '') -> Scope:
    """The rest, after making sure of a condition."""
Buffer: BufferName
def BufferStore(buffer: _Any, value: _Any, indices: _Any, predicate: _Any = None) -> None:
    """A store written as a call."""
def Div(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Div(a, b), without folding."""
def EQ(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node EQ(a, b), without folding."""
def Else(*args: _Any, **kwargs: _Any) -> Scope: ...
def FloorDiv(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node FloorDiv(a, b), without folding."""
def FloorMod(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node FloorMod(a, b), without folding."""
def GE(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node GE(a, b), without folding."""
def GT(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node GT(a, b), without folding."""
def If(*args: _Any, **kwargs: _Any) -> Scope: ...
def LE(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node LE(a, b), without folding."""
def LT(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node LT(a, b), without folding."""
def Let(*args: _Any, **kwargs: _Any) -> _PrimExpr: ...
def LetStmt(value: _Any, type_annotation: object = None, *, var: _Var | None = None) -> _Var:
    """The rest, with a variable bound to a value."""
def Max(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Max(a, b), without folding."""
def Min(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Min(a, b), without folding."""
def Mod(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Mod(a, b), without folding."""
def Mul(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Mul(a, b), without folding."""
def NE(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node NE(a, b), without folding."""
def Or(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Or(a, b), without folding."""
def Sub(a: _ExprLike, b: _ExprLike) -> _Any:
    """The node Sub(a, b), without folding."""
def TVMBackendAllocWorkspace(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """memory from the runtime's pool (the intrinsic tir.TVMBackendAllocWorkspace)"""
def TVMBackendFreeWorkspace(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """give memory of the pool back (the intrinsic tir.TVMBackendFreeWorkspace)"""
def Then(*args: _Any, **kwargs: _Any) -> Scope: ...
def While(*args: _Any, **kwargs: _Any) -> Scope: ...
def abs(x: _Any, span: object = None) -> _PrimExpr:
    """The absolute value, of any type."""
def acos(x: _ExprLike, **options: object) -> _PrimExpr:
    """arc cosine"""
def acosh(x: _ExprLike, **options: object) -> _PrimExpr:
    """inverse hyperbolic cosine"""
def all(*args: _Any, dtype: object = None, **options: _Any) -> _Any:
    """The conjunction of conditions. Raises ValueError if there are none."""
def alloc_buffer(shape: _Sequence[_Any] | _ExprLike, dtype: object = 'float32', data: _Var | _Buffer | None = None, strides: _Sequence[_Any] | None = None, elem_offset: _ExprLike | str | None = None, scope: str = 'global', align: int = -1, offset_factor: int = 0, buffer_type: str = 'default', axis_separators: _Sequence[int] | None = None) -> _Buffer:
    """Memory of the innermost block (of the function, outside of blocks)."""
def allocate(extents: _Any, dtype: _Any, scope: str = 'global', condition: _Any = None, annotations: dict | None = None) -> _Var:
    """The rest, with a pointer to fresh memory."""
def allocate_const(data: object, dtype: _Any, extents: _Any, annotations: dict | None = None) -> _Var:
    """The rest, with a pointer to constant data."""
def any(*args: _Any, dtype: object = None, **options: _Any) -> _Any:
    """The disjunction of conditions. Raises ValueError if there are none."""
def asin(x: _ExprLike, **options: object) -> _PrimExpr:
    """arc sine"""
def asinh(x: _ExprLike, **options: object) -> _PrimExpr:
    """inverse hyperbolic sine"""
def assume(cond: _ExprLike, span: object = None) -> _PrimExpr:
    """a fact the compiler may rely on"""
def atan(x: _ExprLike, **options: object) -> _PrimExpr:
    """arc tangent"""
def atan2(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """angle of the point (y, x)"""
def atanh(x: _ExprLike, **options: object) -> _PrimExpr:
    """inverse hyperbolic tangent"""
def atomic_add(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """atomic addition to an element (the intrinsic tir.atomic_add)"""
def attr(node: _Any, attr_key: str, value: _Any) -> Scope:
    """The rest under an attribute."""
bfloat16: DtypeName
bfloat16x16: DtypeName
bfloat16x2: DtypeName
bfloat16x32: DtypeName
bfloat16x4: DtypeName
bfloat16x64: DtypeName
bfloat16x8: DtypeName
def bitwise_and(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x & y"""
def bitwise_not(x: _ExprLike, **options: object) -> _PrimExpr:
    """~x"""
def bitwise_or(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x | y"""
def bitwise_xor(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x ^ y"""
def block(name: str = '', no_realize: _bool = False) -> Scope:
    """with T.block("C"): ..."""
def block_attr(attrs: dict) -> None:
    """Annotations of the block."""
bool: DtypeName
boolean: DtypeName
boolx16: DtypeName
boolx2: DtypeName
boolx32: DtypeName
boolx4: DtypeName
boolx64: DtypeName
boolx8: DtypeName
def break_loop(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """leave the loop (the intrinsic tir.break_loop)"""
def buffer_decl(shape: _Sequence[_Any] | _ExprLike, dtype: object = 'float32', data: _Var | _Buffer | None = None, strides: _Sequence[_Any] | None = None, elem_offset: _ExprLike | str | None = None, scope: str = 'global', align: int = -1, offset_factor: int = 0, buffer_type: str = '', axis_separators: _Sequence[int] | None = None) -> _Buffer:
    """A buffer: of a parameter, or over a pointer that exists."""
def buffer_store(buffer: _Any, value: _Any, indices: _Any, predicate: _Any = None) -> None:
    """A store written as a call."""
def call_cpacked(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """call of a packed C function by symbol (the intrinsic tir.tvm_call_cpacked)"""
def call_extern(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """call of a C function by symbol (the intrinsic tir.call_extern)"""
def call_llvm_intrin(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """call of an LLVM intrinsic (the intrinsic tir.call_llvm_intrin)"""
def call_llvm_pure_intrin(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """call of a pure LLVM intrinsic (the intrinsic tir.call_llvm_pure_intrin)"""
def call_packed_lowered(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """packed call, arguments stacked (the intrinsic tir.tvm_call_packed_lowered)"""
def call_pure_extern(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """call of a C function without effects (the intrinsic tir.call_pure_extern)"""
def ceil(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded up"""
def ceildiv(a: _ExprLike, b: _Any, span: object = None) -> _PrimExpr:
    """a / b rounded up."""
def clz(x: _ExprLike, **options: object) -> _PrimExpr:
    """number of leading zero bits"""
def continue_loop(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """next round of the loop (the intrinsic tir.continue_loop)"""
def copysign(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """magnitude of x with the sign of y"""
def cos(x: _ExprLike, **options: object) -> _PrimExpr:
    """cosine"""
def cosh(x: _ExprLike, **options: object) -> _PrimExpr:
    """hyperbolic cosine"""
def create_barriers(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """make barriers in shared memory (the intrinsic tir.create_barriers)"""
def decl_buffer(shape: _Sequence[_Any] | _ExprLike, dtype: object = 'float32', data: _Var | _Buffer | None = None, strides: _Sequence[_Any] | None = None, elem_offset: _ExprLike | str | None = None, scope: str = 'global', align: int = 0, offset_factor: int = 0, buffer_type: str = 'default', axis_separators: _Sequence[int] | None = None) -> _Buffer:
    """A buffer over `data`; without data, over memory allocated here."""
def div(a: _ExprLike, b: _ExprLike, span: object = None) -> _PrimExpr:
    """a / b: true division of floats, rounding toward zero on integers (C's rule)."""
def dp4a(vec1: _PrimExpr, vec2: _PrimExpr, acc: _ExprLike = 0) -> _PrimExpr:
    """The dot product of two vectors of four int8, added to `acc`."""
def end_profile_intrinsic(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """profiling mark (the intrinsic tir.end_profile_intrinsic)"""
def env_thread(thread_tag: str, dtype: str = 'int32') -> _IterVar:
    """A GPU thread axis, launched later."""
def erf(x: _ExprLike, **options: object) -> _PrimExpr:
    """Gauss error function"""
def evaluate(value: _ExprLike) -> None:
    """A value computed for its effect."""
def exp(x: _ExprLike, **options: object) -> _PrimExpr:
    """e to the power x"""
def exp10(x: _ExprLike, **options: object) -> _PrimExpr:
    """10 to the power x"""
def exp2(x: _ExprLike, **options: object) -> _PrimExpr:
    """2 to the power x"""
def fabs(x: _ExprLike, **options: object) -> _PrimExpr:
    """absolute value"""
float16: DtypeName
float16x16: DtypeName
float16x2: DtypeName
float16x32: DtypeName
float16x4: DtypeName
float16x64: DtypeName
float16x8: DtypeName
float32: DtypeName
float32x16: DtypeName
float32x2: DtypeName
float32x32: DtypeName
float32x4: DtypeName
float32x64: DtypeName
float32x8: DtypeName
float64: DtypeName
float64x16: DtypeName
float64x2: DtypeName
float64x32: DtypeName
float64x4: DtypeName
float64x64: DtypeName
float64x8: DtypeName
float8_e4m3fn: DtypeName
float8_e5m2: DtypeName
def floor(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded down"""
def floordiv(a: _ExprLike, b: _ExprLike, span: object = None) -> _PrimExpr:
    """a // b rounded down (types matched, constants folded)"""
def floormod(a: _ExprLike, b: _ExprLike, span: object = None) -> _PrimExpr:
    """a % b with the sign of b (types matched, constants folded)"""
def fma(x: _ExprLike, y: _ExprLike, z: _ExprLike, **options: object) -> _PrimExpr:
    """x * y + z rounded once"""
def fmod(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """remainder with the sign of x"""
def func_attr(attrs: dict) -> None:
    """Attributes of the function."""
def func_name(name: str) -> None:
    """The function's name; the definition already says it."""
def func_ret(ret_type: object) -> None:
    """The return type of the function."""
def grid(*extents: _ExprLike) -> _Iterable[_Any]:
    """Nested serial loops from 0."""
handle: HandleName
def hypot(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """sqrt(x*x + y*y)"""
def if_then_else(cond: _ExprLike, t: _ExprLike, f: _ExprLike, span: object = None) -> _PrimExpr:
    """t if cond else f, evaluating only the side that is taken."""
def indexdiv(a: _ExprLike, b: _ExprLike, span: object = None) -> _PrimExpr:
    """a // b rounded down (types matched, constants folded)"""
def indexmod(a: _ExprLike, b: _ExprLike, span: object = None) -> _PrimExpr:
    """a % b with the sign of b (types matched, constants folded)"""
def infinity(dtype: str, span: object = None) -> _PrimExpr:
    """Positive infinity of a floating point type."""
def init() -> Scope:
    """with T.init(): ..."""
int16: DtypeName
int16x16: DtypeName
int16x2: DtypeName
int16x32: DtypeName
int16x4: DtypeName
int16x64: DtypeName
int16x8: DtypeName
int32: DtypeName
int32x16: DtypeName
int32x2: DtypeName
int32x32: DtypeName
int32x4: DtypeName
int32x64: DtypeName
int32x8: DtypeName
int4: DtypeName
int4x16: DtypeName
int4x2: DtypeName
int4x32: DtypeName
int4x4: DtypeName
int4x64: DtypeName
int4x8: DtypeName
int64: DtypeName
int64x16: DtypeName
int64x2: DtypeName
int64x32: DtypeName
int64x4: DtypeName
int64x64: DtypeName
int64x8: DtypeName
int8: DtypeName
int8x16: DtypeName
int8x2: DtypeName
int8x32: DtypeName
int8x4: DtypeName
int8x64: DtypeName
int8x8: DtypeName
def isfinite(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether x is finite"""
def isinf(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether x is infinite"""
def isnan(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether x is not a number"""
def isnullptr(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether a pointer is null"""
def large_uint_imm(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """a 64-bit unsigned constant in two halves (the intrinsic tir.large_uint_imm)"""
def launch_thread(thread: _IterVar | str, extent: _Any) -> _Var:
    """The rest, run by `extent` threads of an axis."""
def ldexp(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x * 2**y"""
def likely(cond: _ExprLike, span: object = None) -> _PrimExpr:
    """a hint that the condition usually holds"""
def log(x: _ExprLike, **options: object) -> _PrimExpr:
    """natural logarithm"""
def log10(x: _ExprLike, **options: object) -> _PrimExpr:
    """logarithm to base 10"""
def log1p(x: _ExprLike, **options: object) -> _PrimExpr:
    """log(1 + x)"""
def log2(x: _ExprLike, **options: object) -> _PrimExpr:
    """logarithm to base 2"""
def lookup_param(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """a parameter of the model by its name (the intrinsic tir.lookup_param)"""
def match_buffer(param: _Var | _BufferRegion | _BufferLoad | _Buffer, shape: _Sequence[_Any] | _ExprLike | None = None, dtype: object = 'float32', data: _Var | _Buffer | None = None, strides: _Sequence[_Any] | None = None, elem_offset: _ExprLike | str | None = None, scope: str = 'global', align: int = -1, offset_factor: int = 0, buffer_type: str = 'default', axis_separators: _Sequence[int] | None = None, type: str = '') -> _Buffer:
    """The buffer of a handle parameter; inside a block, a name for a region of a buffer."""
def max(a: _ExprLike, b: _ExprLike, *rest: _ExprLike) -> _Any:
    """The larger of a and b (types matched, constants folded)"""
def max_value(dtype: str, span: object = None) -> _PrimExpr:
    """The largest finite value of a type."""
def min(a: _ExprLike, b: _ExprLike, *rest: _ExprLike) -> _Any:
    """The smaller of a and b (types matched, constants folded)"""
def min_value(dtype: str, span: object = None) -> _PrimExpr:
    """The smallest finite value of a type."""
def mma_fill(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """fill an mma fragment (the intrinsic tir.mma_fill)"""
def mma_store(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """store an mma fragment (the intrinsic tir.mma_store)"""
def nearbyint(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded to nearest, ties to even"""
def nextafter(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """the next float after x towards y"""
def parallel(start: _ExprLike, stop: _ExprLike | None = None, *, annotations: dict | None = None) -> _Iterable[_Var]: ...
def popcount(x: _ExprLike, **options: object) -> _PrimExpr:
    """number of bits set"""
def pow(x: _ExprLike, y: _ExprLike, span: object = None) -> _PrimExpr:
    """x to the power y, in the type of both: integers stay integers."""
def power(x: _ExprLike, y: _ExprLike, span: object = None) -> _PrimExpr:
    """x to the power y, in the type of both: integers stay integers."""
def prefetch(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """hint to load a cache line (the intrinsic tir.prefetch)"""
def preflattened_buffer(param: _Var | _BufferRegion | _BufferLoad | _Buffer, shape: _Sequence[_Any] | _ExprLike | None = None, dtype: object = 'float32', data: _Var | _Buffer | None = None, strides: _Sequence[_Any] | None = None, elem_offset: _ExprLike | str | None = None, scope: str = 'global', align: int = -1, offset_factor: int = 0, buffer_type: str = 'default', axis_separators: _Sequence[int] | None = None, type: str = '') -> _Buffer:
    """The buffer of a handle parameter; inside a block, a name for a region of a buffer."""
def ptx_arrive_barrier(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """arrive at a barrier (the intrinsic tir.ptx_arrive_barrier)"""
def ptx_arrive_barrier_expect_tx(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """arrive, and expect bytes (the intrinsic tir.ptx_arrive_barrier_expect_tx)"""
def ptx_commit_group(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """close a group of asynchronous copies (the intrinsic tir.ptx_commit_group)"""
def ptx_cp_async(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """PTX asynchronous copy (the intrinsic tir.ptx_cp_async)"""
def ptx_cp_async_barrier(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """arrive at a barrier after copies (the intrinsic tir.ptx_cp_async_barrier)"""
def ptx_cp_async_bulk(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """PTX asynchronous copy of a block (the intrinsic tir.ptx_cp_async_bulk)"""
def ptx_init_barrier_thread_count(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """say how many threads arrive (the intrinsic tir.ptx_init_barrier_thread_count)"""
def ptx_ldmatrix(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """PTX ldmatrix instruction (the intrinsic tir.ptx_ldmatrix)"""
def ptx_mma(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """PTX mma instruction (the intrinsic tir.ptx_mma)"""
def ptx_mma_sp(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """PTX mma instruction, one operand sparse (the intrinsic tir.ptx_mma_sp)"""
def ptx_wait_barrier(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """wait at a barrier (the intrinsic tir.ptx_wait_barrier)"""
def ptx_wait_group(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """wait for asynchronous copies (the intrinsic tir.ptx_wait_group)"""
def q_multiply_shift(x: _ExprLike, y: _ExprLike, z: _ExprLike, **options: object) -> _PrimExpr:
    """fixed point multiply of quantised kernels"""
def q_multiply_shift_per_axis(x: _ExprLike, y: _ExprLike, z: _ExprLike, **options: object) -> _PrimExpr:
    """fixed point multiply with a factor and shifts for each channel"""
def reads(*regions: object) -> None:
    """What the block reads."""
def realize(*args: object) -> None:
    """Refused: BufferRealize belongs to a stage of TVM that does not exist here."""
def reinterpret(dtype: str, value: _ExprLike, span: object = None) -> _PrimExpr:
    """The bits of value read as another type of the same size; value itself where it has it."""
def ret(value: _ExprLike, span: object = None) -> _PrimExpr:
    """Return `value` from the function."""
def round(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded to nearest, ties to even"""
def rsqrt(x: _ExprLike, **options: object) -> _PrimExpr:
    """1 / sqrt(x)"""
def serial(start: _ExprLike, stop: _ExprLike | None = None, *, annotations: dict | None = None) -> _Iterable[_Var]: ...
def shift_left(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x << y"""
def shift_right(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x >> y, arithmetic on signed types"""
def sigmoid(x: _ExprLike, **options: object) -> _PrimExpr:
    """1 / (1 + exp(-x))"""
def sin(x: _ExprLike, **options: object) -> _PrimExpr:
    """sine"""
def sinh(x: _ExprLike, **options: object) -> _PrimExpr:
    """hyperbolic sine"""
def sqrt(x: _ExprLike, **options: object) -> _PrimExpr:
    """square root"""
def start_profile_intrinsic(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """profiling mark (the intrinsic tir.start_profile_intrinsic)"""
def tan(x: _ExprLike, **options: object) -> _PrimExpr:
    """tangent"""
def tanh(x: _ExprLike, **options: object) -> _PrimExpr:
    """hyperbolic tangent"""
def thread_binding(start: _Any, stop: _Any = None, thread: str | None = None, *, annotations: dict | None = None) -> _Iterable[_Var]:
    """A loop whose iterations are GPU threads."""
def trunc(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded toward zero"""
def truncdiv(a: _ExprLike, b: _ExprLike, span: object = None) -> _PrimExpr:
    """a / b; rounds toward zero on integers (types matched, constants folded)"""
def truncmod(a: _ExprLike, b: _ExprLike, span: object = None) -> _PrimExpr:
    """The remainder that goes with Div: has the sign of a (types matched, constants folded)"""
def tvm_access_ptr(ptype: str | _PrimExpr, data: _PrimExpr, offset: _ExprLike, extent: _ExprLike, rw_mask: _ExprLike) -> _PrimExpr:
    """The pointer to a part of a buffer, of elements of type `ptype`."""
def tvm_bmma_sync(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """multiply tensor core fragments of bits (the intrinsic tir.tvm_bmma_sync)"""
def tvm_call_cpacked(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """call of a packed C function by symbol (the intrinsic tir.tvm_call_cpacked)"""
def tvm_call_packed_lowered(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """packed call, arguments stacked (the intrinsic tir.tvm_call_packed_lowered)"""
def tvm_fill_fragment(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """fill a tensor core fragment (the intrinsic tir.tvm_fill_fragment)"""
def tvm_load_matrix_sync(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """load a tensor core fragment (the intrinsic tir.tvm_load_matrix_sync)"""
def tvm_mma_sync(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """multiply tensor core fragments (the intrinsic tir.tvm_mma_sync)"""
def tvm_stack_alloca(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """space on the stack (the intrinsic tir.tvm_stack_alloca)"""
def tvm_stack_make_array(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """a tensor header on the stack (the intrinsic tir.tvm_stack_make_array)"""
def tvm_stack_make_shape(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """a shape on the stack (the intrinsic tir.tvm_stack_make_shape)"""
def tvm_storage_sync(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """barrier for the threads of a block (the intrinsic tir.tvm_storage_sync)"""
def tvm_store_matrix_sync(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """store a tensor core fragment (the intrinsic tir.tvm_store_matrix_sync)"""
def tvm_struct_get(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """a field of a tensor header (the intrinsic tir.tvm_struct_get)"""
def tvm_struct_set(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """store to a field of a tensor header (the intrinsic tir.tvm_struct_set)"""
def tvm_thread_allreduce(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """reduction over GPU threads (the intrinsic tir.tvm_thread_allreduce)"""
def tvm_throw_last_error(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """raise the error that a call has left (the intrinsic tir.tvm_throw_last_error)"""
def tvm_tuple(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """several values as one (the intrinsic tir.tvm_tuple)"""
def tvm_warp_activemask(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """mask of the active lanes (the intrinsic tir.tvm_warp_activemask)"""
def tvm_warp_shuffle(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """read a value of another lane (the intrinsic tir.tvm_warp_shuffle)"""
def tvm_warp_shuffle_down(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """read a value of a higher lane (the intrinsic tir.tvm_warp_shuffle_down)"""
def tvm_warp_shuffle_up(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """read a value of a lower lane (the intrinsic tir.tvm_warp_shuffle_up)"""
uint16: DtypeName
uint16x16: DtypeName
uint16x2: DtypeName
uint16x32: DtypeName
uint16x4: DtypeName
uint16x64: DtypeName
uint16x8: DtypeName
uint32: DtypeName
uint32x16: DtypeName
uint32x2: DtypeName
uint32x32: DtypeName
uint32x4: DtypeName
uint32x64: DtypeName
uint32x8: DtypeName
uint4: DtypeName
uint4x16: DtypeName
uint4x2: DtypeName
uint4x32: DtypeName
uint4x4: DtypeName
uint4x64: DtypeName
uint4x8: DtypeName
uint64: DtypeName
uint64x16: DtypeName
uint64x2: DtypeName
uint64x32: DtypeName
uint64x4: DtypeName
uint64x64: DtypeName
uint64x8: DtypeName
uint8: DtypeName
uint8x16: DtypeName
uint8x2: DtypeName
uint8x32: DtypeName
uint8x4: DtypeName
uint8x64: DtypeName
uint8x8: DtypeName
def undef(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """a value nobody reads (the intrinsic tir.undef)"""
def unroll(start: _ExprLike, stop: _ExprLike | None = None, *, annotations: dict | None = None) -> _Iterable[_Var]: ...
def vectorcombine(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """two vectors as one (the intrinsic tir.vectorcombine)"""
def vectorhigh(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """upper half of a vector (the intrinsic tir.vectorhigh)"""
def vectorized(start: _ExprLike, stop: _ExprLike | None = None, *, annotations: dict | None = None) -> _Iterable[_Var]: ...
def vectorlow(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """lower half of a vector (the intrinsic tir.vectorlow)"""
void: DtypeName
def vscale(*args: object, dtype: _Any = None, annotations: _Mapping[str, _Any] | None = None) -> _Any:
    """how many times 128 bits a scalable vector register has (the intrinsic tir.vscale)"""
def where(predicate: _ExprLike) -> None:
    """The block only runs where the condition holds."""
def writes(*regions: object) -> None:
    """What the block writes."""
class axis:
    """The axes of a block."""
    @staticmethod
    def spatial(dom: _Range | _Sequence[_ExprLike] | _ExprLike, value: _ExprLike | None = None, dtype: str = 'int32') -> _Var: ...
    @staticmethod
    def reduce(dom: _Range | _Sequence[_ExprLike] | _ExprLike, value: _ExprLike | None = None, dtype: str = 'int32') -> _Var: ...
    @staticmethod
    def scan(dom: _Range | _Sequence[_ExprLike] | _ExprLike, value: _ExprLike | None = None, dtype: str = 'int32') -> _Var: ...
    @staticmethod
    def opaque(dom: _Range | _Sequence[_ExprLike] | _ExprLike, value: _ExprLike | None = None, dtype: str = 'int32') -> _Var: ...
    @staticmethod
    def remap(kinds: str, bindings: _Any, dtype: str = 'int32') -> _Any:
        """Several axes at once, each over the domain of its loop."""
    S = spatial
    R = reduce
FORMS: tuple[str, ...]
NAMES: frozenset[str]
def __getattr__(name: str) -> _Any: ...
