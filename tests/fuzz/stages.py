"""The stages of random programs: blocks in loops, each of which writes a buffer."""

from __future__ import annotations

from .pieces import Array, Axis, Dim, Pieces, nested


class Stages(Pieces):
    """Draws stages. Each method gives the lines of one, within the loops `outer`."""

    def target(self) -> Array:
        """What a stage writes: something new, or something again."""
        old = [a for a in self.arrays if a.kind != "input" and a.limit is None]
        if old and self.draw.chance(5 + self.odd // 2):
            return self.draw.choice(old[::-1])
        return self.array(self.some_dims())

    def spatial(self, array: Array, outer: list[Axis]) -> tuple[list, list[Axis], str]:
        """(iterators, axes, place): one iterator a dimension, or others."""
        if self.draw.chance(self.odd // 3):  # iterators of any number and any place
            dims = [self.dim() for _ in range(self.draw.choice([1, 2]))]
            names = [self.name("v") for _ in dims]
            axes = [Axis(n, d) for n, d in zip(names, dims)]
            return ([(n, d, "S") for n, d in zip(names, dims)], axes, self.place(array, axes))
        names = [self.name("v") for _ in array.dims]
        axes = [Axis(n, d) for n, d in zip(names, array.dims)]
        return [(n, d, "S") for n, d in zip(names, array.dims)], axes, ", ".join(names)

    def block(self, loops: list[str], axis: list[str], regions: list[str], body: list[str],
              name: str | None = None) -> list[str]:
        """A block in its loops."""
        inner = [f'with T.block("{name or self.name("S")}"):',
                 *(("    " + line) for line in (*axis, *regions, *body))]
        return nested(loops, inner)

    def regions(self, array: Array, place: str) -> list[str]:
        """What the block says it reads and writes: mostly nothing, now and then a lie."""
        if not self.draw.chance(self.odd // 5):
            return []
        reads = [f"{a.name}[{', '.join('0:' + d.text for d in a.dims)}]"
                 for a in self.readable() if self.draw.chance(50)]
        whole = f"{array.name}[{', '.join('0:' + d.text for d in array.dims)}]"
        return [f"T.reads({', '.join(reads)})",
                f"T.writes({self.draw.choice([f'{array.name}[{place}]', whole, ''])})"]

    def filled(self, array: Array, partial: bool, stage: list[str]) -> list[str]:
        """A stage that may leave elements alone, mostly after one that gives all a value."""
        if not array.ready and partial:
            if self.draw.chance(20):
                return stage
            names = [self.name("v") for _ in array.dims]
            loops, lines, _ = self.plain([(n, d, "S") for n, d in zip(names, array.dims)])
            stage = [*self.block(loops, lines, [], [
                f"{array.name}[{', '.join(names)}] = {self.constant(array.dtype)}"]), *stage]
        array.ready = True
        return stage

    def plain(self, axes: list[tuple[str, Dim, str]]) -> tuple[list, list, bool]:
        """Loops and bindings as in a textbook."""
        odd, self.odd = self.odd, 0
        found = self.nest(axes, [])
        self.odd = odd
        return found

    def map_stage(self, outer: list[Axis]) -> list[str]:
        """Every element from others."""
        array = self.target()
        iters, axes, place = self.spatial(array, outer)
        if self.draw.chance(self.odd // 8):  # a block without iterators names the loops itself
            loops, lines, partial = [f"for {n} in range({d.text}):" for n, d, _ in iters], [], False
        else:
            loops, lines, partial = self.nest(iters, outer)
        partial |= place != ", ".join(a.name for a in axes)
        value = self.value(axes, array.dtype, own=array)
        body = [f"{array.name}[{place}] = {value}"]
        if self.draw.chance(self.odd // 5):
            body = [f"if {self.condition(axes)}:", "    " + body[0]]
            partial = True
        elif self.draw.chance(self.odd // 5):
            body.append(f"{array.name}[{place}] = "
                        + self.value(axes, array.dtype, 1, own=array))
        elif self.draw.chance(self.odd // 4):
            body = self.controlled(array, place, axes)
        regions = self.regions(array, place)
        return self.filled(array, partial, self.block(loops, lines, regions, body))

    def controlled(self, array: Array, place: str, axes: list[Axis]) -> list[str]:
        """The body of a block that gives an element its value by more than one store: a branch, a
        definition, loops that end by themselves."""
        draw, here = self.draw, f"{array.name}[{place}]"

        def store(more: list[Axis] = (), own: bool = False) -> str:
            value = self.value([*axes, *more], array.dtype, 1)
            if own and array.dtype != "bool":
                value = draw.choice([f"{here} + {value}", f"T.max({here}, {value})",
                                     f"{here} * T.{array.dtype}(2) + {value}"])
            return f"{here} = {value}"

        kind = draw.choice(["if", "let", "while", "loop", "leave"])
        if kind == "if":
            return [f"if {self.condition(axes)}:", "    " + store(), "else:", "    " + store()]
        if kind == "let":
            x = self.name("x")
            return [f"with T.LetStmt({self.value(axes, array.dtype, 1)}) as {x}:", "    " + (
                f"{here} = {x}" if array.dtype == "bool" else
                f"{here} = {x} + {self.load(axes, array.dtype)}")]
        t = self.name("t")
        if kind == "while":
            return [f'{t} = T.alloc_buffer((1,), "int32", scope="local")', store(), f"{t}[0] = 0",
                    f"while {t}[0] < {draw.integer(1, 3)}:", "    " + store(own=True),
                    f"    {t}[0] = {t}[0] + 1"]
        axis = Axis(t, Dim("3", 3))
        body = ["    " + store([axis], own=True)]
        if kind == "leave":
            leave = [f"    if {self.condition([*axes, axis])}:",
                     "        " + draw.choice(["break", "continue"])]
            body = [*leave, *body] if draw.chance(60) else [*body, *leave, *body]
        return [store(), f"for {t} in range(3):", *body]

    def update_stage(self, outer: list[Axis]) -> list[str]:
        """An update in place, also of neighbours."""
        old = [a for a in self.arrays if a.kind != "input" and a.ready and a.limit is None]
        if not old:
            return self.map_stage(outer)
        array = self.draw.choice(old[::-1])
        iters, axes, place = self.spatial(array, outer)
        if self.draw.chance(30):
            k = self.name("v")
            dim = self.dim()
            iters.append((k, dim, self.draw.choice(["R", "S", "O"])))
            axes.append(Axis(k, dim))
        loops, lines, _ = self.nest(iters, outer)
        again = f"{array.name}[{place if self.draw.chance(60) else self.place(array, axes)}]"
        value = self.value(axes, array.dtype, 1)
        op = self.draw.choice(["+", "-", "*2+", "max"]) if array.dtype != "bool" else "=="
        update = (f"T.max({again}, {value})" if op == "max" else
                  f"{again} * T.{array.dtype}(2) + {value}" if op == "*2+" else
                  f"{again} {op} ({value})")
        return self.block(loops, lines, self.regions(array, place),
                          [f"{array.name}[{place}] = {update}"])

    def reduce_stage(self, outer: list[Axis]) -> list[str]:
        """A reduction with its init; the combination may depend on the order."""
        array = self.target()
        if array.dtype == "bool":
            return self.map_stage(outer)
        iters, axes, place = self.spatial(array, outer)
        for _ in range(self.draw.choice([1, 1, 2])):
            k = self.name("k")
            dim = self.dim()
            iters.append((k, dim, "R"))
            axes.append(Axis(k, dim))
        if self.draw.chance(self.odd // 3):
            iters = self.draw.permutation(iters)
        loops, lines, partial = self.nest(iters, outer)
        partial |= place != ", ".join(a.name for a in axes[:len(array.dims)])
        here = f"{array.name}[{place}]"
        value = self.value(axes, array.dtype, 1)
        kind = self.draw.choice(["sum", "max", "min", "sum", "sum", "horner", "last"])
        init, update = {
            "sum": ("0", f"{here} + {value}"), "max": ("0", f"T.max({here}, {value})"),
            "min": ("1", f"T.min({here}, {value})"),
            "horner": ("1", f"{here} * T.{array.dtype}(2) + {value}"),
            "last": ("0", value),
        }[kind]
        update = update if kind != "sum" or not self.draw.chance(10) else f"{value} + {here}"
        start = f"T.{array.dtype}({init})"
        if self.draw.chance(self.odd // 6):  # the init sets other elements than the update
            spatial = [a for a, (_, _, kind) in zip(axes, iters) if kind == "S"]
            body = ["with T.init():", f"    {array.name}[{self.place(array, spatial)}] = {start}",
                    f"{here} = {update}"]
        else:
            body = ["with T.init():", f"    {here} = {start}", f"{here} = {update}"]
        regions = self.regions(array, place)
        return self.filled(array, partial, self.block(loops, lines, regions, body))

    def tuple_stage(self, outer: list[Axis]) -> list[str]:
        """Two values reduced together: sums, or the place and value of a maximum."""
        dims = self.some_dims()
        dtype = self.draw.choice(["float32", "int32"])
        kind = self.draw.choice(["sums", "arg", "arg"])
        first = self.array(dims, dtype="int32" if kind == "arg" else dtype)
        second = self.array(dims, dtype=dtype)
        names = [self.name("v") for _ in dims]
        k, dim = self.name("k"), self.dim()
        iters = [*((n, d, "S") for n, d in zip(names, dims)), (k, dim, "R")]
        axes = [Axis(n, d) for n, d, _ in iters]
        loops, lines, _ = self.nest(iters, outer)
        place = ", ".join(names)
        x, y = f"{first.name}[{place}]", f"{second.name}[{place}]"
        value = self.load(axes, dtype)
        if kind == "sums":
            body = [f"{x} = {x} + {value}", f"{y} = {y} + {value}"]
            init = [f"    {x} = T.{dtype}(0)", f"    {y} = T.{dtype}(0)"]
        else:
            better = self.draw.choice([f"{y} >= {value}", f"{y} > {value}"])
            keep = [f"a{k}: T.int32 = T.Select({better}, {x}, {k})",
                    f"b{k}: T.{dtype} = T.Select({better}, {y}, {value})"]
            stores = [f"{x} = a{k}", f"{y} = b{k}"]
            if self.draw.chance(self.odd // 3):  # the second sees what the first has stored
                keep, stores = [], [f"{y} = T.max({y}, {value})",
                                    f"{x} = T.Select({better}, {x}, {k})"]
            body = keep + stores
            init = [f"    {x} = -1", f'    {y} = T.min_value("{dtype}")']
        first.ready = second.ready = True
        return self.block(loops, lines, [], ["with T.init():", *init, *body])

    def scan_stage(self, outer: list[Axis]) -> list[str]:
        """Rows from the rows before."""
        array = self.array(self.some_dims())
        if array.dims[0].text == "n" or array.dims[0].value < 2 or array.dtype == "bool":
            self.arrays.remove(array)
            return self.map_stage(outer)
        first, rest = array.dims[0], array.dims[1:]
        names = [self.name("v") for _ in rest]
        iters = [(n, d, "S") for n, d in zip(names, rest)]
        at = "".join(", " + n for n in names)
        axes = [Axis(n, d) for n, d in zip(names, rest)]
        loops, lines, _ = self.nest(iters, outer)
        start = self.block(loops, lines, [], [
            f"{array.name}[0{at}] = {self.value(axes, array.dtype, 1)}"])
        t, i = self.name("v"), self.name("i")
        loops, lines, _ = self.nest(iters, outer)
        axes.append(Axis(t, first))
        loops = [f"for {i} in range({first.value - 1}):", *loops]
        kind = self.draw.choice(["scan", "spatial", "opaque"])
        lines = [f"{t} = T.axis.{kind}(({'1, ' + first.text}), {i} + 1)", *lines]
        body = self.block(loops, lines, [], [
            f"{array.name}[{t}{at}] = {array.name}[{t} - 1{at}] + "
            + self.value(axes, array.dtype, 1)])
        array.ready = True
        return [*start, *body]

    def scatter_stage(self, outer: list[Axis]) -> list[str]:
        """Stores at places that the data give."""
        array = self.target()
        dim = array.dims[0]
        where = [a for a in self.arrays if a.limit is not None and dim.text.isdigit()
                 and a.limit <= dim.value]
        if not where or not array.ready:
            return self.map_stage(outer)
        index = self.draw.choice(where)
        iters, axes, place = self.spatial(array, outer)
        v = self.name("v")
        iters.append((v, index.dims[0], "S"))
        axes.append(Axis(v, index.dims[0]))
        loops, lines, _ = self.nest(iters, outer)
        rest = "".join(", " + self.index(d, axes, k + 1) for k, d in enumerate(array.dims[1:]))
        return self.block(loops, lines, [], [
            f"{array.name}[{index.name}[{v}]{rest}] = {self.value(axes, array.dtype, 1)}"])

    def nested_stage(self, outer: list[Axis]) -> list[str]:
        """A block with loops, blocks, memory or a view of its own."""
        array = self.array(self.some_dims())
        names = [self.name("v") for _ in array.dims]
        cut = self.draw.integer(0, len(names) - 1) if len(names) > 1 else 0
        around = [(n, d, "S") for n, d in zip(names[:cut], array.dims[:cut])]
        if not around:
            around = [(self.name("v"), Dim("1", 1), "S")]
        loops, lines, partial = self.nest(around, outer)
        fixed = [Axis(n, d) for n, d, _ in around]
        within = list(zip(names[cut:], array.dims[cut:]))
        axes = [*fixed, *(Axis(n, d) for n, d in within)]
        kind = self.draw.choice(["loops", "block", "memory", "view", "alias", "two"])
        store, place = array.name, ", ".join(names)
        body: list[str] = []
        if kind == "view" and cut:
            view = self.name("W")
            region = ", ".join([*names[:cut], *(f"0:{d.text}" for _, d in within)])
            inner = ", ".join([*["1"] * cut, *(d.text for _, d in within)])
            body.append(f"{view} = T.match_buffer({array.name}[{region}], ({inner},), "
                        f'"{array.dtype}", offset_factor=1)')
            store, place = view, ", ".join([*["0"] * cut, *names[cut:]])
        elif kind == "alias":
            alias = self.name("D")
            body.append(f"{alias} = T.decl_buffer({array.shape}, \"{array.dtype}\", "
                        f"data={array.name}.data)")
            store = alias
        value = self.value(axes, array.dtype, 1)
        if kind in ("block", "memory", "two"):
            iters = [(n, d, "S") for n, d in within]
            if kind == "memory":
                inside = Array(self.name("M"), [d for _, d in within], array.dtype, "local")
                body.append(f'{inside.name} = T.alloc_buffer({inside.shape}, "{inside.dtype}")')
                at = ", ".join(names[cut:])
                inner_loops, inner_lines, _ = self.nest(iters, [])
                body += self.block(inner_loops, inner_lines, [], [f"{inside.name}[{at}] = {value}"])
                again = [(self.name("v"), d, "S") for _, d in within]
                at = ", ".join(n for n, _, _ in again)
                place = ", ".join([*names[:cut], *(n for n, _, _ in again)])
                value = f"{inside.name}[{at}]"
                if array.dtype != "bool":
                    value += f" + {self.constant(array.dtype)}"
                iters = again
            inner_loops, inner_lines, less = self.nest(iters, [])
            partial |= less
            body += self.block(inner_loops, inner_lines, [], [f"{store}[{place}] = {value}"])
            if kind == "two" and array.dtype != "bool" and not partial:
                again = [(self.name("v"), d, "S") for _, d in within]
                inner_loops, inner_lines, _ = self.nest(again, [])
                place = ", ".join([*names[:cut], *(n for n, _, _ in again)])
                body += self.block(inner_loops, inner_lines, [], [
                    f"{store}[{place}] = {store}[{place}] + {self.constant(array.dtype)}"])
        else:
            body += nested([f"for {n} in range({d.text}):" for n, d in within],
                            [f"{store}[{place}] = {value}"])
        return self.filled(array, partial, self.block(loops, lines, [], body))

    def carried_stage(self, outer: list[Axis]) -> list[str]:
        """A block in which something is made, or viewed, that the blocks within take values,
        conditions or places from. They write elements of this iteration, or those of all."""
        draw = self.draw
        array = self.target()
        names = [self.name("v") for _ in array.dims]
        cut = draw.integer(0, len(names))
        around = [(n, d, "S") for n, d in zip(names[:cut], array.dims[:cut])]
        if not around or draw.chance(40):  # then all iterations of this one write the same elements
            around.append((self.name("v"), self.dim(), "S"))
        loops, lines, partial = self.nest(around, outer)
        fixed = [Axis(n, d) for n, d, _ in around]
        use = draw.choice(["value", "condition", "place"])
        dtype = "int32" if use == "place" else array.dtype
        sources = [a for a in self.readable() if a.dims and a.dtype == dtype]
        made = self.name("M")
        if sources and draw.chance(40):
            source = draw.choice(sources)
            at = ", ".join(self.index(d, fixed, k) for k, d in enumerate(source.dims))
            size = ", ".join("1" for _ in source.dims)
            body = [f'{made} = T.match_buffer({source.name}[{at}], ({size},), "{dtype}", '
                    "offset_factor=1)"]
            carried = f"{made}[{', '.join('0' for _ in source.dims)}]"
        else:
            scope = draw.choice(["local", "global", "shared"])
            body = [f'{made} = T.alloc_buffer((1,), "{dtype}", scope="{scope}")']
            carried = f"{made}[0]"
            body += [f'with T.block("{self.name("S")}"):',
                     f"    {carried} = {self.value(fixed, dtype, 1)}"]
        inner = [(n, d, "S") for n, d in zip(names[cut:], array.dims[cut:])]
        axes = [*fixed, *(Axis(n, d) for n, d, _ in inner)]
        place = list(names)
        value = self.value(axes, array.dtype, 1)
        if use == "place":
            which = draw.integer(0, len(place) - 1)
            place[which] = f"T.floormod({carried}, {array.dims[which].text})"
        elif use == "value" and array.dtype != "bool":
            value = draw.choice([carried, f"{carried} + {self.constant(array.dtype)}",
                                 f"{carried} + {value}"])
        inner_loops, inner_lines, less = self.nest(inner, [])
        stores = [f"{array.name}[{', '.join(place)}] = {value}"]
        condition = carried if dtype == "bool" else f"{carried} > T.{dtype}(0)"
        within = draw.chance(50)
        if use == "condition" and within:
            stores = [f"if {condition}:", "    " + stores[0]]
        blocks = self.block(inner_loops, inner_lines, [], stores)
        if use == "condition" and not within:
            blocks = [f"if {condition}:", *("    " + line for line in blocks)]
        partial |= less or use != "value"
        return self.filled(array, partial, self.block(loops, lines, [], [*body, *blocks]))

    def numbered(self, least: int = 1) -> list[Array]:
        """What can be read and has a constant shape, one dimension of at least `least`."""
        return [a for a in self.readable() if all(d.text.isdigit() for d in a.dims)
                and any(d.value >= least for d in a.dims)]

    def pad_stage(self, outer: list[Axis]) -> list[str]:
        """A copy with a constant around it."""
        if self.draw.chance(30):
            at = [a for a in self.arrays if a.limit is not None and a.ready]
            if at and any(d.value >= at[0].limit for a in self.numbered() for d in a.dims):
                return self.pad_gathered(at[0], outer)
        found = self.numbered()
        if not found:
            return self.map_stage(outer)
        source = self.draw.choice(found[::-1])
        dims, tests, places = [], [], []
        names = [self.name("v") for _ in source.dims]
        for name, dim in zip(names, source.dims):
            low, high = self.draw.choice([(0, 0), (1, 1), (1, 0), (0, 2)])
            dims.append(Dim(str(dim.value + low + high), dim.value + low + high))
            tests += [f"{low} <= {name}"] * (low > 0) + [
                f"{name} < {dim.value + low}"] * (high > 0)
            places.append(f"{name} - {low}" if low else name)
        if not tests:
            tests = [f"{names[0]} < {dims[0].text}"]
        array = self.array(dims, dtype=source.dtype)
        loops, lines, partial = self.nest([(n, d, "S") for n, d in zip(names, dims)], outer)
        body = (f"{array.name}[{', '.join(names)}] = T.if_then_else({' and '.join(tests)}, "
                f"{source.name}[{', '.join(places)}], {self.constant(array.dtype)})")
        return self.filled(array, partial, self.block(loops, lines, [], [body]))

    def pad_gathered(self, at: Array, outer: list[Axis]) -> list[str]:
        """The elements that an array of indices says, with a constant around them: where they are
        is read under a condition only."""
        source = self.draw.choice(self.numbered(at.limit)[::-1])
        across = self.draw.choice([k for k, d in enumerate(source.dims) if d.value >= at.limit])
        low, high = self.draw.choice([(1, 1), (1, 0), (0, 2)])
        length = at.dims[0].value + low + high
        name, dim = self.name("v"), Dim(str(length), length)
        array = self.array([dim], dtype=source.dtype)
        places = [self.index(d, [Axis(name, dim)]) for d in source.dims]
        places[across] = f"{at.name}[{name} - {low}]"
        loops, lines, partial = self.nest([(name, dim, "S")], outer)
        inside = f"{low} <= {name} and {name} < {length - high}"
        body = (f"{array.name}[{name}] = T.if_then_else({inside}, "
                f"{source.name}[{', '.join(places)}], {self.constant(array.dtype)})")
        return self.filled(array, partial, self.block(loops, lines, [], [body]))

    def window_stage(self, outer: list[Axis]) -> list[str]:
        """Sums of neighbours."""
        found = [a for a in self.numbered(3) if a.dtype != "bool"]
        if not found:
            return self.map_stage(outer)
        if self.draw.chance(70):  # what is computed here may be moved to the sums
            found = [a for a in found if a.kind == "local"] or found
        source = self.draw.choice(found[::-1])
        across = self.draw.choice([k for k, d in enumerate(source.dims) if d.value >= 3])
        reach = self.draw.integer(2, min(3, source.dims[across].value))
        dims = list(source.dims)
        dims[across] = Dim(str(dims[across].value - reach + 1), dims[across].value - reach + 1)
        array = self.array(dims, dtype=source.dtype)
        names = [self.name("v") for _ in dims]
        iters = [(n, d, "S") for n, d in zip(names, dims)]

        def load(step: str) -> str:
            at = [f"{n} + {step}" if k == across else n for k, n in enumerate(names)]
            return f"{source.name}[{', '.join(at)}]"

        here = f"{array.name}[{', '.join(names)}]"
        if self.draw.chance(50):
            k = self.name("k")
            loops, lines, partial = self.nest([*iters, (k, Dim(str(reach), reach), "R")], outer)
            body = ["with T.init():", f"    {here} = T.{array.dtype}(0)",
                    f"{here} = {here} + {load(k)}"]
        else:
            loops, lines, partial = self.nest(iters, outer)
            body = [f"{here} = {' + '.join(load(str(r)) for r in range(reach))}"]
        return self.filled(array, partial, self.block(loops, lines, [], body))

    def bare_stage(self, outer: list[Axis]) -> list[str]:
        """Loops and a store without a block."""
        array = self.target()
        names = [self.name("i") for _ in array.dims]
        axes = [Axis(n, d) for n, d in zip(names, array.dims)]
        body = [f"{array.name}[{', '.join(names)}] = {self.value(axes, array.dtype, 1, own=array)}"]
        array.ready = True
        return nested([f"for {n} in range({d.text}):" for n, d in zip(names, array.dims)], body)

    def loop_stage(self, outer: list[Axis]) -> list[str]:
        """A loop around several stages."""
        i = self.name("i")
        known = [d for a in self.arrays for d in a.dims]
        dim = self.draw.choice(known[::-1]) if known and self.draw.chance(80) else self.dim()
        axis = Axis(i, dim)
        body: list[str] = []
        for _ in range(self.draw.choice([2, 1, 3])):
            body += self.stage([*outer, axis], len(outer) < 2)
        head = f"for {i} in range({dim.text}):"
        if self.draw.chance(self.odd // 6):  # what the stages depend on is defined around them
            x, low = self.name("x"), self.dim()
            inside: list[str] = []
            for _ in range(self.draw.choice([1, 2])):
                inside += self.stage([*outer, axis, Axis(x, low)], False)
            body += [f"with T.LetStmt({i} % {low.text}) as {x}:", *nested([""], inside)[1:]]
        if self.draw.chance(self.odd // 5):  # a block that has no iterators for the loops around
            body = [f'with T.block("{self.name("S")}"):', *("    " + line for line in body)]
        if self.draw.chance(self.odd // 8):
            return [f"if {self.draw.choice(self.params())}:", *(
                "    " + line for line in nested([head], body))]
        return nested([head], body)

    def running_stage(self, outer: list[Axis]) -> list[str]:
        """A loop that drives a reduction, and around who reads what it has combined so far."""
        array, i, k = self.array(self.some_dims()), self.name("i"), self.name("k")
        if array.dtype == "bool":
            return self.map_stage(outer)
        axis = Axis(i, self.dim())
        names = [self.name("v") for _ in array.dims]
        loops, lines, _ = self.plain([(n, d, "S") for n, d in zip(names, array.dims)])
        axes = [*(Axis(n, d) for n, d in zip(names, array.dims)), Axis(k, axis.dim)]
        here = f"{array.name}[{', '.join(names)}]"
        start = "with T.init():", f"    {here} = T.{array.dtype}(0)"
        update = f"{here} = {here} + {self.value(axes, array.dtype, 1)}"
        lines = [*lines, f"{k} = T.axis.reduce({axis.dim.text}, {i})"]
        body = self.block(loops, lines, [], [*start, update])
        array.ready = True
        for _ in range(self.draw.choice([1, 2])):
            body += self.stage([*outer, axis], False)
        return nested([f"for {i} in range({axis.dim.text}):"], body)

    def pair_stage(self, outer: list[Axis]) -> list[str]:
        """Two elements of a buffer in each iteration, declared as two regions, or not at all."""
        draw = self.draw
        old = [a for a in self.arrays if a.kind != "input" and a.ready and a.limit is None
               and a.dims]
        if old and draw.chance(50):  # an exchange in place
            array = draw.choice(old[::-1])
            dims = array.dims
        else:
            half = draw.choice([2, 3])
            array = self.array([Dim(str(2 * half), 2 * half), *self.some_dims()[:1]])
            dims = [Dim(str(half), half), *array.dims[1:]]
        names = [self.name("v") for _ in dims]
        axes = [Axis(n, d) for n, d in zip(names, dims)]
        loops, lines, _ = self.nest([(n, d, "S") for n, d in zip(names, dims)], outer)
        first, rest = names[0], names[1:]
        if dims is array.dims:
            ends = first, f"{dims[0].text} - 1 - {first}"
        else:
            ends = draw.choice([(first, f"{first} + {half}"), (f"2 * {first}", f"2 * {first} + 1"),
                                (f"{2 * half - 1} - {first}", first)])
        here, there = (f"{array.name}[{', '.join([end, *rest])}]" for end in ends)
        value = self.value(axes, array.dtype, 1)
        if dims is array.dims:
            x = self.name("x")
            body = [f"with T.LetStmt({here}) as {x}:", f"    {here} = {there}",
                    f"    {there} = {x if array.dtype == 'bool' else f'{x} + ({value})'}"]
        else:
            body = [f"{here} = {value}", f"{there} = {self.value(axes, array.dtype, 1)}"]
            array.ready = True
        regions = []
        if draw.chance(70):
            reads = [f"{a.name}[{', '.join('0:' + d.text for d in a.dims)}]"
                     for a in self.readable() if a is not array and a.dims]
            if dims is array.dims:
                reads += [here, there]
            regions = [f"T.reads({', '.join(reads)})", f"T.writes({here}, {there})"]
        return self.block(loops, lines, regions, body)

    def params(self) -> list[str]:
        """Conditions on scalars of the function."""
        found = [a for a in self.arrays if a.limit is not None]
        return [f"{a.name}[0] < 2" for a in found] or ["T.bool(True)"]

    def stage(self, outer: list[Axis], loops: bool = True) -> list[str]:
        kinds = [self.map_stage] * 4 + [self.reduce_stage] * 2 + [
            self.window_stage, self.window_stage, self.pad_stage]
        if loops:
            kinds += [self.loop_stage, self.running_stage]
        if self.odd:
            kinds += [self.update_stage, self.update_stage, self.nested_stage, self.tuple_stage,
                      self.scan_stage, self.scatter_stage, self.pair_stage, self.carried_stage]
        if self.odd > 30:
            kinds += [self.bare_stage] * 2
        return self.draw.choice(kinds)(outer)
