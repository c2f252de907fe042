"""Rules of functions that are kernels of their own: Bessel's, zeta, frexp, products of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ....ir.dtype import is_float
from ....topi import bessel, frexp, grouped_matmul
from ....topi import zeta as zetas
from .arithmetic import as_float
from .importer import Importer, rule
from .products import _matmul

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Operand


def _bessel(name: str, *names: str) -> None:
    compiled: Callable[..., Any] = getattr(bessel, name)

    @rule(*names)
    def translate(im: Importer, x: Operand) -> Any:
        return im.kernel(compiled, as_float(im, x), name=name)


_bessel("i0", "i0", "special_i0")
_bessel("i0e", "special_i0e")
_bessel("i1", "special_i1")
_bessel("i1e", "special_i1e")


@rule("special_zeta")
def _zeta(im: Importer, x: Operand, q: Operand) -> Any:
    dtype = im.promoted(x, q)
    dtype = dtype if is_float(dtype) else "float32"
    return im.kernel(zetas.zeta, *im.tensors(im.operand(x, dtype), im.operand(q, dtype)),
                     name="zeta")


@rule("polygamma", "special_polygamma")
def _polygamma(im: Importer, n: Any, x: Any) -> Any:
    if not isinstance(n, int):  # the method of a tensor: x.polygamma(n)
        n, x = x, n
    return im.kernel(lambda a: zetas.polygamma(n, a), as_float(im, x), name="polygamma")


@rule("frexp")
def _frexp(im: Importer, x: Expr) -> Any:
    return (im.kernel(frexp.frexp_fraction, x, name="frexp_fraction"),
            im.kernel(frexp.frexp_exponent, x, name="frexp_exponent"))


@rule("_grouped_mm", "grouped_mm")
def _grouped(im: Importer, mat_a: Expr, mat_b: Expr, offs: Expr | None = None,
             bias: Expr | None = None, out_dtype: object = None) -> Any:
    if bias is not None:
        raise ValueError("_grouped_mm with a bias is not translated, nor does torch compute it")
    dtype = im.dtype(mat_a) if out_dtype is None else str(out_dtype).rpartition(".")[2]
    if offs is None:
        return im.cast(_matmul(im, mat_a, mat_b), dtype)
    return im.kernel(grouped_matmul.grouped_matmul, mat_a, mat_b, offs, out_dtype=dtype,
                     name="grouped_matmul")


__all__: list[str] = []
