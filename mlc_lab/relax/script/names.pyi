# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from builtins import str as _str
from mlc_lab.ir.module import GlobalVar as _GlobalVar
from mlc_lab.relax.expr import Call as _Call
from mlc_lab.relax.expr import Expr as _Expr
from mlc_lab.relax.expr import Var as _Var
from mlc_lab.relax.op.base import Device as _Device
from mlc_lab.relax.op.declare import Axis as _Axis
from mlc_lab.relax.op.declare import Dtype as _Dtype
from mlc_lab.relax.op.declare import Flag as _Flag
from mlc_lab.relax.op.declare import FloatTensor as _FloatTensor
from mlc_lab.relax.op.declare import IntegerTensor as _IntegerTensor
from mlc_lab.relax.op.declare import Ints as _Ints
from mlc_lab.relax.op.declare import NumberTensor as _NumberTensor
from mlc_lab.relax.op.declare import Operand as _Operand
from mlc_lab.relax.op.declare import Plain as _Plain
from mlc_lab.relax.op.declare import Scalar as _Scalar
from mlc_lab.relax.op.declare import Shape as _Shape
from mlc_lab.relax.op.declare import Size as _Size
from mlc_lab.relax.op.declare import Tensor as _Tensor
from mlc_lab.relax.op.declare import Tensors as _Tensors
from mlc_lab.relax.op.declare import Text as _Text
from mlc_lab.relax.op.declare import Value as _Value
from mlc_lab.relax.op.declare import Whole as _Whole
from mlc_lab.relax.op.manipulate import Cuts as _Cuts
from mlc_lab.relax.op.manipulate import Filler as _Filler
from mlc_lab.relax.op.manipulate import Indexing as _Indexing
from mlc_lab.relax.op.manipulate import Mapping as _Mapping
from mlc_lab.relax.op.slicing import Number as _Number
from mlc_lab.relax.op.slicing import Numbers as _Numbers
from mlc_lab.relax.op.sorting import Choice as _Choice
from typing import Any as _Any
from typing import Callable as _Function
from ...script import typing_extensions as _decorators
import builtins as _builtins
from typing import Any as _Any
from ...above import above as _above
from ..expr import DataTypeImm as _DataTypeImm
from ..expr import ExternFunc, PrimValue, ShapeExpr, StringImm, TupleGetItem, const
from ..expr import Tuple as _TupleExpr
from .. import op as _op
from ..op import builtin, grad, image, memory, nn, vm
from .words import RESOLVERS, Callable, Object, Prim, Shape, Tensor, Tuple, dataflow, emit, emit_te, func_attr, func_name, match_cast, output
def shape(values: _Any) -> ShapeExpr:
    """A shape as a value."""
def prim_value(value: _Any) -> PrimValue:
    """A scalar as a value."""
def str(value: _Any) -> StringImm:
    """A string as a value."""
def dtype(value: _Any) -> _DataTypeImm:
    """A dtype as a value."""
def tuple(*fields: _Any) -> _TupleExpr:
    """Several values as one."""

class Scope:
    """What a `with` of a script opens."""

    def __enter__(self) -> _Any: ...
    def __exit__(self, *_: object) -> None: ...

function = _decorators.Relax.no_type_check
macro = _decorators.Macros.no_type_check
def dataflow() -> Scope: ...
def output(*vars: _Expr) -> None: ...
def func_attr(attrs: dict[_builtins.str, _Any]) -> None: ...
def func_name(name: _builtins.str) -> None: ...
def match_cast(value: _Expr, struct_info: _Any) -> _Var: ...
def emit(value: _Any) -> _Var: ...
def emit_te(func: _Function[..., _Any], *args: _Any, **kwargs: _Any) -> _Var: ...
def abs(x: _Any) -> _Expr:
    """R.abs(x), element by element"""
def acos(x: _Any) -> _Expr:
    """R.acos(x), element by element"""
def acosh(x: _Any) -> _Expr:
    """R.acosh(x), element by element"""
def add(x1: _Operand, x2: _Operand) -> _Expr:
    """R.add(x1, x2), broadcast as in numpy"""
def arange(start: _Any, end: _Any = None, step: _Any = 1, dtype: _Any = None) -> _Expr:
    """start, start + step, ... up to end (without it), as numpy.arange."""
def argmax(x: _Tensor, axis: _Axis | None = None, keepdims: _Flag = False) -> _Expr:
    """The index (int64) of max along `axis`, or in all elements for None."""
def argmin(x: _Tensor, axis: _Axis | None = None, keepdims: _Flag = False) -> _Expr:
    """The index (int64) of min along `axis`, or in all elements for None."""
def argsort(data: _Tensor, axis: _Axis = -1, descending: _Flag = False, dtype: _Text = 'int32') -> _Expr:
    """The indices that sort along `axis`."""
def asin(x: _Any) -> _Expr:
    """R.asin(x), element by element"""
def asinh(x: _Any) -> _Expr:
    """R.asinh(x), element by element"""
def assert_op(condition: _Any, format_args: _Any = None, format: _Any = '') -> _Call:
    """Stop the program where the condition (a bool scalar) does not hold; an effect."""
def astype(x: _Tensor, dtype: _Text) -> _Expr:
    """The values converted to `dtype`."""
def atan(x: _Any) -> _Expr:
    """R.atan(x), element by element"""
def atan2(x1: _Operand, x2: _Operand) -> _Expr:
    """R.atan2(x1, x2), broadcast as in numpy"""
def atanh(x: _Any) -> _Expr:
    """R.atanh(x), element by element"""
def bitwise_and(x1: _Operand, x2: _Operand) -> _Expr:
    """R.bitwise_and(x1, x2), broadcast as in numpy"""
def bitwise_not(x: _Any) -> _Expr:
    """R.bitwise_not(x), element by element"""
def bitwise_or(x1: _Operand, x2: _Operand) -> _Expr:
    """R.bitwise_or(x1, x2), broadcast as in numpy"""
def bitwise_xor(x1: _Operand, x2: _Operand) -> _Expr:
    """R.bitwise_xor(x1, x2), broadcast as in numpy"""
def broadcast_to(x: _Tensor, shape: _Shape) -> _Expr:
    """x repeated to fill `shape`."""
def bucketize(input_tensor: _Tensor, boundaries: _Tensor, out_int32: _Flag = False, right: _Flag = False) -> _Expr:
    """The index of the bucket each element falls into."""
def call_builtin_with_ctx(func: _Any, args: _Any, *, sinfo_args: _Any = None) -> _Call:
    """A call of a builtin of the virtual machine, which gets the machine as first argument."""
def call_dps_packed(func: _Any, args: _Any, out_sinfo: _Any, dtype: _Any = None) -> _Call:
    """A call of a registered function in destination-passing style: f(*args, *outputs)."""
def call_inplace_packed(func: _Any, *args: _Any, inplace_indices: _Any, sinfo_args: _Any) -> _Call:
    """A call of a packed function that changes the arguments at `inplace_indices`."""
def call_packed(func: _Any, *args: _Any, sinfo_args: _Any = None, **attrs: _Any) -> _Call:
    """A call of a packed function that may have effects."""
def call_pure_packed(func: _Any, *args: _Any, sinfo_args: _Any = None) -> _Call:
    """A call of a packed function that is known to have no effects."""
def call_tir(gvar: _GlobalVar, args: _Any, out_sinfo: _Any, tir_vars: _Any = None, dtype: _Any = None) -> _Call:
    """A call of a PrimFunc of the module: it writes into outputs of struct info `out_sinfo`."""
def call_tir_inplace(gvar: _GlobalVar, args: _Any, inplace_indices: _Any, out_sinfo: _Any, tir_vars: _Any = None) -> _Call:
    """call_tir where output k takes the place of argument inplace_indices[k] (-1: a new one)."""
def call_tir_with_grad(gvar: _GlobalVar, args: _Any, out_sinfo: _Any, te_grad_name: _str, te_grad_kwargs: _Any = None, tir_vars: _Any = None) -> _Call:
    """call_tir that names the te function of its gradient."""
def ceil(x: _Any) -> _Expr:
    """R.ceil(x), element by element"""
def clip(x: _NumberTensor, min: _Scalar, max: _Scalar) -> _Expr:
    """Values limited to [min, max]."""
def collapse_sum_like(data: _Tensor, collapse_target: _Tensor) -> _Expr:
    """collapse_sum_to the shape of another tensor."""
def collapse_sum_to(data: _Tensor, shape: _Shape) -> _Expr:
    """The sum over the dimensions that broadcasting `shape` to data's would repeat."""
def concat(tensors: _Tensors, axis: _Whole | None = 0) -> _Expr:
    """Tensors one after another along `axis` (flattened first for None)."""
def cos(x: _Any) -> _Expr:
    """R.cos(x), element by element"""
def cosh(x: _Any) -> _Expr:
    """R.cosh(x), element by element"""
def cumprod(data: _Tensor, axis: _Axis | None = None, dtype: _Dtype = None, exclusive: _Flag = False) -> _Expr:
    """cumprod along `axis` (of the flattened tensor for None)."""
def cumsum(data: _Tensor, axis: _Axis | None = None, dtype: _Dtype = None, exclusive: _Flag = False) -> _Expr:
    """cumsum along `axis` (of the flattened tensor for None)."""
def dequantize(data: _Tensor, scale: _Tensor, zero_point: _Tensor, axis: _Whole = -1, out_dtype: _Text = 'float32') -> _Expr:
    """scale * (data - zero_point) in `out_dtype`."""
def divide(x1: _Operand, x2: _Operand) -> _Expr:
    """R.divide(x1, x2), broadcast as in numpy"""
def dynamic_strided_slice(x: _Tensor, begin: _IntegerTensor, end: _IntegerTensor, strides: _IntegerTensor) -> _Expr:
    """strided_slice of all dimensions, its bounds in tensors."""
def einsum(operands: _Tensors, subscripts: _Text) -> _Expr:
    """Einstein's sum, as numpy.einsum(subscripts, *operands)."""
def equal(x1: _Operand, x2: _Operand) -> _Expr:
    """R.equal(x1, x2), broadcast as in numpy"""
def erf(x: _Any) -> _Expr:
    """R.erf(x), element by element"""
def ewise_fma(x1: _Tensor, x2: _Tensor, x3: _Tensor) -> _Expr:
    """x1 * x2 + x3 on tensors of one shape."""
def exp(x: _Any) -> _Expr:
    """R.exp(x), element by element"""
def expand_dims(x: _Tensor, axis: _Ints) -> _Expr:
    """New dimensions of extent 1 at `axis` of the result."""
def eye(n: _Any, m: _Any = None, k: _Any = 0, dtype: _Any = 'float32') -> _Expr:
    """Ones on diagonal k of an n by m matrix (m = n where it is not given)."""
def eye_like(x: _Tensor, k: _Scalar = 0, dtype: _Dtype = None) -> _Expr:
    """Ones on diagonal k of a matrix of x's shape."""
def flatten(x: _Tensor) -> _Expr:
    """All elements as a vector."""
def flip(data: _Tensor, axis: _Axis) -> _Expr:
    """The elements in reverse order along `axis`."""
def floor(x: _Any) -> _Expr:
    """R.floor(x), element by element"""
def floor_divide(x1: _Operand, x2: _Operand) -> _Expr:
    """R.floor_divide(x1, x2), broadcast as in numpy"""
def floor_mod(x1: _Operand, x2: _Operand) -> _Expr:
    """R.floor_mod(x1, x2), broadcast as in numpy"""
def full(shape: _Any, fill_value: _Any, dtype: _Any = None) -> _Expr:
    """A tensor filled with a scalar; the scalar's dtype where none is given."""
def full_like(x: _Any, fill_value: _Any, dtype: _Any = None) -> _Expr:
    """A tensor of x's shape filled with a scalar."""
def gather_elements(data: _Tensor, indices: _IntegerTensor, axis: _Axis = 0) -> _Expr:
    """out[i][j] = data[indices[i][j]][j] for axis 0, as numpy.take_along_axis."""
def gather_nd(data: _Tensor, indices: _IntegerTensor, batch_dims: _Whole = 0) -> _Expr:
    """Slices of data at the index vectors along the last dimension of `indices`."""
def greater(x1: _Operand, x2: _Operand) -> _Expr:
    """R.greater(x1, x2), broadcast as in numpy"""
def greater_equal(x1: _Operand, x2: _Operand) -> _Expr:
    """R.greater_equal(x1, x2), broadcast as in numpy"""
def hint_on_device(data: _Tensor, dst_vdevice: _Plain, memory_scope: _Plain = 'global') -> _Expr:
    """data, with the device it should live on."""
def index_put(data: _Tensor, indices: _Tensors, values: _Tensor, accumulate: _Flag = False) -> _Expr:
    """data with data[indices[0], ...] set to (or, accumulating, increased by) values."""
def index_tensor(data: _Tensor, indices: _Tensors) -> _Expr:
    """data[indices[0], indices[1], ...] with integer tensors, as numpy."""
def invoke_closure(closure: _Any, args: _Any, sinfo_args: _Any) -> _Call:
    """A call of a closure."""
def invoke_pure_closure(closure: _Any, args: _Any, sinfo_args: _Any) -> _Call:
    """A call of a closure that has no effects."""
def isfinite(x: _Any) -> _Expr:
    """R.isfinite(x), element by element"""
def isinf(x: _Any) -> _Expr:
    """R.isinf(x), element by element"""
def isnan(x: _Any) -> _Expr:
    """R.isnan(x), element by element"""
def layout_transform(x: _Tensor, index_map: _Mapping, pad_value: _Filler | None = None) -> _Expr:
    """The elements rearranged by an index map, as the schedule's transform_layout."""
def left_shift(x1: _Operand, x2: _Operand) -> _Expr:
    """R.left_shift(x1, x2), broadcast as in numpy"""
def less(x1: _Operand, x2: _Operand) -> _Expr:
    """R.less(x1, x2), broadcast as in numpy"""
def less_equal(x1: _Operand, x2: _Operand) -> _Expr:
    """R.less_equal(x1, x2), broadcast as in numpy"""
def linear(data: _Any, weight: _Any, bias: _Any = None, out_dtype: _Any = None) -> _Expr:
    """data @ weight.T + bias: a layer of torch's nn.Linear. Built of the three operators."""
def log(x: _Any) -> _Expr:
    """R.log(x), element by element"""
def log_add_exp(x1: _Operand, x2: _Operand) -> _Expr:
    """R.log_add_exp(x1, x2), broadcast as in numpy"""
def logical_and(x1: _Operand, x2: _Operand) -> _Expr:
    """R.logical_and(x1, x2), broadcast as in numpy"""
def logical_not(x: _Any) -> _Expr:
    """R.logical_not(x), element by element"""
def logical_or(x1: _Operand, x2: _Operand) -> _Expr:
    """R.logical_or(x1, x2), broadcast as in numpy"""
def logical_xor(x1: _Operand, x2: _Operand) -> _Expr:
    """R.logical_xor(x1, x2), broadcast as in numpy"""
def make_closure(func: _Any, args: _Any) -> _Call:
    """A function of the module with its first arguments fixed."""
def masked_fill(x: _Any, mask: _Any, value: _Any) -> _Expr:
    """x with `value` where the mask holds: R.where."""
def matmul(x1: _Tensor, x2: _Tensor, out_dtype: _Dtype = None) -> _Expr:
    """Matrix product of the last two dimensions, the others broadcast, as numpy.matmul."""
def max(x: _Tensor, axis: _Ints | None = None, keepdims: _Flag = False) -> _Expr:
    """max along `axis` (int, several, or None for all)."""
def maximum(x1: _Operand, x2: _Operand) -> _Expr:
    """R.maximum(x1, x2), broadcast as in numpy"""
def mean(x: _Tensor, axis: _Ints | None = None, keepdims: _Flag = False) -> _Expr:
    """mean along `axis` (int, several, or None for all)."""
def meshgrid(tensors: _Tensors, indexing: _Indexing = 'ij') -> _Expr:
    """Coordinate grids of vectors."""
def min(x: _Tensor, axis: _Ints | None = None, keepdims: _Flag = False) -> _Expr:
    """min along `axis` (int, several, or None for all)."""
def minimum(x1: _Operand, x2: _Operand) -> _Expr:
    """R.minimum(x1, x2), broadcast as in numpy"""
def mod(x1: _Operand, x2: _Operand) -> _Expr:
    """R.mod(x1, x2), broadcast as in numpy"""
def multinomial_from_uniform(prob: _FloatTensor, uniform_sample: _FloatTensor, sample_indices: _IntegerTensor | None = None, dtype: _Text = 'int64') -> _Expr:
    """Indices drawn by probability from uniform samples."""
def multiply(x1: _Operand, x2: _Operand) -> _Expr:
    """R.multiply(x1, x2), broadcast as in numpy"""
def negative(x: _Any) -> _Expr:
    """R.negative(x), element by element"""
def nonzero(x: _Tensor) -> _Expr:
    """The indices of elements that are not 0: [ndim, count], count known at run time."""
def not_equal(x1: _Operand, x2: _Operand) -> _Expr:
    """R.not_equal(x1, x2), broadcast as in numpy"""
def null_value() -> _Call:
    """A null object: an argument that is not given."""
def one_hot(indices: _IntegerTensor, on_value: _Scalar, off_value: _Scalar, depth: _Whole, axis: _Whole = -1) -> _Expr:
    """A new axis of extent `depth` that holds on_value at each index, else off_value."""
def ones(shape: _Shape, dtype: _Text) -> _Expr:
    """A tensor of ones."""
def ones_like(x: _Tensor, dtype: _Dtype = None) -> _Expr:
    """A tensor of ones of x's shape."""
def outer(x1: _Tensor, x2: _Tensor) -> _Expr:
    """The outer product of two vectors."""
def permute_dims(x: _Tensor, axes: _Ints | None = None) -> _Expr:
    """The dimensions in another order; reversed for None."""
def power(x1: _Operand, x2: _Operand) -> _Expr:
    """R.power(x1, x2), broadcast as in numpy"""
def print(*values: _Any, format: _Any = '') -> _Call:
    """Print values when the program runs; an effect."""
def prod(x: _Tensor, axis: _Ints | None = None, keepdims: _Flag = False) -> _Expr:
    """prod along `axis` (int, several, or None for all)."""
def quantize(data: _Tensor, scale: _Tensor, zero_point: _Tensor, axis: _Whole = -1, out_dtype: _Text = 'int8') -> _Expr:
    """clamp(round(data / scale) + zero_point) in `out_dtype`."""
def repeat(data: _Tensor, repeats: _Whole, axis: _Whole | None = None) -> _Expr:
    """Each element `repeats` times along `axis` (of the flattened tensor for None)."""
def reshape(x: _Any, shape: _Any) -> _Expr:
    """The elements in another shape; one dimension may be -1, 0 keeps the dimension of x."""
def right_shift(x1: _Operand, x2: _Operand) -> _Expr:
    """R.right_shift(x1, x2), broadcast as in numpy"""
def round(x: _Any) -> _Expr:
    """R.round(x), element by element"""
def rsqrt(x: _Any) -> _Expr:
    """R.rsqrt(x), element by element"""
def scatter_elements(data: _Tensor, indices: _IntegerTensor, updates: _Tensor, axis: _Axis = 0, reduction: _Text = 'update') -> _Expr:
    """data with data[indices[i][j]][j] updated by updates[i][j] (axis 0)."""
def scatter_nd(data: _Tensor, indices: _IntegerTensor, updates: _Tensor, reduction: _Text = 'update') -> _Expr:
    """data with slices at index vectors updated."""
def shape_of(expr: _Tensor) -> _Expr:
    """The shape of a tensor as a value."""
def shape_to_tensor(expr: _Value) -> _Expr:
    """A shape as an int64 vector."""
def sigmoid(x: _Any) -> _Expr:
    """R.sigmoid(x), element by element"""
def sign(x: _Any) -> _Expr:
    """R.sign(x), element by element"""
def sin(x: _Any) -> _Expr:
    """R.sin(x), element by element"""
def sinh(x: _Any) -> _Expr:
    """R.sinh(x), element by element"""
def slice_scatter(input_tensor: _Tensor, src: _Tensor, start: _Number, end: _Number, step: _Number, axis: _Axis = 0) -> _Expr:
    """input_tensor with src written to start:end:step of `axis`."""
def sort(x: _Tensor, axis: _Axis = -1, descending: _Flag = False) -> _Expr:
    """The elements in order along `axis`."""
def split(x: _Tensor, indices_or_sections: _Cuts, axis: _Whole = 0) -> _Expr:
    """Pieces of x along `axis`: so many of one size, or cut at the indices."""
def sqrt(x: _Any) -> _Expr:
    """R.sqrt(x), element by element"""
def square(x: _Any) -> _Expr:
    """R.square(x), element by element"""
def squeeze(x: _Tensor, axis: _Ints | None = None) -> _Expr:
    """Without dimensions of extent 1: those named, or all."""
def stack(tensors: _Tensors, axis: _Whole | None = 0) -> _Expr:
    """Tensors of one shape along a new axis."""
def std(x: _Tensor, axis: _Ints | None = None, keepdims: _Flag = False) -> _Expr:
    """std along `axis` (int, several, or None for all)."""
def strided_slice(x: _Tensor, axes: _Numbers, begin: _Numbers, end: _Numbers, strides: _Numbers | None = None, assume_inbound: _Flag = False) -> _Expr:
    """x[begin:end:stride] along each of `axes`, as numpy slices."""
def subtract(x1: _Operand, x2: _Operand) -> _Expr:
    """R.subtract(x1, x2), broadcast as in numpy"""
def sum(x: _Tensor, axis: _Ints | None = None, keepdims: _Flag = False) -> _Expr:
    """sum along `axis` (int, several, or None for all)."""
def take(x: _Tensor, indices: _Value, axis: _Whole | None = None, mode: _Text = 'fast') -> _Expr:
    """Elements of x along `axis` at `indices` (x is a vector where axis is None)."""
def tan(x: _Any) -> _Expr:
    """R.tan(x), element by element"""
def tanh(x: _Any) -> _Expr:
    """R.tanh(x), element by element"""
def tensor_to_shape(expr: _Tensor) -> _Expr:
    """The values of an integer vector as a shape."""
def tile(data: _Tensor, repeats: _Ints) -> _Expr:
    """data repeated as a whole, `repeats[k]` times along each dimension."""
def to_vdevice(data: _Tensor, dst_vdevice: _Device) -> _Expr:
    """data copied to another device."""
def topk(data: _Tensor, k: _Whole = 1, axis: _Axis = -1, ret_type: _Text = 'both', largest: _Flag = True, dtype: _Text = 'int32') -> _Expr:
    """The k largest (or smallest) along `axis`, all of them for k < 1, in order."""
def tril(x: _Tensor, k: _Size = 0) -> _Expr:
    """x with zeros except on and below diagonal k."""
def triu(x: _Tensor, k: _Size = 0) -> _Expr:
    """x with zeros except on and above diagonal k."""
def trunc(x: _Any) -> _Expr:
    """R.trunc(x), element by element"""
def unique(x: _Tensor, sorted: _Choice = True, return_index: _Choice = False, return_inverse: _Choice = False, return_counts: _Choice = False, axis: _Scalar | None = None) -> _Expr:
    """The distinct elements, as numpy.unique; how many is known at run time."""
def variance(x: _Tensor, axis: _Ints | None = None, keepdims: _Flag = False) -> _Expr:
    """variance along `axis` (int, several, or None for all)."""
def where(condition: _Tensor, x1: _Operand, x2: _Operand) -> _Expr:
    """x1 where the condition holds, else x2; all three broadcast."""
def wrap_param(data: _Tensor, dtype: _Text = 'float32') -> _Expr:
    """A parameter converted to `dtype` where it is lifted."""
def zeros(shape: _Shape, dtype: _Text) -> _Expr:
    """A tensor of zeros."""
def zeros_like(x: _Tensor, dtype: _Dtype = None) -> _Expr:
    """A tensor of zeros of x's shape."""
NAMES: frozenset[_str]
def __getattr__(name: _str) -> _Any: ...
