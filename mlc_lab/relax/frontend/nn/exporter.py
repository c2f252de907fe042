"""From a module to an IRModule: each method is run once, and what it does is written down."""

from __future__ import annotations

from typing import Any

from .... import tir
from ...block_builder import BlockBuilder
from ...expr import Expr, TupleGetItem, Var
from ...expr import Tuple as RelaxTuple
from ...struct_info import (
    ObjectStructInfo, ShapeStructInfo, TensorStructInfo, TupleStructInfo,
)
from . import spec
from .module import _members
from .module import Effect as _Effect
from .modules import IOEffect
from .tensor import Object, Parameter, Tensor


class Exporter:
    """Builds an IRModule; `Exporter.current()` is the one at work."""

    _stack: list["Exporter"] = []

    def __init__(self, debug: bool = False) -> None:
        self.builder = BlockBuilder()
        self.io_effect = IOEffect() if debug else None

    @staticmethod
    def current() -> "Exporter":
        """The exporter at work. Raises RuntimeError where none is."""
        if not Exporter._stack:
            raise RuntimeError("no nn.Module is being exported")
        return Exporter._stack[-1]

    def __enter__(self) -> "Exporter":
        Exporter._stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Exporter._stack.pop()

    def build(self, module: spec.ModuleSpec) -> tuple[Any, list[tuple[str, Parameter]]]:
        """The IRModule, and the parameters by name."""
        params = list(module.module.named_parameters())
        effects = list(_members(module.module, "", lambda x: isinstance(x, _Effect)))
        if self.io_effect is not None:
            effects.insert(0, ("", self.io_effect))
        before = [p._expr for _, p in params]
        bb = self.builder
        try:
            with self:
                if effects:
                    with bb.function("_initialize_effect", []):
                        with bb.dataflow():
                            first = [v for name, e in effects for v in e.emit_init(name, bb)]
                            out = bb.emit_output(bb.emit(RelaxTuple(first)))
                        bb.emit_func_output(out)
                for name, method in zip(module.method_names, module.method_specs):
                    _Method(bb, name, method, params, effects).write()
        finally:
            for (_, param), expr in zip(params, before):
                param._expr = expr
        return bb.finalize(), params


class _Method:
    """One method on its way to a function."""

    def __init__(self, builder: BlockBuilder, name: str, method: spec.MethodSpec,
                 params: list, effects: list) -> None:
        self.bb, self.name, self.method = builder, name, method
        self.params, self.effects = params, effects
        self.symbols: dict[str, tir.Var] = {}  # one a name: of arguments and parameters alike
        self.unpacked: list[Any] = []  # what is to do at the start of the body

    def write(self) -> None:
        """Write the function into the module."""
        bb, method = self.bb, self.method
        values, inputs = [], []
        for arg, what in zip(method.arg_names, method.arg_specs):
            value, var = self.argument(arg, what)
            values.append(value)
            inputs.append(var)
        inputs += self.effect_inputs()
        count = len(inputs)
        inputs += self.param_inputs()
        with bb.function(self.name, inputs, attrs={"num_input": count}):
            with bb.dataflow():
                for step in self.unpacked:
                    step()
                arguments = {n: v() if callable(v) and not isinstance(v, (Tensor, Object)) else v
                             for n, v in zip(method.arg_names, values)}
                result = self.result(method.method(**arguments))
                after = [v for _, e in self.effects for v in e.finalize()]
                if after and method.effect_mode != "none":
                    result = RelaxTuple([result, RelaxTuple(after)])
                out = bb.emit_output(result)
            bb.emit_func_output(out)

    # -- what goes in -----------------------------------------------------------------------------

    def symbol(self, name: str) -> tir.Var:
        """The symbolic dimension of that name."""
        return self.symbols.setdefault(name, tir.Var(name, "int64"))

    def shape(self, extents: list) -> list:
        """A shape with the method's own symbolic dimensions."""
        return [self.symbol(d if isinstance(d, str) else d.name)
                if isinstance(d, (str, tir.Var)) else d for d in extents]

    def argument(self, name: str, what: Any) -> tuple[Any, Var]:
        """What the method gets (or a function that makes it in the body), and the variable."""
        info = self.info(name, what)
        var = Var(name, info)
        if isinstance(what, spec.Int):
            return self.symbol(name), var
        if isinstance(what, spec.Tensor):
            return Tensor(_expr=var), var
        if isinstance(what, spec.Object):
            return what.object_type(_expr=var, _name=name), var
        return (lambda: self.taken_apart(name, what, var)), var

    def info(self, name: str, what: Any) -> Any:
        """The struct info of an argument."""
        if isinstance(what, spec.Int):
            return ShapeStructInfo([self.symbol(name)])
        if isinstance(what, spec.Tensor):
            return TensorStructInfo(self.shape(what.shape), what.dtype)
        if isinstance(what, spec.Object):
            return ObjectStructInfo()
        return TupleStructInfo([self.info(f"{name}_{i}", e) for i, e in enumerate(what.elements)])

    def taken_apart(self, name: str, what: Any, value: Expr) -> Any:
        """A tuple as a tuple of what it has."""
        if isinstance(what, spec.Int):
            return self.symbol(name)
        if isinstance(what, spec.Tensor):
            return Tensor(_expr=value)
        if isinstance(what, spec.Object):
            return what.object_type(_expr=value, _name=name)
        return type(what.elements)(
            self.taken_apart(f"{name}_{i}", e,
                             self.bb.emit(TupleGetItem(value, i), f"{name}_{i}"))
            for i, e in enumerate(what.elements))

    def effect_inputs(self) -> list[Var]:
        """The variables for the effects."""
        states = [(effect, effect.create(name)) for name, effect in self.effects]
        for effect, state in states:
            effect.set_state(state)
        flat = [v for _, state in states for v in state]
        if self.method.effect_mode == "packed" and flat:
            whole = Var("packed_effects", TupleStructInfo([v.struct_info for v in flat]))
            self.unpacked.append(lambda: self.unpack_effects(whole, states))
            return [whole]
        return flat if self.method.effect_mode == "plain" else []

    def unpack_effects(self, whole: Var, states: list) -> None:
        """Take the effects out of their tuple."""
        at = 0
        for effect, state in states:
            effect.set_state([self.bb.emit(TupleGetItem(whole, at + i), v.name_hint)
                              for i, v in enumerate(state)])
            at += len(state)

    def param_inputs(self) -> list[Var]:
        """The variables for the parameters."""
        out = []
        for name, param in self.params:
            info = TensorStructInfo(self.shape(param.shape), param.dtype)
            param._expr = Var(name.replace(".", "_"), info)
            out.append(param._expr)
        if self.method.param_mode == "packed":
            whole = Var("packed_params", TupleStructInfo([v.struct_info for v in out]))

            def unpack() -> None:
                for i, (name, param) in enumerate(self.params):
                    param._expr = self.bb.emit(TupleGetItem(whole, i), name.replace(".", "_"))
            self.unpacked.append(unpack)
            return [whole]
        return out if self.method.param_mode == "plain" else []

    # -- what comes out ---------------------------------------------------------------------------

    def result(self, value: Any) -> Expr:
        """The Relax expression of what the method gave."""
        if isinstance(value, (Tensor, Object)):
            return value._expr
        if isinstance(value, (tuple, list)):
            return RelaxTuple([self.result(v) for v in value])
        if isinstance(value, Expr):
            return value
        raise TypeError(f"{self.name} gives {value!r}; a method gives nn.Tensors, nn.Objects, or "
                        "tuples of them")


__all__ = ["Exporter"]
