"""The cache simulator, written as LLVM IR for one hierarchy of caches.

All that is fixed (sets, ways, lines, replacement) stands as constants in the code, and the common
case is a few instructions that LLVM puts into the simulated program itself. Entry points:

    void sim_read(i64 address, i64 site)          an access within one line
    void sim_write(i64 address, i64 site)
    void sim_span(i64 address, i64 bytes, i32 write, i64 site)      one that may span lines
    void sim_masked(i64 address, i64 bytes, i64 mask, i32 write, i64 site)    lanes by their bits
    i32  sim_one(i64 address, i64 bytes, i32 write, i64 site)    says at which level it was found
    ptr  sim_state(), sim_written()      where the counts are
    void sim_reset()      empty caches, counts of zero
    i64* sim_core         global: the core that accesses, where there are several

A site is a place in the program; `site` is the number of the first of its words in the counts.

How it is fast. A line is a number of 32 bits with its dirty bit at the bottom, so that a set of 8
ways is one vector register: all ways are compared at once, and the order of use is kept by shifting
the part of the vector before the line found (LRU) or the whole of it (FIFO). And the line that was
used last in a set of the first level is kept once more, in `sim_last`: using it again changes
nothing in any scheme of replacement, so that case, by far the most frequent, is one comparison.
"""

from __future__ import annotations

import functools

from ..machine.caches import CacheHierarchy, CacheLevel
from ..runtime import jit
from ..runtime.llir import FunctionText, ModuleText

#: sets of more ways are searched by a loop, not by one vector comparison
VECTOR_WAYS = 32
#: places up to which the common case is put into the simulated program. It saves a fifth of the
#: run; of 1,000 places, which an unrolled program has, LLVM would take 11 s to compile it, not 2
INLINED = 16

# The counts that Python reads: for each site accesses, further lines of spanning accesses, misses a
# level; then for each level the lines written back.
SITE_HEAD = 2


def site_words(hierarchy: CacheHierarchy) -> int:
    """Numbers of 64 bits that the counts of one site take."""
    return SITE_HEAD + len(hierarchy)


def _table(name: str, size: int, ty: str, linkage: str = "internal") -> str:
    return f"{name} = {linkage} global [{size} x {ty}] zeroinitializer, align 64"


class _Level:
    """Writes the code of one level."""

    def __init__(self, m: ModuleText, level: CacheLevel, number: int, last: bool,
                 shift_below: int, log: bool, cores: int) -> None:
        self.m, self.level, self.number, self.last = m, level, number, last
        self.shift_below = shift_below
        self.log = log and number == 0
        self.cores = cores
        self.ways = level.ways
        self.vector = 2 <= level.ways <= VECTOR_WAYS
        # A row is padded to a power of two with entries that no line equals.
        self.stride = 1 << (level.ways - 1).bit_length() if self.vector else level.ways
        sets = level.sets * cores
        self.tables = [(f"@sim_rows{number}", sets * self.stride, "i32")]
        if level.replacement == "plru":
            self.tables.append((f"@sim_tree{number}", sets, "i64"))
        for name, size, ty in self.tables:
            m.globals.append(_table(name, size, ty))
        if level.replacement == "random":
            m.globals.append(f"@sim_random{number} = internal global i64 {level.seed}, align 8")

    def row(self, f: FunctionText, line: str) -> tuple[str, str]:
        """The set of a line, and the address of its row."""
        at = _set_of(f, line, self.level.sets, self.cores)
        start = f.op(f"mul i64 {at}, {self.stride}")
        return at, f.gep("i32", f"@sim_rows{self.number}", start)

    def tag(self, f: FunctionText, line: str) -> str:
        """The entry of a clean line: never zero, which is an empty place."""
        small = f.op(f"trunc i64 {line} to i32")
        return f.op(f"shl i32 {f.op(f'add i32 {small}, 1')}, 1")

    def find(self, f: FunctionText, row: str, tag: str) -> tuple[str, str]:
        """Whether the row holds the line (i1), and where (i64; meaningless if not)."""
        if self.vector:
            return self._match(f, row, tag, -2)
        slot = f.var("i64", "-1")
        with f.for_range("0", str(self.ways)) as i:
            entry = f.load("i32", f.gep("i32", row, i))
            same = f.op(f"icmp eq i32 {f.op(f'and i32 {entry}, -2')}, {tag}")
            with f.if_(same):
                f.store("i64", i, slot)
                f.break_()
        place = f.load("i64", slot)
        return f.op(f"icmp sge i64 {place}, 0"), place

    def _match(self, f: FunctionText, row: str, value: str, mask: int) -> tuple[str, str]:
        """Whether and where an entry, its bits under `mask`, equals a value: by one vector."""
        w = self.stride
        entries = f.load(f"<{w} x i32>", row, f", align {min(4 * w, 64)}")
        kept = f.op(f"and <{w} x i32> {entries}, splat (i32 {mask})")
        one = f.op(f"insertelement <{w} x i32> poison, i32 {value}, i64 0")
        all_ = f.op(f"shufflevector <{w} x i32> {one}, <{w} x i32> poison, "
                    f"<{w} x i32> zeroinitializer")
        same = f.op(f"icmp eq <{w} x i32> {kept}, {all_}")
        bits = f.op(f"bitcast <{w} x i1> {same} to i{w}")
        if self.ways < w:
            bits = f.op(f"and i{w} {bits}, {(1 << self.ways) - 1}")
        self.m.declare(f"i{w}", f"llvm.cttz.i{w}", [f"i{w}", "i1 immarg"])
        place = f.op(f"call i{w} @llvm.cttz.i{w}(i{w} {bits}, i1 false)")
        if w != 64:
            place = f.op(f"zext i{w} {place} to i64") if w < 64 else place
        return f.op(f"icmp ne i{w} {bits}, 0"), place

    def push(self, f: FunctionText, row: str, upto: str, entry: str) -> None:
        """Put an entry at the front; those before place `upto` move back by one, over it."""
        w = self.stride
        if self.vector:
            vector = f"<{w} x i32>"
            old = f.load(vector, row, f", align {min(4 * w, 64)}")
            new = f.op(f"insertelement {vector} poison, i32 {entry}, i64 0")
            order = ", ".join(["i32 0", *(f"i32 {w + k}" for k in range(w - 1))])
            moved = f.op(f"shufflevector {vector} {new}, {vector} {old}, <{w} x i32> <{order}>")
            small = f.op(f"trunc i64 {upto} to i32")
            one = f.op(f"insertelement {vector} poison, i32 {small}, i64 0")
            limit = f.op(f"shufflevector {vector} {one}, {vector} poison, {vector} zeroinitializer")
            places = ", ".join(f"i32 {k}" for k in range(w))
            keep = f.op(f"icmp ule {vector} <{places}>, {limit}")
            f.store(vector, f.op(f"select <{w} x i1> {keep}, {vector} {moved}, {vector} {old}"),
                    row, f", align {min(4 * w, 64)}")
            return
        self.m.declare("void", "llvm.memmove.p0.p0.i64", ["ptr", "ptr", "i64", "i1 immarg"])
        size = f.op(f"shl i64 {upto}, 2")
        behind = f.gep("i32", row, 1)
        f.do(f"call void @llvm.memmove.p0.p0.i64(ptr {behind}, ptr {row}, i64 {size}, i1 false)")
        f.store("i32", entry, row)

    # -- replacement ------------------------------------------------------------------------------

    def touch(self, f: FunctionText, at: str, place: str) -> None:
        """Tree-PLRU: make every bit on the way to `place` point away from it.

        Bit n of the word is node n of a heap (the root is 1); a one points to the right.
        """
        slot = f.gep("i64", f"@sim_tree{self.number}", at)
        bits = f.load("i64", slot)
        depth = self.ways.bit_length() - 1
        node = "1"
        for level in range(depth):
            branch = f.op(f"and i64 {f.op(f'lshr i64 {place}, {depth - 1 - level}')}, 1")
            mask = f.op(f"shl i64 1, {node}")
            cleared = f.op(f"and i64 {bits}, {f.op(f'xor i64 {mask}, -1')}")
            away = f.op(f"xor i64 {branch}, 1")
            bits = f.op(f"or i64 {cleared}, {f.op(f'shl i64 {away}, {node}')}")
            node = f.op(f"or i64 {f.op(f'shl i64 {node}, 1')}, {branch}")
        f.store("i64", bits, slot)

    def _tree_victim(self, f: FunctionText, at: str) -> str:
        bits = f.load("i64", f.gep("i64", f"@sim_tree{self.number}", at))
        node = "1"
        for _ in range(self.ways.bit_length() - 1):
            branch = f.op(f"and i64 {f.op(f'lshr i64 {bits}, {node}')}, 1")
            node = f.op(f"or i64 {f.op(f'shl i64 {node}, 1')}, {branch}")
        return f.op(f"sub i64 {node}, {self.ways}")

    def _random_victim(self, f: FunctionText) -> str:
        slot = f"@sim_random{self.number}"  # Marsaglia's xorshift
        x = f.load("i64", slot)
        for op, by in (("shl", 13), ("lshr", 7), ("shl", 17)):
            x = f.op(f"xor i64 {x}, {f.op(f'{op} i64 {x}, {by}')}")
        f.store("i64", x, slot)
        return f.op(f"urem i64 {x}, {self.ways}")

    def victim(self, f: FunctionText, at: str, row: str) -> str:
        """Where a new line goes in a level that keeps lines in place: an empty place first."""
        if self.ways == 1:
            return "0"
        place = f.var("i64", "-1")
        if self.vector:
            empty, where = self._match(f, row, "0", -1)
            with f.if_(empty):
                f.store("i64", where, place)
        else:
            with f.for_range("0", str(self.ways)) as i:
                entry = f.load("i32", f.gep("i32", row, i))
                with f.if_(f.op(f"icmp eq i32 {entry}, 0")):
                    f.store("i64", i, place)
                    f.break_()
        none = f.op(f"icmp slt i64 {f.load('i64', place)}, 0")
        with f.if_(none):
            tree = self.level.replacement == "plru"
            f.store("i64", self._tree_victim(f, at) if tree else self._random_victim(f), place)
        return f.load("i64", place)

    # -- what a level does ------------------------------------------------------------------------

    def write_find(self) -> None:
        """`i32 sim_find<n>(line, write, site)`: look a line up and bring it in; gives the level
        where it was found, and below the first level only that."""
        number, level = self.number, self.level
        ordered = level.replacement in ("lru", "fifo") and self.ways > 1
        params = [("i64", "line"), ("i32", "write"), ("i64", "site")]
        linkage = "internal" if number else ""  # a program calls the first
        with self.m.function("i32", f"sim_find{number}", params, linkage,
                             "noinline nounwind") as f:
            at, row = self.row(f, "%line")
            tag = self.tag(f, "%line")
            hit, place = self.find(f, row, tag)
            with f.if_(hit):
                entry = f.op(f"or i32 {f.load('i32', f.gep('i32', row, place))}, %write")
                if level.replacement == "lru" and ordered:
                    self.push(f, row, place, entry)
                else:
                    f.store("i32", entry, f.gep("i32", row, place))
                    if level.replacement == "plru":
                        self.touch(f, at, place)
                if number == 0:
                    f.store("i32", entry, f.gep("i32", "@sim_last", at))
                f.ret(f"i32 {number}")
            self.count(f, number)
            entry = f.op(f"or i32 {tag}, %write")
            if self.last:
                found = str(number + 1)
            else:
                below = f.op(f"lshr i64 %line, {self.shift_below}") if self.shift_below else "%line"
                found = f.call("i32", f"sim_find{number + 1}",
                               [f"i64 {below}", "i32 0", "i64 %site"])
            place = str(self.ways - 1) if ordered else self.victim(f, at, row)
            slot = f.gep("i32", row, place)
            old = f.load("i32", slot)
            if ordered:
                self.push(f, row, place, entry)
            else:
                f.store("i32", entry, slot)
                if level.replacement == "plru":
                    self.touch(f, at, place)
            if number == 0:
                f.store("i32", entry, f.gep("i32", "@sim_last", at))
            if self.log:
                with f.if_(f.op(f"icmp ne i32 {old}, 0")):
                    self._log(f, old)
            dirty = f.op(f"icmp ne i32 {f.op(f'and i32 {old}, 1')}, 0")
            with f.if_(dirty):
                self.bump(f, f.gep("i64", "@sim_back", number))
                if not self.last:
                    gone = f.op(f"sub i32 {f.op(f'lshr i32 {old}, 1')}, 1")
                    gone = f.op(f"zext i32 {gone} to i64")
                    if self.shift_below:
                        gone = f.op(f"lshr i64 {gone}, {self.shift_below}")
                    f.call("void", f"sim_back{number + 1}", [f"i64 {gone}"])
            f.ret(f"i32 {found}")

    def _log(self, f: FunctionText, entry: str) -> None:
        """Log the line that is evicted, and the access."""
        n = f.load("i64", "@sim_gone_n")
        f.store("i64", f.op(f"add i64 {n}, 1"), "@sim_gone_n")
        at = f.op(f"mul i64 {n}, 2")
        row = f.gep("i64", f.load("ptr", "@sim_gone"), at)
        f.store("i64", f.load("i64", "@sim_now"), row)
        line = f.op(f"sub i32 {f.op(f'lshr i32 {entry}, 1')}, 1")
        f.store("i64", f.op(f"zext i32 {line} to i64"), f.gep("i64", row, 1))

    def write_back(self) -> None:
        """`void sim_back<n>(line)`: a dirty line comes from above; that does not count as a use."""
        with self.m.function("void", f"sim_back{self.number}", [("i64", "line")], "internal",
                             "noinline nounwind") as f:
            _, row = self.row(f, "%line")
            hit, place = self.find(f, row, self.tag(f, "%line"))
            with f.if_(hit):
                slot = f.gep("i32", row, place)
                f.store("i32", f.op(f"or i32 {f.load('i32', slot)}, 1"), slot)
                f.ret()
            # It bypasses this level.
            self.bump(f, f.gep("i64", "@sim_back", self.number))
            if not self.last:
                below = f.op(f"lshr i64 %line, {self.shift_below}") if self.shift_below else "%line"
                f.call("void", f"sim_back{self.number + 1}", [f"i64 {below}"])
            f.ret()

    def count(self, f: FunctionText, which: int) -> None:
        """Count a miss of the site at a level."""
        self.bump(f, _site_slot(f, SITE_HEAD + which))

    @staticmethod
    def bump(f: FunctionText, slot: str) -> None:
        f.store("i64", f.op(f"add i64 {f.load('i64', slot)}, 1"), slot)


def _site_slot(f: FunctionText, word: int) -> str:
    """The address of one of the counts of `%site`, which is the number of its first word."""
    return f.gep("i64", "@sim_counts", f.op(f"add i64 %site, {word}"))


def _set_of(f: FunctionText, line: str, sets: int, cores: int) -> str:
    """The set of a line; of several cores each has its own sets."""
    at = f.op(f"urem i64 {line}, {sets}")
    if cores == 1:
        return at
    core = f.load("i64", "@sim_core")
    return f.op(f"add i64 {at}, {f.op(f'mul i64 {core}, {sets}')}")


def write_simulator(m: ModuleText, hierarchy: CacheHierarchy, log: bool = False, cores: int = 1
                    ) -> None:
    """Define the whole simulator of a hierarchy for accesses of one site, but for what a program
    calls (`write_entries`).

    With `log` it also writes the lines that leave the first level to `sim_gone`.
    """
    if cores > 1:
        m.globals.append("@sim_core = global i64 0")
    tables = [*_write_caches(m, hierarchy, log, cores), write_counts(m, hierarchy, 1)]
    m.declare("void", "llvm.memset.p0.i64", ["ptr", "i8", "i64", "i1 immarg"])
    with m.function("void", "sim_reset", []) as f:
        for name, size, ty in tables:
            nbytes = size * int(ty[1:]) // 8
            f.do(f"call void @llvm.memset.p0.i64(ptr {name}, i8 0, i64 {nbytes}, i1 false)")
        for number, level in enumerate(hierarchy.levels):
            if level.replacement == "random":
                f.store("i64", str(level.seed), f"@sim_random{number}")
        f.ret()


@functools.lru_cache(maxsize=32)
def simulator_object(hierarchy: CacheHierarchy, cores: int) -> bytes:
    """Object code of the simulator, but for the counts (`write_counts`) and, of several cores,
    `sim_core`: these are in the program that it is linked with. It is the same for all programs, so
    it is compiled once."""
    where = jit.host_machine()
    m = ModuleText(where.triple, where.data_layout)
    m.globals.append("@sim_counts = external global i64")
    if cores > 1:
        m.globals.append("@sim_core = external global i64")
    _write_caches(m, hierarchy, False, cores)
    _write_entries(m, hierarchy.levels[0], cores, "", "nounwind")
    return jit.compile_ir(str(m), where, vectorize=False, unroll=False).obj


def write_inlined(m: ModuleText, hierarchy: CacheHierarchy, cores: int) -> None:
    """Define the common case of each entry point once more, for LLVM to put into a program that is
    linked with `simulator_object`."""
    m.globals.append("@sim_last = external global i32")
    m.declare("i32", "sim_find0", ["i64", "i32", "i64"])
    m.declare("i32", "sim_lines", ["i64", "i64", "i32", "i64"])
    _write_entries(m, hierarchy.levels[0], cores, "available_externally", "alwaysinline nounwind")


def write_counts(m: ModuleText, hierarchy: CacheHierarchy, sites: int) -> tuple[str, int, str]:
    """Define the counts of accesses that stand at `sites` places. Their table."""
    counts = ("@sim_counts", max(sites, 1) * site_words(hierarchy), "i64")
    m.globals.append(_table(*counts, ""))
    with m.function("ptr", "sim_state", []) as f:
        f.ret("ptr @sim_counts")
    return counts


def _write_caches(m: ModuleText, hierarchy: CacheHierarchy, log: bool, cores: int
                  ) -> list[tuple[str, int, str]]:
    """Define the levels, and accesses that are not of the common case. The tables that they use."""
    if log:
        m.globals += ["@sim_gone = internal global ptr null", "@sim_gone_n = internal global i64 0",
                      "@sim_now = internal global i64 0"]
    levels = hierarchy.levels
    tables = [("@sim_back", len(levels), "i64"), ("@sim_last", levels[0].sets * cores, "i32")]
    m.globals += [_table(*tables[0]), _table(*tables[1], "")]
    for number, level in enumerate(levels):
        last = number == len(levels) - 1
        shift = 0 if last else _log2(levels[number + 1].line) - _log2(level.line)
        code = _Level(m, level, number, last, shift, log,
                      cores if hierarchy.is_private(number) else 1)
        tables += code.tables
        code.write_find()
        if number:
            code.write_back()
    _write_lines(m, levels[0])
    _write_masked(m, levels[0])
    with m.function("ptr", "sim_written", []) as f:
        f.ret("ptr @sim_back")
    return tables


def _write_entries(m: ModuleText, first: CacheLevel, cores: int, linkage: str, how: str) -> None:
    """Define what a program calls, where the common case is looked for first."""
    for name, write in (("sim_read", 0), ("sim_write", 1)):
        params = [("i64", "address"), ("i64", "site")]
        with m.function("void", name, params, linkage, how) as f:
            _Level.bump(f, _site_slot(f, 0))
            _look(f, first, write, cores)
            f.ret()
    _write_span(m, first, cores, linkage, how)


def _log2(value: int) -> int:
    return value.bit_length() - 1


def _look(f: FunctionText, first: CacheLevel, write: int, cores: int) -> None:
    """The inlined part: nothing to do where the line was the last one used of its set."""
    line = f.op(f"lshr i64 %address, {_log2(first.line)}")
    at = _set_of(f, line, first.sets, cores)
    small = f.op(f"trunc i64 {line} to i32")
    tag = f.op(f"shl i32 {f.op(f'add i32 {small}, 1')}, 1")
    last = f.load("i32", f.gep("i32", "@sim_last", at))
    if write:
        same = f.op(f"icmp eq i32 {last}, {f.op(f'or i32 {tag}, 1')}")
    else:
        same = f.op(f"icmp eq i32 {f.op(f'and i32 {last}, -2')}, {tag}")
    with f.else_(same):
        f.call("i32", "sim_find0", [f"i64 {line}", f"i32 {write}", "i64 %site"])


_SPAN = [("i64", "address"), ("i64", "bytes"), ("i32", "write"), ("i64", "site")]


def _write_lines(m: ModuleText, first: CacheLevel) -> None:
    """Accesses of several lines."""
    shift = _log2(first.line)
    with m.function("i32", "sim_lines", _SPAN, "", "noinline nounwind") as f:
        low = f.op(f"lshr i64 %address, {shift}")
        end = f.op(f"sub i64 {f.op('add i64 %address, %bytes')}, 1")
        high = f.op(f"lshr i64 {end}, {shift}")
        worst = f.var("i32", "0")
        with f.for_range(low, f.op(f"add i64 {high}, 1")) as line:
            with f.if_(f.op(f"icmp ne i64 {line}, {low}")):
                _Level.bump(f, _site_slot(f, 1))
            found = f.call("i32", "sim_find0", [f"i64 {line}", "i32 %write", "i64 %site"])
            deeper = f.op(f"icmp sgt i32 {found}, {f.load('i32', worst)}")
            with f.if_(deeper):
                f.store("i32", found, worst)
        f.ret(f"i32 {f.load('i32', worst)}")
    with m.function("i32", "sim_one", _SPAN, "", "nounwind") as f:
        _Level.bump(f, _site_slot(f, 0))
        f.ret("i32 " + f.call("i32", "sim_lines", ["i64 %address", "i64 %bytes", "i32 %write",
                                                    "i64 %site"]))


def _write_span(m: ModuleText, first: CacheLevel, cores: int, linkage: str, how: str) -> None:
    """Accesses that may touch several lines."""
    shift = _log2(first.line)
    with m.function("void", "sim_span", _SPAN, linkage, how) as f:
        _Level.bump(f, _site_slot(f, 0))
        end = f.op(f"sub i64 {f.op('add i64 %address, %bytes')}, 1")
        differing = f.op(f"lshr i64 {f.op(f'xor i64 %address, {end}')}, {shift}")
        one = f.op(f"icmp eq i64 {differing}, 0")
        with f.if_(one):
            line = f.op(f"lshr i64 %address, {shift}")
            at = _set_of(f, line, first.sets, cores)
            small = f.op(f"trunc i64 {line} to i32")
            next_one = f.op(f"add i32 {small}, 1")
            tag = f.op(f"or i32 {f.op(f'shl i32 {next_one}, 1')}, %write")
            last = f.load("i32", f.gep("i32", "@sim_last", at))
            read = f.op("xor i32 %write, 1")
            # For a read, the dirty bit of what is there does not matter.
            last = f.op(f"and i32 {last}, {f.op(f'xor i32 {read}, -1')}")
            with f.else_(f.op(f"icmp eq i32 {last}, {tag}")):
                f.call("i32", "sim_find0", [f"i64 {line}", "i32 %write", "i64 %site"])
        with f.else_(one):
            f.call("i32", "sim_lines", ["i64 %address", "i64 %bytes", "i32 %write", "i64 %site"])
        f.ret()


def _write_masked(m: ModuleText, first: CacheLevel) -> None:
    """A vector of which only some lanes are accessed."""
    shift = _log2(first.line)
    params = [("i64", "address"), ("i64", "bytes"), ("i64", "mask"), ("i32", "write"),
              ("i64", "site")]
    with m.function("void", "sim_masked", params, "", "noinline nounwind") as f:
        # Lanes lie behind each other; each line is asked for once.
        previous, left, at = f.var("i64", "-1"), f.var("i64", "%mask"), f.var("i64", "%address")
        _Level.bump(f, _site_slot(f, 0))
        with f.loop():
            bits = f.load("i64", left)
            with f.if_(f.op(f"icmp eq i64 {bits}, 0")):
                f.ret()
            with f.if_(f.op(f"icmp ne i64 {f.op(f'and i64 {bits}, 1')}, 0")):
                line = f.op(f"lshr i64 {f.load('i64', at)}, {shift}")
                before = f.load("i64", previous)
                with f.if_(f.op(f"icmp ne i64 {line}, {before}")):
                    with f.if_(f.op(f"icmp ne i64 {before}, -1")):
                        _Level.bump(f, _site_slot(f, 1))
                    f.call("i32", "sim_find0", [f"i64 {line}", "i32 %write", "i64 %site"])
                    f.store("i64", line, previous)
            f.store("i64", f.op(f"lshr i64 {bits}, 1"), left)
            f.store("i64", f.op(f"add i64 {f.load('i64', at)}, %bytes"), at)
        f.ret()
