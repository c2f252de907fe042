"""from_exported_program: what `torch.export` gives, as a Relax module.

The program is a graph of ATen operators with sizes that may be symbolic; each node becomes what its
rule emits. Operators without a rule are all found, and taken apart by torch, before anything is
translated.
"""

from __future__ import annotations

import contextlib
import operator
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ....ir.module import IRModule
from ....tir import op as O
from ....tir.expr import SizeVar
from ...expr import Constant, ShapeExpr, Tuple, Var
from ...struct_info import ShapeStructInfo, TensorStructInfo
from ..common import identifier
from . import (
    activations, arithmetic, casting, convolutions, creation, images, indexing, joining, losses,
    norms, ordering, placing, pooling, products, recurrent, reductions, scattering, special, views,
)
from .aliasing import observed_facts, recorded_facts, written_by_schema
from .graphs import GraphImporter, subgraphs_of
from .symbols import RELATIONS, expressions_of, is_symbolic
from .wraps import flattened

if TYPE_CHECKING:
    from torch.fx import Node

#: the files of the rules, loaded so that the table is full
TOPICS = (activations, arithmetic, casting, convolutions, creation, images, indexing, joining,
          losses, norms, ordering, placing, pooling, products, recurrent, reductions, scattering,
          special, views)


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
    becomes a symbol for the whole extent, of which h is computed. A run checks that sizes are in
    the ranges, and give the numbers, that torch traced the model for. `custom_convert_map` gives
    rules `f(node, importer)` by operator name ("gelu", "gelu.default"). `run_ep_decomposition`
    has torch take composite operators apart first; operators that have no rule are taken apart by
    torch in any case.

    A function of Relax changes nothing. What the model writes to an input or a buffer, and does not
    return, is returned after the model's own results; the attribute "changed" names these inputs
    and buffers in order. Checks of the model (`torch._check`, `assert`) are taken to hold.

    Raises MissingOperators with all operators that have no rule, and where they stand; TypeError
    for a model that was not exported; ValueError for an argument that is not translated.
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


class _ExportedImporter(GraphImporter):
    """Translates one exported program."""

    frontend = "from_exported_program"

    def run(self, program: Any, keep: bool, unwrap: bool, no_bind: bool) -> IRModule:
        program, graph, self.owner = flattened(program)
        nodes = list(graph.nodes)
        # now: what looks at torch's tensors later may settle their sizes
        self.counted_on = {n: expressions_of(n.meta.get("val")) for n in nodes}
        self.plan(nodes)
        if any(map(written_by_schema, nodes)):
            self.watch(recorded_facts(nodes) or self.observed(program, nodes))
        inputs, params, values = self.placeholders(program, nodes, keep)
        attrs: dict[str, Any] = {}
        if keep:
            attrs = {"num_input": len(inputs), "params": values}
        pure = not any(subgraphs_of(n) for n in nodes if n.op == "call_function")
        with self.builder.function("main", [*inputs, *params], attrs=attrs):
            with self.builder.dataflow() if pure else contextlib.nullcontext():
                self.check_sizes(nodes)
                out = self.walk(program, nodes)
                names, changed = self.changed(out)
                out = [*out, *changed]
                out = out[0] if unwrap and len(out) == 1 else Tuple(out)
                out = self.results(out, no_bind) if pure else out
            self.builder.emit_func_output(out)
        return self.named(self.module(pure), [*self.buffers, *names])

    def walk(self, program: Any, nodes: list[Any]) -> list[Any]:
        """Translate all nodes; what the user gets."""
        for node in nodes:
            if node.op == "call_function":
                if node.users or node.target is not operator.getitem:
                    self.step(node)
            elif node.op == "get_attr":
                self.env[node] = self.attribute(self.owner, node.target)
            elif node.op == "output":
                return self.outputs(program, node)
        return []

    def named(self, mod: IRModule, names: list[str]) -> IRModule:
        """The module, whose function says which of its results are changed inputs."""
        if names:
            var = mod.get_global_var("main")
            mod.update_func(var, mod["main"].with_attr("changed", names))
        return mod

    # ------------------------------------------------------------------------- inputs

    def placeholders(self, program: Any, nodes: list[Any], keep: bool
                     ) -> tuple[list[Var], list[Var], list[Any]]:
        """Variables of the inputs, variables of the parameters, and their values."""
        specs = {getattr(s.arg, "name", None): s for s in program.graph_signature.input_specs}
        for symbol, limits in program.range_constraints.items():
            low, high = limits.lower, limits.upper
            self.ranges[str(symbol)] = (int(low) if low.is_Integer else 0,
                                        min(int(high), 2**40) if high.is_Integer else 2**40)
        self.sizes.name_extents(node for node in nodes if node.op == "placeholder"
                                and specs[node.name].kind.name == "USER_INPUT")
        inputs: list[Var] = []
        params: list[Var] = []
        values: list[Any] = []
        shared = self.shared(program, nodes, specs)
        for node in nodes:
            if node.op != "placeholder":
                continue
            spec = specs[node.name]
            if spec.kind.name == "USER_INPUT":
                value = node.meta.get("val")
                if not hasattr(value, "shape"):
                    self.env[node] = self.sizes.size(value) if is_symbolic(value) else value
                    continue
                var = Var(identifier(node.name), self.sizes.info(value))
                inputs.append(var)
                self.hold(node, var, node.name)
                continue
            if not node.users:
                continue
            tensor = _stored(program, spec.target)
            if tensor is None:
                raise ValueError(f"the value of {spec.target} is not stored in the program")
            if node in shared and self.hold_stored(
                    node, tensor, lambda t=tensor: Constant(self.parameter(t)), spec.target):
                if keep:
                    raise ValueError(f"{spec.target} shares its memory with another tensor of the "
                                     "model and is written to, which is not translated with "
                                     "keep_params_as_input: clone() it where it is registered")
                continue
            value = self.parameter(tensor)
            if keep:
                var = Var(identifier(node.name), TensorStructInfo(
                    tuple(value.shape), str(value.dtype)))
                params.append(var)
                values.append(value)
                self.hold(node, var, spec.target)
            else:
                self.hold(node, Constant(value), spec.target)
        return inputs, params, values

    def shared(self, program: Any, nodes: list[Any], specs: dict[Any, Any]) -> set[Any]:
        """The parameters and buffers that lie in each other's memory, which torch's own tensors of
        the graph do not say. What is known of writes is joined for them."""
        homes: dict[Any, list[Any]] = {}
        if self.aliases is None:
            return set()
        for node in nodes:
            if node.op != "placeholder" or not node.users:
                continue
            spec = specs[node.name]
            tensor = None if spec.kind.name == "USER_INPUT" else _stored(program, spec.target)
            if tensor is not None and node in self.aliases.facts:
                homes.setdefault(tensor.untyped_storage()._cdata, []).append(node)
        several = [group for group in homes.values() if len(group) > 1]
        for group in several:
            self.aliases.join(group)
        return {node for group in several for node in group}

    def check_sizes(self, nodes: list[Any]) -> None:
        """Let a run check what torch took for granted of the sizes of inputs when it traced the
        model: their ranges, and what it computed from them as numbers. Torch's own lower bound of
        2, and that a size is not 1, are for its sake: the module holds for those too."""
        for name, (low, high) in self.ranges.items():
            var = self.sizes.symbols.get(name)
            if not isinstance(var, SizeVar):
                continue
            inside = var if high >= 2**40 else O.min_value_of(var, high)
            inside = inside if low <= 2 else O.max_value_of(inside, low)
            if inside is not var:
                self.builder.match_cast(ShapeExpr([var]), ShapeStructInfo([inside]), "in_range")
        for guard in self.guards(nodes):
            kind = type(guard).__name__
            if kind not in RELATIONS or not self.sizes.defines(guard):
                continue
            holds = self.sizes.symbolic(guard)
            if kind == "Equality" and all(a.is_integer for a in guard.args):
                self.sizes.equal.append(tuple(map(self.sizes.symbolic, guard.args)))
            if isinstance(holds, bool) or self.analyzer(holds).can_prove(holds):
                continue
            one = O.if_then_else(holds, O.const(1, "int64"), O.const(0, "int64"))
            self.builder.match_cast(ShapeExpr([one]), ShapeStructInfo([1]), "guard")

    def guards(self, nodes: list[Any]) -> list[Any]:
        """What has to be true of sizes, as torch found when it traced the model."""
        values = (n.meta.get("val") for n in nodes if n.op == "placeholder")
        env = next((v.fake_mode.shape_env for v in values if hasattr(v, "fake_mode")), None)
        return [g.expr for g in getattr(env, "guards", ())]

    def hold(self, node: Node, value: Any, name: str) -> None:
        """Keep the value of an input or a parameter."""
        if self.aliases is None or not self.aliases.hold(node, value, name):
            self.env[node] = value

    def held(self, tensor: Any) -> Any:
        return Constant(self.parameter(tensor))

    def observed(self, program: Any, nodes: list[Any]) -> Any:
        """What nodes do to memory, where the program does not say it: seen by running it."""
        import torch

        fakes = [n.meta.get("val") for n in nodes if n.op == "placeholder"]
        mode = next((f.fake_mode for f in fakes if hasattr(f, "fake_mode")), None)
        if mode is None:
            from torch._subclasses.fake_tensor import FakeTensorMode

            mode = FakeTensorMode(allow_non_fake_inputs=True)
        with mode:
            fresh = [torch.empty_strided(f.size(), f.stride(), dtype=f.dtype)
                     if hasattr(f, "stride") else f for f in fakes]
        return observed_facts(torch.fx.GraphModule(self.owner, nodes[0].graph), fresh, mode)

    # ------------------------------------------------------------------------- outputs

    def outputs(self, program: Any, node: Node) -> list[Any]:
        """What the user gets, then the changed buffers and inputs that the program returns."""
        kinds = [s.kind.name for s in program.graph_signature.output_specs]
        values = self.argument(node.args[0])
        mine = [v for v, k in zip(values, kinds) if k in ("USER_OUTPUT", "LOSS_OUTPUT")]
        self.buffers = [str(s.target) for s in program.graph_signature.output_specs
                        if s.kind.name in _CHANGED]
        changed = [v for v, k in zip(values, kinds) if k in _CHANGED]
        return [self.output(v) for v in (*mine, *changed)]

    def output(self, value: Any) -> Any:
        """One result: a tensor; a number or a size as a tensor of no dimensions."""
        from .importer import is_tensor

        if value is None or is_tensor(value):
            return value
        kind = "bool" if isinstance(value, bool) else self.dtype(value)
        return self.tensor(value, kind)


#: kinds of outputs that torch adds where a program without writes has to give what it changed
_CHANGED = frozenset({"BUFFER_MUTATION", "PARAMETER_MUTATION", "USER_INPUT_MUTATION"})


def _stored(program: Any, target: str) -> Any:
    for home in (program.state_dict, program.constants):
        if target in home:
            return home[target]
    return None


__all__ = ["from_exported_program"]
