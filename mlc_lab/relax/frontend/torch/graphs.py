"""What from_exported_program and from_fx do alike: walk over a graph, call the rule of each node,
keep track of what is written to, and take apart what has no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping

from ....ir.module import IRModule
from ....tir import op as O
from ....tir.expr import PrimExpr, SizeVar
from ... import op
from ...expr import Constant, Expr, If, SeqExpr, Tuple
from ...op.common import info_of
from ...struct_info import TensorStructInfo
from ...transform.convert_to_dataflow import ConvertToDataflow
from ...transform.dead_code_elimination import remove_all_unused
from ...transform.lambda_lift import LambdaLift
from ...transform.rewriting import map_functions
from ..common import located
from ..looping import while_loop
from .aliasing import HARMLESS, Aliases, Facts, NotRun, written_by_schema
from .calling import fitted, names_of, place_of, refuse
from .decomposing import NotDecomposed, Parts, taken_apart
from .importer import RULES, Importer, is_tensor
from .symbols import Sizes, is_symbolic
from .placing import back_by_places, strided_places
from .views import WAYS_BACK, reshaped
from .wraps import BRANCHING

if TYPE_CHECKING:
    from torch.fx import Graph, Node
    from .importer import Operand, Size

#: checks that torch leaves in the graph, and what has no value
CHECKS = frozenset({
    "_assert", "_assert_scalar", "_assert_async", "_assert_tensor_metadata", "_check",
    "sym_constrain_range", "sym_constrain_range_for_size", "_check_is_size"})

_CALLS = ("call_function", "call_method", "call_module")
#: functions of Python that write to their first argument; methods have them between underscores
WRITING = frozenset({"setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow",
                     "iand", "ior", "ixor", "ilshift", "irshift", "imatmul"})


class GraphImporter(Importer):
    """Translates graphs of torch.fx into one function."""

    #: the function that the user called
    frontend = ""

    def __init__(self, custom: Mapping[Any, Callable] | None = None) -> None:
        super().__init__(custom)
        self.sizes = Sizes()
        self.aliases: Aliases | None = None
        self._parts: dict[Any, Parts] = {}
        self._instead: dict[Any, Any] = {}
        #: the sizes of what a node gives, as torch's expressions
        self.counted_on: dict[Any, Any] = {}

    # ------------------------------------------------------------------------- planning

    def find(self, node: Node) -> Callable[..., Any] | None:
        """The rule of a call of a function or a method."""
        for name in names_of(node.target):
            if name in RULES:
                return RULES[name]
        return None

    def own_rule(self, node: Node) -> Callable[..., Any] | None:
        """The rule that the user gave for a node: `f(node, importer)`."""
        if self.custom:
            for name in (node.target, *names_of(node.target)):
                if name in self.custom:
                    return self.custom[name]
        return None

    def has_rule(self, node: Node) -> bool:
        """Whether a call can be translated as it stands."""
        return (self.own_rule(node) is not None or self.find(node) is not None
                or names_of(node.target)[-1] in CHECKS or subgraphs_of(node) is not None)

    def plan(self, nodes: Iterable[Any]) -> None:
        """Take apart what has no rule. Raises MissingOperators with all that is left."""
        missing: list[tuple[str, str]] = []
        for node in nodes:
            if node.op not in _CALLS:
                continue
            if not self.has_rule(node):
                missing += self.missing(node)
        refuse(self.frontend, missing)

    def missing(self, node: Node) -> list[tuple[str, str]]:
        """What a call without a rule still needs after torch has taken it apart."""
        try:
            self._parts[node] = taken_apart(self.callable(node), node.args, node.kwargs, self.fake,
                                            self.has_rule)
        except NotDecomposed as error:
            name, own = self.name_of(node), str(node.target)
            inner = [w for w in error.without if w != own]
            where = place_of(node)
            if inner:
                where += f" (torch takes it apart into {', '.join(inner)}, without a rule too)"
            return [(name, where)]
        except NotRun as error:
            return [(self.name_of(node), f"{place_of(node)} ({error})")]
        return []

    def callable(self, node: Node) -> Callable[..., Any]:
        """What a node calls."""
        assert callable(node.target)
        return node.target

    def name_of(self, node: Node) -> str:
        """What a node calls, for a message."""
        return str(node.target)

    def watch(self, facts: Mapping[Any, Facts] | None) -> None:
        """Keep track of what is written to, by the facts of the graph."""
        if facts is not None and any(f.written for f in facts.values()):
            self.aliases = Aliases(self.env, facts, self.way_back, self.filled)

    # ------------------------------------------------------------------------- walking

    def step(self, node: Node) -> None:
        """Translate a call and keep its value."""
        out = self.call(node)
        if self.aliases is not None and self.aliases.concerns(node):
            self.aliases.settle(node, out, lambda of, value: self.again(node, of, value))
        else:
            self.env[node] = out

    def again(self, node: Node, of: Any, value: Any) -> Any:
        """A call with another value in the place of one argument."""
        kept, self._instead = self._instead, {of: value}
        try:
            return self.call(node)
        finally:
            self._instead = kept

    def argument(self, value: Any) -> Any:
        """An argument of a node: values of other nodes put in."""
        kind = type(value)
        if kind.__name__ == "Node" and hasattr(value, "op"):
            return self._instead[value] if value in self._instead else self.env[value]
        if isinstance(value, (list, tuple)):
            made = [self.argument(v) for v in value]
            return tuple(made) if isinstance(value, tuple) else made
        if kind is slice:
            return slice(*(self.argument(v) for v in (value.start, value.stop, value.step)))
        if isinstance(value, dict):
            return {k: self.argument(v) for k, v in value.items()}
        return self.sizes.size(value) if is_symbolic(value) else value

    def arguments(self, node: Node) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a node."""
        return ([self.argument(a) for a in node.args],
                {k: self.argument(v) for k, v in node.kwargs.items()})

    def call(self, node: Node) -> Any:
        """The value of a call."""
        before, self.node = self.node, node
        try:
            out = self.called(node)
        except (TypeError, ValueError, KeyError, IndexError, NotImplementedError) as error:
            if getattr(error, "located", False):
                raise
            found = located(error, f"{self.name_of(node)} at {place_of(node)}")
            vars(found)["located"] = True
            raise found from error
        finally:
            self.node = before
        known: Any = node.meta.get("val")
        if isinstance(out, SizeVar) and is_symbolic(known):  # torch's own name for it
            self.sizes.symbols.setdefault(str(known.node.expr), out)
        return self.as_counted_on(self.with_shape(out, known), self.counted_on.get(node))

    def called(self, node: Node) -> Any:
        """The value of a call: by the user's rule, the table's, or its parts."""
        own = self.own_rule(node)
        if own is not None:
            return own(node, self)
        fn = self.find(node)
        if fn is not None:
            args, kwargs = fitted(fn, node.target, *self.arguments(node))
            return fn(self, *args, **kwargs)
        if names_of(node.target)[-1] in CHECKS:
            return self.checked(node)
        if node not in self._parts and subgraphs_of(node) is None:
            self.plan([node])  # of a smaller graph
        if node in self._parts:
            parts = self._parts[node]
            return self.inlined(parts.graph, parts.module, map(self.argument, parts.inputs))
        return self.loop(node) if subgraphs_of(node) == "while_loop" else self.branches(node)

    def checked(self, node: Node) -> None:
        """A check of the model: one that fails already is refused, others are taken to hold."""
        args, kwargs = self.arguments(node)
        if args and args[0] is False:
            raise ValueError(f"the model's own check fails: {args[1] if len(args) > 1 else ''}")

    def inlined(self, graph: Graph, owner: Any, values: Iterable[Any]) -> Any:
        """What a smaller graph gives for these values."""
        given = iter(values)
        for node in graph.nodes:
            if node.op == "placeholder":
                self.env[node] = next(given)
            elif node.op == "get_attr":
                self.env[node] = self.attribute(owner, node.target)
            elif node.op == "output":
                return self.argument(node.args[0])
            else:
                self.env[node] = self.call(node)
        return None

    def inner(self, module: Any, values: Iterable[Any]) -> Any:
        """What a graph of `cond` or `while_loop` gives. Writes are not followed into those."""
        for node in module.graph.nodes:
            if node.op in _CALLS and _writes(node):
                raise ValueError(f"{self.name_of(node)} at {place_of(node)} writes to a tensor in "
                                 "a branch or a loop, which is not translated: use the operator "
                                 "that gives a new tensor (add instead of add_)")
        return self.inlined(module.graph, module, values)

    def attribute(self, owner: Any, target: str) -> Any:
        """What a graph holds itself: a tensor as a constant, a smaller graph as it is."""
        held = owner
        for part in target.split("."):
            held = getattr(held, part)
        if type(held).__name__ == "Proxy":
            raise ValueError(f"{target} was given another value while the model was traced, and "
                             f"its own is lost: write to it in place (self.{target}.copy_(...)), "
                             "or use torch.export")
        return self.held(held) if hasattr(held, "detach") else held

    def held(self, tensor: Any) -> Any:
        """A tensor of the model."""
        raise NotImplementedError

    # ------------------------------------------------------------------------- branches

    def branches(self, node: Node) -> Any:
        """`torch.cond`: the value of one of two graphs, as an If."""
        pred, yes, no, *rest = self.arguments(node)[0]
        operands = rest[0] if rest and isinstance(rest[0], (list, tuple)) else rest
        if isinstance(pred, bool):
            taken = yes if pred else no
            return self.inner(taken, operands)
        sides = []
        for branch in (yes, no):
            self.builder.begin_binding_block()
            out = self.inner(branch, operands)
            several = isinstance(out, (list, tuple))
            value = self.builder.emit(Tuple(list(out)) if several else out)
            sides.append(SeqExpr([self.builder.end_block()], value))
        out = self.emit(If(self.condition(pred), *sides))
        return tuple(self.emit(out[k]) for k in range(len(out.struct_info.fields_))) if (
            several) else out

    def loop(self, node: Node) -> Any:
        """`torch.while_loop`: the values that one graph makes while another says so."""
        going, turn, carried, *rest = self.arguments(node)[0]
        others = list(rest[0]) if rest else []
        for k, value in enumerate(carried):
            if not is_tensor(value):
                raise ValueError(f"value {k} that the loop carries is a Python number, and only "
                                 "tensors are carried: make it a tensor (torch.tensor(0))")

        def step(values: list[Expr]) -> list[Expr]:
            return list(self.inner(turn, [*values, *others]))

        def more(values: list[Expr]) -> Expr:
            out = self.inner(going, [*values, *others])
            return self.condition(out[0] if isinstance(out, (list, tuple)) else out)

        return tuple(while_loop(self.builder, list(carried), more, step))

    def condition(self, value: Operand) -> Expr:
        """A value as a condition: a tensor of shape []."""
        out = value if is_tensor(value) else self.tensor(value, "bool")
        return self.cast(reshaped(self, out, []) if self.ndim(out) else out, "bool")

    def module(self, pure: bool) -> IRModule:
        """The module that was built, without what nothing uses. What is around and in branches
        becomes dataflow blocks, so that it is folded and fused like a model without any."""
        mod = map_functions(self.builder.get(), remove_all_unused)
        return mod if pure else ConvertToDataflow(min_size=1)(LambdaLift()(mod))

    # ------------------------------------------------------------------------- shapes

    def with_shape(self, out: object, known: object) -> Any:
        """A tensor whose shape was lost, with the shape that torch knows."""
        if is_tensor(out) and info_of(out).dims is None and hasattr(known, "shape"):
            return self.builder.match_cast(out, self.sizes.info(known))
        return out

    def as_counted_on(self, out: Any, sizes: Any) -> Any:
        """A tensor, or a tuple of them, with the sizes that torch knows, where they are other ones
        than those here: torch counts on them, as on a dimension of an even size, and a run checks
        it."""
        if not sizes:
            return out
        if isinstance(out, tuple):
            return tuple(map(self.as_counted_on, out, sizes)) if len(out) == len(sizes) and all(
                e is None or isinstance(e, list) for e in sizes) else out
        if not is_tensor(out) or len(sizes) != self.ndim(out) or not all(
                isinstance(e, int) or hasattr(e, "free_symbols") and self.sizes.defines(e)
                for e in sizes):
            return out
        have = self.shape(out)
        meant = [e if isinstance(e, int) else self.taken_for(self.sizes.symbolic(e))
                 for e in sizes]
        if all(map(self.surely_same, have, meant)):
            return out
        return self.builder.match_cast(out, TensorStructInfo(meant, self.dtype(out)))

    def taken_for(self, size: Size) -> Any:
        """The one of several expressions that torch takes for equal."""
        for a, b in self.sizes.equal:
            if isinstance(size, PrimExpr) and self.same_size(size, a):
                size = b
        return size

    def surely_same(self, a: Size, b: Size) -> bool:
        """Whether two sizes are equal for all values of their symbols."""
        return self.same_size(a, b) or not (
            isinstance(a, int) and isinstance(b, int)) and (
            self.analyzer(a, b).can_prove(O.equal(a, b)))

    # ------------------------------------------------------------------------- writes

    def way_back(self, node: Node, of: Any, piece: int | None) -> Callable[[Any, Any], Any]:
        """How a change of a node's value becomes one of its argument `of`."""
        overlap = _overlaps(self.fake(node), piece)

        def by_places(whole: Expr, part: Expr) -> Any:
            if overlap:
                raise ValueError(f"{place_of(node)}: a write to a view that has an element several "
                                 "times is not translated: clone() it before")

            def places(tensor: Any) -> Any:
                out = self.again(node, of, tensor)
                return out if piece is None else out[piece]

            return back_by_places(self, whole, part, places)

        fn = next((WAYS_BACK[n] for n in self.view_names(node) if n in WAYS_BACK), None)
        rule = self.find(node) if node.op != "call_module" else None
        if fn is None or not node.args or node.args[0] is not of:
            return by_places
        args, kwargs = self.arguments(node)
        if rule is not None:
            args, kwargs = fitted(rule, node.target, args, kwargs)
        if piece is not None:
            kwargs["piece"] = piece

        def back(whole: Expr, part: Expr) -> Any:
            try:
                return fn(self, whole, part, *args[1:], **kwargs)
            except (TypeError, ValueError, KeyError, IndexError) as error:
                raise located(error, f"{self.name_of(node)} at {place_of(node)}") from error

        return back

    def view_names(self, node: Node) -> tuple[str, ...]:
        """Names a node's way back may have."""
        return names_of(node.target)

    def hold_stored(self, node: Node, held: Any, value: Callable[[], Any], name: str) -> bool:
        """Take a tensor of the model; whether it is tracked. Tensors of a model may be parts of
        each other's memory: of that which is written to, each is a view of the whole."""
        if self.aliases is None or not self.aliases.concerns(node):
            return False
        count = held.untyped_storage().nbytes() // held.element_size()
        if held.is_contiguous() and held.numel() == count:
            root = self.aliases.roots.get(self.aliases.facts[node].storage)
            if root is None or self.shape(root.value) == list(held.shape):
                return self.aliases.hold(node, value(), name)

        def again(whole: Expr) -> Any:
            flat = reshaped(self, whole, [-1])
            places = strided_places(self, list(held.shape), list(held.stride()),
                                    held.storage_offset())
            return self.emit(op.take(flat, places, 0))

        def whole() -> Any:
            return Constant(self.parameter(held.detach().as_strided((count,), (1,), 0)))

        self.aliases.hold_part(node, whole, name, again,
                               lambda all_, part: back_by_places(self, all_, part, again))
        return True

    # ------------------------------------------------------------------------- results

    def results(self, out: Expr, no_bind: bool) -> Any:
        """A value to return, seen outside of the dataflow block."""
        if not (no_bind and isinstance(out, Tuple)):
            return self.builder.emit_output(out)
        return Tuple([self.builder.emit_output(f) for f in out.fields_])

    def changed(self, given: Iterable[Any]) -> tuple[list[str], list[Expr]]:
        """Names and values of inputs and parameters that were written to, but those whose new
        value the model gives anyway."""
        names, values = [], []
        if self.aliases is not None:
            have = {id(v) for v in given}
            for name, slot in self.aliases.outside:
                if slot.storage.version and id(slot.read()) not in have:
                    names.append(name)
                    values.append(slot.read())
        return names, values


def subgraphs_of(node: Node) -> str | None:
    """The name of a higher-order operator whose graphs are translated in place."""
    name = names_of(node.target)[-1]
    return name if name in BRANCHING else None


def _writes(node: Node) -> bool:
    """Whether a call writes to an argument, as its schema or its name says."""
    if node.op == "call_module":
        return False
    name = names_of(node.target)[-1].partition(".")[0]
    if getattr(node.target, "_schema", None) is not None:
        return bool(written_by_schema(node))
    return (name.endswith("_") and not name.endswith("__") and name not in HARMLESS
            or name.strip("_") in WRITING or bool(node.kwargs.get("inplace"))
            or "out" in node.kwargs)


def _overlaps(fake: Any, piece: int | None) -> bool:
    """Whether a view may have an element of memory several times."""
    if piece is not None and isinstance(fake, (list, tuple)):
        fake = fake[piece]
    if not hasattr(fake, "stride"):
        return False
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        steps = sorted(zip(map(int, fake.stride()), map(int, fake.shape)))
    except GuardOnDataDependentSymNode:  # a size that only the run knows
        return True
    reach = 1
    for stride, size in steps:
        if size == 0:
            return False
        if size > 1 and stride < reach:
            return True
        reach += (size - 1) * stride
    return False


__all__ = ["CHECKS", "WRITING", "GraphImporter", "subgraphs_of"]
