"""from_exported_program: what `torch.export` gives, as a Relax module.

The program is a graph of ATen operators with sizes that may be symbolic; each node becomes what its
rule emits. Operators without a rule are all found before anything is translated.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Mapping

from ....ir.module import IRModule
from ....tir import op as O
from ....tir.expr import PrimExpr, SizeVar
from ...expr import Constant, Expr, Tuple, Var
from ...struct_info import TensorStructInfo
from ..common import identifier, located
from . import creation, elementwise, layers, recurrent, reductions, shapes
from .importer import Importer, dtype_name, is_tensor, lookup, place_of, refuse

#: the files of the rules, loaded so that the table is full
TOPICS = (creation, elementwise, layers, recurrent, reductions, shapes)

#: checks that torch leaves in the graph, and what has no value
_IGNORED = {"_assert_scalar", "_assert_async", "sym_constrain_range_for_size",
            "sym_constrain_range", "_assert_tensor_metadata", "is_nonzero"}


def from_exported_program(exported_program: Any, *, keep_params_as_input: bool = False,
                          unwrap_unit_return_tuple: bool = False,
                          no_bind_return_tuple: bool = False,
                          custom_convert_map: Mapping[str, Callable] | None = None,
                          run_ep_decomposition: bool = False) -> IRModule:
    """The function `main` of an exported program (`torch.export.export(model, inputs)`).

    Parameters and buffers are constants, or with `keep_params_as_input` further parameters of the
    function, whose values are in its attribute "params" (see `detach_params`) and whose inputs are
    counted in "num_input". The result is a tuple; `unwrap_unit_return_tuple` gives the one item of
    a tuple of one, `no_bind_return_tuple` returns the tuple without binding it to a variable.
    Symbolic dimensions (`dynamic_shapes=`) become symbolic dimensions; one that is derived (2 * h)
    becomes a symbol for the whole extent, of which h is computed. `custom_convert_map` gives
    rules `f(node, importer)` by operator name ("gelu", "gelu.default"). `run_ep_decomposition`
    has torch take composite operators apart first.

    Raises MissingOperators with all operators that have no rule, and where they stand; TypeError
    for a model that was not exported.
    """
    program = exported_program
    if not hasattr(program, "graph_signature"):
        raise TypeError(
            "from_exported_program takes a torch.export.ExportedProgram, not "
            f"{type(program).__name__}; export the model first: "
            "from_exported_program(torch.export.export(model, example_inputs))")
    if run_ep_decomposition:
        program = program.run_decompositions()
    return _ExportedImporter(custom_convert_map).run(
        program, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple)


def names_of(target: Any) -> tuple[str, ...]:
    """The names a target may have a rule under: "add.Tensor", "add"."""
    name = getattr(target, "__name__", str(target))
    base = name.partition(".")[0]
    plain = base.strip("_") if base.startswith("__") else base.rstrip("_") or base
    return tuple(dict.fromkeys((str(target), name, base, plain)))


def changes_its_argument(target: Any) -> bool:
    """Whether an operator writes to its first argument: `relu_`, `add_`."""
    base = getattr(target, "__name__", str(target)).partition(".")[0]
    return base.endswith("_") and not base.endswith("__")


class _ExportedImporter(Importer):
    """Translates one exported program."""

    def run(self, program: Any, keep: bool, unwrap: bool, no_bind: bool) -> IRModule:
        nodes = list(program.graph.nodes)
        missing = [(str(n.target), place_of(n)) for n in nodes if n.op == "call_function"
                   and names_of(n.target)[-1] not in _IGNORED
                   and lookup(self, names_of(n.target)) is None]
        refuse("from_exported_program", missing)
        self.symbols: dict[str, PrimExpr] = {}
        self.extents: dict[Any, PrimExpr] = {}  # expressions of sympy that have a symbol here
        self.solved: dict[Any, Any] = {}  # torch's symbols through those
        inputs, params, values = self.placeholders(program, nodes, keep)
        attrs: dict[str, Any] = {}
        if keep:
            attrs = {"num_input": len(inputs), "params": values}
        with self.builder.function("main", [*inputs, *params], attrs=attrs):
            out: Any = None
            with self.builder.dataflow():
                for node in nodes:
                    if node.op == "call_function":
                        if node.users or node.target is not operator.getitem:
                            self.env[node] = self.call(node)
                    elif node.op == "get_attr":
                        self.env[node] = self.attribute(program, node.target)
                    elif node.op == "output":
                        out = self.outputs(program, node, unwrap)
                if not (no_bind and isinstance(out, Tuple)):
                    out = self.builder.emit_output(out)
                else:
                    out = Tuple([self.builder.emit_output(f) for f in out.fields_])
            self.builder.emit_func_output(out)
        return self.builder.get()

    # ------------------------------------------------------------------------- inputs

    def placeholders(self, program: Any, nodes: list[Any], keep: bool
                     ) -> tuple[list[Var], list[Var], list[Any]]:
        """Variables of the inputs, variables of the parameters, and their values."""
        specs = {getattr(s.arg, "name", None): s for s in program.graph_signature.input_specs}
        self.name_extents(node for node in nodes if node.op == "placeholder"
                          and specs[node.name].kind.name == "USER_INPUT")
        inputs: list[Var] = []
        params: list[Var] = []
        values: list[Any] = []
        for node in nodes:
            if node.op != "placeholder":
                continue
            spec = specs[node.name]
            if spec.kind.name == "USER_INPUT":
                value = node.meta.get("val")
                if not hasattr(value, "shape"):
                    self.env[node] = self.size(value) if _is_symbolic(value) else value
                    continue
                var = Var(identifier(node.name), self.info(value))
                inputs.append(var)
                self.env[node] = var
                continue
            if not node.users:
                continue
            tensor = _stored(program, spec.target)
            if tensor is None:
                raise ValueError(f"the value of {spec.target} is not stored in the program")
            value = self.parameter(tensor)
            if keep:
                var = Var(identifier(node.name), TensorStructInfo(
                    tuple(value.shape), str(value.dtype)))
                params.append(var)
                values.append(value)
                self.env[node] = var
            else:
                self.env[node] = Constant(value)
        return inputs, params, values

    def name_extents(self, nodes: Any) -> None:
        """Give symbols to dimensions of inputs that are expressions of a symbol no input has.

        torch writes a dimension `2 * Dim("h")` as 2*s; a function here takes its sizes from its
        inputs, so the whole extent becomes a symbol n, and s is n // 2 wherever else it occurs.
        """
        dims = [(f"{node.name}_{k}", d.node.expr) for node in nodes
                for k, d in enumerate(getattr(node.meta.get("val"), "shape", ()))
                if _is_symbolic(d)]
        known = {e for _, e in dims if e.is_Symbol}
        for name, e in dims:
            unknown = e.free_symbols - known
            if not unknown:
                continue
            s = unknown.pop()
            by = e.expand().coeff(s, 1)
            rest = (e - by * s).expand()
            if unknown or not by.is_Integer or by < 1 or s in rest.free_symbols:
                raise ValueError(f"the dimension {name.rpartition('_')[2]} of the input "
                                 f"{name.rpartition('_')[0]} is {e}, from which {s} cannot be "
                                 "computed: give it a Dim of its own")
            extent = type(s)(identifier(name), integer=True, positive=True)
            n = self.symbols[str(extent)] = SizeVar(str(extent), "int64")
            self.symbols[str(s)] = O.floordiv(n - self.symbolic(rest), int(by))
            self.extents[e] = n
            self.solved[s] = (extent - rest.subs(self.solved)) / by
            known.add(s)

    def attribute(self, program: Any, target: str) -> Any:
        """A tensor that the graph holds itself."""
        value = program.graph_module
        for part in target.split("."):
            value = getattr(value, part)
        return Constant(self.parameter(value)) if hasattr(value, "detach") else value

    def info(self, value: Any) -> TensorStructInfo:
        """What torch knows of a tensor."""
        return TensorStructInfo([self.size(d) for d in value.shape], dtype_name(value.dtype))

    def size(self, value: Any) -> Any:
        """A size of torch: an int, or an expression over symbolic sizes."""
        if not _is_symbolic(value):
            return value
        return self.symbolic(value.node.expr)

    def symbolic(self, e: Any) -> Any:
        """An expression of sympy over sizes."""
        if e in self.extents:
            return self.extents[e]
        if self.solved and getattr(e, "args", ()) and e.is_polynomial():
            whole = e.subs(self.solved).expand()
            if whole != e and not any(a.is_Rational and not a.is_Integer for a in whole.atoms()):
                return self.symbolic(whole)  # with no division left
        if getattr(e, "is_Integer", False):
            return int(e)
        if getattr(e, "is_Symbol", False):
            return self.symbols.setdefault(str(e), SizeVar(str(e), "int64"))
        kind = type(e).__name__
        args = [self.symbolic(a) for a in e.args]
        fold = {"Add": operator.add, "Mul": operator.mul, "Max": O.max_value_of,
                "Min": O.min_value_of}.get(kind)
        if fold is not None:
            total = args[0]
            for a in args[1:]:
                total = fold(total, a)
            return total
        if kind in ("FloorDiv", "CleanDiv", "IntTrueDiv"):
            return O.floordiv(*args)
        if kind in ("Mod", "PythonMod"):
            return O.floormod(*args)
        if kind == "Pow" and isinstance(args[1], int) and args[1] > 0:
            total = args[0]
            for _ in range(args[1] - 1):
                total = total * args[0]
            return total
        raise ValueError(f"a size is {e}, which is no sum, product, quotient or remainder of sizes")

    # ------------------------------------------------------------------------- nodes

    def argument(self, value: Any) -> Any:
        """An argument of a node: values of other nodes put in."""
        kind = type(value)
        if kind.__name__ == "Node" and hasattr(value, "op"):
            return self.env[value]
        if isinstance(value, (list, tuple)):
            return [self.argument(v) for v in value] if kind is not tuple else tuple(
                self.argument(v) for v in value)
        if kind is slice:
            return slice(*(self.argument(v) for v in (value.start, value.stop, value.step)))
        if isinstance(value, dict):
            return {k: self.argument(v) for k, v in value.items()}
        return self.size(value) if _is_symbolic(value) else value

    def call(self, node: Any) -> Any:
        """The value of a call, by the rule of its operator."""
        names = names_of(node.target)
        if names[-1] in _IGNORED:
            return None
        for name in names:
            if name in self.custom:
                return self.custom[name](node, self)
        fn = lookup(self, names)
        kwargs = {k: self.argument(v) for k, v in node.kwargs.items()
                  if k not in ("device", "pin_memory", "layout", "memory_format", "non_blocking")}
        try:
            out = fn(self, *[self.argument(a) for a in node.args], **kwargs)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise located(error, f"{node.target} at {place_of(node)}") from error
        out = self.with_shape(out, node.meta.get("val"))
        if changes_its_argument(node.target) and node.args:
            self.env[node.args[0]] = out
        return out

    def with_shape(self, out: Any, known: Any) -> Any:
        """A tensor whose shape was lost, with the shape that torch knows."""
        if is_tensor(out) and out.struct_info.dims is None and hasattr(known, "shape"):
            return self.builder.match_cast(out, self.info(known))
        return out

    def outputs(self, program: Any, node: Any, unwrap: bool) -> Expr:
        """What the user gets, without changed buffers."""
        wanted = [s.kind.name == "USER_OUTPUT" for s in program.graph_signature.output_specs]
        values = [self.argument(a) for a, user in zip(node.args[0], wanted) if user]
        if unwrap and len(values) == 1:
            return values[0]
        return Tuple(values)


def _is_symbolic(value: Any) -> bool:
    return type(value).__name__ in ("SymInt", "SymFloat", "SymBool")


def _stored(program: Any, target: str) -> Any:
    for home in (program.state_dict, program.constants):
        if target in home:
            return home[target]
    return None


__all__ = ["from_exported_program", "names_of"]
