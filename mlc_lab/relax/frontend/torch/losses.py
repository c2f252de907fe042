"""Rules of losses: elementwise ones with their reductions, cross entropy, distances."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ....ir.dtype import is_float
from ... import op
from ...op import nn
from .arithmetic import added, as_float
from .casting import clamped
from .importer import RULES, Importer, rule

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Operand

#: ATen's numbers of reductions
REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}


def reduced(im: Importer, loss: Expr, reduction: Any) -> Any:
    """A loss of every element, its mean or its sum."""
    name = REDUCTIONS.get(reduction, reduction)
    if name == "none":
        return loss
    return im.emit((op.mean if name == "mean" else op.sum)(loss))


def _each(name: str, loss: Callable[..., Any]) -> None:
    """A loss of two tensors, element by element, without options."""
    @rule(name)
    def translate(im: Importer, x: Expr, target: Expr, reduction: str | int = 1) -> Any:
        a, b = im.pair(x, target)
        return reduced(im, loss(im, a, b), reduction)


def _square(im: Importer, x: Expr) -> Any:
    return im.emit(op.multiply(x, x))


_each("mse_loss", lambda im, a, b: _square(im, im.emit(op.subtract(a, b))))
_each("l1_loss", lambda im, a, b: im.emit(op.abs(im.emit(op.subtract(a, b)))))
_each("soft_margin_loss", lambda im, a, b: RULES["log1p"](im, im.emit(op.exp(
    im.emit(op.negative(im.emit(op.multiply(a, b))))))))


@rule("smooth_l1_loss")
def _smooth_l1(im: Importer, x: Expr, target: Expr, reduction: str | int = 1, beta: float = 1.0
               ) -> Any:
    """d^2 / (2 beta) for distances d below beta, d - beta / 2 beyond."""
    if beta == 0:
        return RULES["l1_loss"](im, x, target, reduction)
    a, b = im.pair(x, target)
    return reduced(im, _bent(im, im.emit(op.subtract(a, b)), beta, 1 / beta), reduction)


@rule("huber_loss")
def _huber(im: Importer, x: Expr, target: Expr, reduction: str | int = 1, delta: float = 1.0,
           weight: Expr | None = None) -> Any:
    a, b = im.pair(x, target)
    loss = _bent(im, im.emit(op.subtract(a, b)), delta, 1.0)
    loss = loss if weight is None else im.emit(op.multiply(loss, weight))
    return reduced(im, loss, reduction)


def _bent(im: Importer, away: Expr, knee: float, scale: float) -> Any:
    """scale d^2 / 2 below the knee, scale knee (d - knee / 2) beyond."""
    def c(value: float) -> Any:
        return im.const(value, im.dtype(away))

    size = im.emit(op.abs(away))
    near = im.emit(op.multiply(_square(im, size), c(0.5 * scale)))
    far = im.emit(op.multiply(im.emit(op.subtract(size, c(0.5 * knee))), c(knee * scale)))
    return im.emit(op.where(im.emit(op.less(size, c(knee))), near, far))


@rule("binary_cross_entropy")
def _bce(im: Importer, x: Expr, target: Expr, weight: Expr | None = None, reduction: str | int = 1
         ) -> Any:
    """-(t max(log x, -100) + (1 - t) max(log(1 - x), -100))"""
    dtype = im.dtype(x)
    one = im.const(1, dtype)

    def log(value: Expr) -> Any:
        return clamped(im, im.emit(op.log(value)), -100.0)

    yes = im.emit(op.multiply(target, log(x)))
    no = im.emit(op.multiply(im.emit(op.subtract(one, target)),
                             log(im.emit(op.subtract(one, x)))))
    return _weighed(im, im.emit(op.negative(im.emit(op.add(yes, no)))), weight, reduction)


def _weighed(im: Importer, loss: Expr, weight: Expr | None, reduction: str | int) -> Any:
    return reduced(im, loss if weight is None else im.emit(op.multiply(loss, weight)), reduction)


@rule("binary_cross_entropy_with_logits")
def _bce_logits(im: Importer, x: Expr, target: Expr, weight: Expr | None = None,
                pos_weight: Expr | None = None, reduction: str | int = 1) -> Any:
    """(1 - t) x - (1 + (p - 1) t) log sigmoid(x)"""
    dtype = im.dtype(x)
    one = im.const(1, dtype)
    log = RULES["log_sigmoid"](im, x)
    if pos_weight is not None:
        more = im.emit(op.multiply(im.emit(op.subtract(pos_weight, one)), target))
        log = im.emit(op.multiply(im.emit(op.add(more, one)), log))
    rest = im.emit(op.multiply(im.emit(op.subtract(one, target)), x))
    return _weighed(im, im.emit(op.subtract(rest, log)), weight, reduction)


@rule("kl_div")
def _kl_div(im: Importer, x: Expr, target: Expr, reduction: str | int = 1, *,
            log_target: bool = False) -> Any:
    if log_target:
        loss = im.emit(op.multiply(im.emit(op.exp(target)), im.emit(op.subtract(target, x))))
    else:
        loss = im.emit(op.subtract(RULES["xlogy"](im, target, target),
                                   im.emit(op.multiply(target, x))))
    if reduction == "batchmean":
        total = im.emit(op.sum(loss))
        return im.emit(op.divide(total, im.tensor(im.shape(x)[0], im.dtype(x))))
    return reduced(im, loss, reduction)


@rule("poisson_nll_loss")
def _poisson(im: Importer, x: Expr, target: Expr, log_input: bool = True, full: bool = False,
             eps: float = 1e-8, reduction: str | int = 1) -> Any:
    x, target = as_float(im, x), as_float(im, target)
    if log_input:
        loss = im.emit(op.subtract(im.emit(op.exp(x)), im.emit(op.multiply(target, x))))
    else:
        log = im.emit(op.log(im.emit(op.add(x, im.const(eps, im.dtype(x))))))
        loss = im.emit(op.subtract(x, im.emit(op.multiply(target, log))))
    if full:
        def c(value: float) -> Any:
            return im.const(value, im.dtype(target))

        stirling = im.emit(op.subtract(RULES["xlogy"](im, target, target), target))
        log = im.emit(op.log(im.emit(op.multiply(target, c(2 * math.pi)))))
        stirling = im.emit(op.add(stirling, im.emit(op.multiply(log, c(0.5)))))
        some = im.emit(op.greater(target, c(1)))
        loss = im.emit(op.add(loss, im.emit(op.where(some, stirling, c(0)))))
    return reduced(im, loss, reduction)


@rule("gaussian_nll_loss")
def _gaussian(im: Importer, x: Expr, target: Expr, var: Operand, full: bool = False,
              eps: float = 1e-6, reduction: str | int = "mean") -> Any:
    spread = im.tensor(var, im.dtype(x))
    if im.ndim(spread) == im.ndim(x) - 1:
        spread = im.emit(op.expand_dims(spread, [im.ndim(spread)]))
    var = clamped(im, spread, eps)
    away = _square(im, im.emit(op.subtract(x, target)))
    loss = im.emit(op.add(im.emit(op.log(var)), im.emit(op.divide(away, var))))
    loss = im.emit(op.multiply(loss, im.const(0.5, im.dtype(x))))
    if full:
        loss = im.emit(op.add(loss, im.const(0.5 * math.log(2 * math.pi), im.dtype(x))))
    return reduced(im, loss, reduction)


def _positive(im: Importer, x: Expr) -> Any:
    return im.emit(op.maximum(x, im.const(0, im.dtype(x))))


@rule("margin_ranking_loss")
def _margin_ranking(im: Importer, input1: Expr, input2: Expr, target: Expr, margin: float = 0.0,
                    reduction: str | int = 1) -> Any:
    """max(0, -t (a - b) + margin)"""
    away = im.emit(op.multiply(target, im.emit(op.subtract(input2, input1))))
    return reduced(im, _positive(im, added(im, away, float(margin))), reduction)


@rule("hinge_embedding_loss")
def _hinge(im: Importer, x: Expr, target: Expr, margin: float = 1.0, reduction: str | int = 1
           ) -> Any:
    """x where t is 1, max(0, margin - x) where it is -1."""
    dtype = im.dtype(x)
    zero = im.const(0, dtype)
    away = _positive(im, im.emit(op.subtract(im.const(margin, dtype), x)))
    target = im.cast(target, dtype)

    def there(t: float, value: Expr) -> Any:
        return im.emit(op.where(im.emit(op.equal(target, im.const(t, dtype))), zero, value))

    return reduced(im, added(im, there(1, away), there(-1, x)), reduction)


@rule("cosine_embedding_loss")
def _cosine_embedding(im: Importer, input1: Expr, input2: Expr, target: Expr, margin: float = 0.0,
                      reduction: str | int = 1) -> Any:
    """1 - cos where t is 1, max(0, cos - margin) where it is -1."""
    input1, input2 = as_float(im, input1), as_float(im, input2)
    dtype = im.dtype(input1)
    last = [im.ndim(input1) - 1]
    eps = im.const(1e-12, dtype)

    def total(a: Expr, b: Expr) -> Any:
        return im.emit(op.sum(im.emit(op.multiply(a, b)), last))

    sizes = [im.emit(op.add(total(t, t), eps)) for t in (input1, input2)]
    cos = im.emit(op.divide(total(input1, input2),
                            im.emit(op.sqrt(im.emit(op.multiply(*sizes))))))
    target = im.cast(target, dtype)
    zero, one = im.const(0, dtype), im.const(1, dtype)
    yes = im.emit(op.where(im.emit(op.equal(target, one)), im.emit(op.subtract(one, cos)), zero))
    away = _positive(im, im.emit(op.subtract(cos, im.const(margin, dtype))))
    no = im.emit(op.where(im.emit(op.equal(target, im.const(-1, dtype))), away, zero))
    return reduced(im, im.emit(op.add(yes, no)), reduction)


@rule("triplet_margin_loss")
def _triplet(im: Importer, anchor: Expr, positive: Expr, negative: Expr, margin: float = 1.0,
             p: float = 2, eps: float = 1e-6, swap: bool = False, reduction: str | int = 1) -> Any:
    def distance(a: Expr, b: Expr) -> Any:
        return RULES["pairwise_distance"](im, a, b, p, eps)

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = im.emit(op.minimum(far, distance(positive, negative)))
    away = im.emit(op.add(im.emit(op.subtract(near, far)), im.const(margin, im.dtype(near))))
    return reduced(im, _positive(im, away), reduction)


@rule("multilabel_margin_loss")
def _multilabel_margin(im: Importer, x: Expr, target: Expr, reduction: str | int = 1) -> Any:
    """For each class j that is named before the first -1 and each class k that is not, what
    1 - x[j] + x[k] is above 0, over the number of classes. (torch's own decomposition counts what
    is named after the -1, as if it were class 0.)"""
    if im.ndim(x) == 0:  # one class, which is all there are
        x, target = im.emit(op.reshape(x, [1])), im.emit(op.reshape(target, [1]))
    last, dtype, kind = im.ndim(x) - 1, im.dtype(x), im.dtype(target)
    classes = im.shape(x)[last]
    places = im.emit(op.arange(0, classes, 1, kind))
    ends = im.emit(op.less(target, im.const(0, kind)))
    end = im.emit(op.min(im.emit(op.where(ends, places, im.tensor(classes, kind))), [last], True))
    named = im.emit(op.less(places, end))
    chosen = im.emit(op.where(named, target, im.const(-1, kind)))
    own = im.emit(op.equal(im.emit(op.expand_dims(chosen, last + 1)), places))
    others = im.emit(op.logical_not(im.cast(im.emit(op.max(im.cast(own, "int8"), [last], True)),
                                            "bool")))
    safe = im.emit(op.where(named, target, im.const(0, kind)))
    score = im.emit(op.expand_dims(im.emit(op.gather_elements(x, safe, last)), last + 1))
    away = im.emit(op.subtract(im.emit(op.expand_dims(x, last)), score))
    away = im.emit(op.add(away, im.const(1, dtype)))
    both = im.emit(op.logical_and(im.emit(op.expand_dims(named, last + 1)), others))
    both = im.emit(op.logical_and(both, im.emit(op.greater(away, im.const(0, dtype)))))
    loss = im.emit(op.sum(im.emit(op.where(both, away, im.const(0, dtype))), [last, last + 1]))
    return reduced(im, im.emit(op.divide(loss, im.tensor(classes, dtype))), reduction)


@rule("multilabel_margin_loss_forward")
def _multilabel_margin_forward(im: Importer, x: Expr, target: Expr, reduction: int) -> Any:
    return (_multilabel_margin(im, x, target, reduction),)


# ------------------------------------------------------------------------------- classes


@rule("nll_loss", "nll_loss_nd", "nll_loss2d")
def nll_loss(im: Importer, x: Any, target: Any, weight: Any = None,
             reduction: Any = 1, ignore_index: int = -100) -> Any:
    """-weight[t] x[t], where classes are dimension 1, or 0 of a single sample."""
    how = REDUCTIONS.get(reduction) or str(reduction)
    return im.emit(nn.nll_loss(x, target, weight, how, ignore_index))


@rule("nll_loss_forward", "nll_loss2d_forward")
def _nll_forward(im: Importer, x: Expr, target: Expr, weight: Expr | None, reduction: int,
                 ignore_index: int) -> Any:
    return (nll_loss(im, x, target, weight, reduction, ignore_index),)


@rule("cross_entropy", "cross_entropy_loss")
def _cross_entropy(im: Importer, x: Expr, target: Expr, weight: Expr | None = None,
                   reduction: Any = 1, ignore_index: int = -100, label_smoothing: float = 0.0
                   ) -> Any:
    """log_softmax and nll_loss, or a sum over the classes where the target is probabilities."""
    axis = 1 if im.ndim(x) > 1 else 0
    log = im.emit(nn.log_softmax(x, axis))
    if is_float(im.dtype(target)):
        return _of_probabilities(im, log, target, weight, reduction, label_smoothing, axis)
    picked = nll_loss(im, log, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return picked
    dtype, classes = im.dtype(x), im.shape(x)[axis]
    smooth = im.emit(op.sum(_by_class(im, log, weight, axis), [axis]))
    there = im.emit(op.not_equal(target, im.const(ignore_index, im.dtype(target))))
    zero = im.const(0, dtype)
    smooth = im.emit(op.where(there, im.emit(op.negative(smooth)), zero))
    name = REDUCTIONS.get(reduction, reduction)
    if name != "none":
        smooth = im.emit(op.sum(smooth))
    if name == "mean":
        used = im.cast(there, dtype)
        if weight is not None:
            safe = im.emit(op.where(there, target, im.const(0, im.dtype(target))))
            used = im.emit(op.multiply(used, im.emit(op.take(weight, safe, 0))))
        smooth = im.emit(op.divide(smooth, im.emit(op.sum(used))))
    part = im.emit(op.divide(im.const(label_smoothing, dtype), im.tensor(classes, dtype)))
    return im.emit(op.add(im.emit(op.multiply(picked, im.const(1 - label_smoothing, dtype))),
                          im.emit(op.multiply(smooth, part))))


def _by_class(im: Importer, log: Expr, weight: Expr | None, axis: int) -> Any:
    """Logarithms times the weight of their class."""
    if weight is None:
        return log
    from .views import reshaped

    shape = [1] * im.ndim(log)
    shape[axis] = im.shape(log)[axis]
    return im.emit(op.multiply(log, reshaped(im, weight, shape)))


def _of_probabilities(im: Importer, log: Expr, target: Expr, weight: Expr | None,
                      reduction: Any, smoothing: float, axis: int) -> Any:
    dtype = im.dtype(log)
    if smoothing:
        part = im.emit(op.divide(im.const(smoothing, dtype),
                                 im.tensor(im.shape(log)[axis], dtype)))
        target = im.emit(op.add(im.emit(op.multiply(target, im.const(1 - smoothing, dtype))),
                                part))
    loss = im.emit(op.multiply(_by_class(im, log, weight, axis), target))
    loss = im.emit(op.negative(im.emit(op.sum(loss, [axis]))))
    if REDUCTIONS.get(reduction, reduction) == "mean":
        count: Any = 1
        for d in im.shape(loss):
            count = count * d
        return im.emit(op.divide(im.emit(op.sum(loss)), im.tensor(count, dtype)))
    return reduced(im, loss, reduction)


__all__ = ["REDUCTIONS", "nll_loss", "reduced"]
