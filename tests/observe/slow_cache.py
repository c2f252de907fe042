"""A cache simulator as a reader would write it: the reference for the fast one. Slow."""


class SlowLevel:
    """One level: for each set a list of [line, dirty] or None, in the order the policy needs."""

    def __init__(self, level):
        self.level = level
        self.rows = [[] for _ in range(level.sets)]
        self.places = [[None] * level.ways for _ in range(level.sets)]
        self.bits = [[0] * level.ways for _ in range(level.sets)]
        self.random = level.seed
        self.misses = self.written_back = 0

    def where(self, line):
        number = line % self.level.sets
        if self.level.replacement in ("lru", "fifo"):
            return number, next((e for e in self.rows[number] if e[0] == line), None)
        return number, next((e for e in self.places[number] if e and e[0] == line), None)

    def used(self, number, entry):
        kind = self.level.replacement
        if kind == "lru":
            self.rows[number].remove(entry)
            self.rows[number].insert(0, entry)
        elif kind == "plru":
            self.point_away(number, self.places[number].index(entry))

    def point_away(self, number, place):
        low, high, node = 0, self.level.ways, 1
        while high - low > 1:
            middle = (low + high) // 2
            right = place >= middle
            self.bits[number][node] = 0 if right else 1
            low, high = (middle, high) if right else (low, middle)
            node = 2 * node + right

    def put(self, line, dirty):
        """Put a line in; gives the entry that had to go, or None."""
        number, kind = line % self.level.sets, self.level.replacement
        entry = [line, dirty]
        if kind in ("lru", "fifo"):
            row = self.rows[number]
            row.insert(0, entry)
            return row.pop() if len(row) > self.level.ways else None
        places = self.places[number]
        if None in places:
            at = places.index(None)
        elif kind == "random":
            x, mask = self.random, (1 << 64) - 1
            x ^= (x << 13) & mask
            x ^= x >> 7
            x ^= (x << 17) & mask
            self.random = x
            at = x % self.level.ways
        else:
            low, high, node = 0, self.level.ways, 1
            while high - low > 1:
                right = self.bits[number][node]
                middle = (low + high) // 2
                low, high = (middle, high) if right else (low, middle)
                node = 2 * node + right
            at = low
        gone, places[at] = places[at], entry
        if kind == "plru":
            self.point_away(number, at)
        return gone


class SlowCache:
    """A hierarchy; `access` tells at which level the access was found."""

    def __init__(self, hierarchy, cores=1):
        self.every = []
        shared = SlowLevel(hierarchy.levels[-1])
        for _ in range(cores):
            own = [SlowLevel(level) for level in hierarchy.levels]
            self.every.append(own if len(own) == 1 else [*own[:-1], shared])
        self.levels = self.every[0]
        self.lookups = self.accesses = 0
        self.gone = []

    def access(self, address, nbytes, write, core=0):
        self.levels = self.every[core]
        self.accesses += 1
        size = self.levels[0].level.line
        found = 0
        for line in range(address // size, (address + nbytes - 1) // size + 1):
            self.lookups += 1
            found = max(found, self.find(0, line * size, write))
        return found

    def total(self, what):
        """A count of each level, over all cores."""
        return [sum(getattr(level, what) for level in {id(x[n]): x[n] for x in self.every}.values())
                for n in range(len(self.levels))]

    def find(self, number, address, write):
        if number == len(self.levels):
            return number
        level = self.levels[number]
        line = address // level.level.line
        row, entry = level.where(line)
        if entry is not None:
            entry[1] |= write
            level.used(row, entry)
            return number
        level.misses += 1
        found = self.find(number + 1, address, False)
        gone = level.put(line, write)
        if gone is not None and number == 0:
            self.gone.append([self.accesses - 1, gone[0]])
        if gone is not None and gone[1]:
            self.back(number, gone[0] * level.level.line)
        return found

    def back(self, number, address):
        """A dirty line leaves a level: to the first one below that holds it, or to memory."""
        self.levels[number].written_back += 1
        if number + 1 == len(self.levels):
            return
        below = self.levels[number + 1]
        entry = below.where(address // below.level.line)[1]
        if entry is not None:
            entry[1] = True
        else:
            self.back(number + 1, address)
