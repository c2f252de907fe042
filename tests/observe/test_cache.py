"""The cache simulator: against cases worked by hand, and against a slow one written plainly."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab.machine import caches as cache
from mlc_lab.machine.caches import (
    REPLACEMENTS,
    CacheError,
    CacheHierarchy,
    CacheLevel,
    as_hierarchy,
)
from mlc_lab.observe.replay import FIRST_USE, Replay, reuse_distances, simulate

from .slow_cache import SlowCache


def lines(text, size=16):
    """Addresses of lines given by letters: "aba"."""
    return [(ord(c) - ord("a")) * size for c in text]


def level(size, ways, replacement="lru", line=16, name="L1", **more):
    return CacheLevel(name, size, line, ways, replacement, **more)


def found(text, *levels, writes=False):
    return "".join(map(str, simulate(lines(text), 1, writes, levels)[0]))


def test_a_line_is_found_again_until_its_set_is_full():
    # Two lines of one set; c takes the place of a, the one used longest ago.
    assert found("abacab", level(32, 2)) == "110101"
    assert found("abab", level(32, 2)) == "1100"


def test_a_direct_mapped_cache_loses_a_line_to_another_of_the_same_set():
    assert found("abab", level(32, 1)) == "1100"  # two sets
    assert found("acac", level(32, 1)) == "1111"  # the same set


def test_fifo_loses_what_came_first_although_it_was_just_used():
    assert found("aabaca", level(32, 2, "lru")) == "101010"
    assert found("aabaca", level(32, 2, "fifo")) == "101011"


def test_tree_plru_loses_the_one_that_the_bits_point_at():
    # a b c d fill the places 0 to 3. Using a points the root right, to c and d; its right node
    # points at c, since d was used last there. So e replaces c, where LRU would replace b.
    assert found("abcdaeb", level(64, 4, "plru")) == "1111010"
    assert found("abcdaeb", level(64, 4, "lru")) == "1111011"
    assert found("abcdaec", level(64, 4, "plru")) == "1111011"


def test_random_replacement_is_the_same_every_time_and_differs_by_seed():
    text = "abcdefgh" * 40
    one = found(text, level(64, 4, "random", seed=1))
    assert one == found(text, level(64, 4, "random", seed=1))
    assert one != found(text, level(64, 4, "random", seed=2))


def test_a_miss_asks_the_level_below_and_fills_both():
    small, large = level(16, 1), level(64, 4, name="L2")
    assert found("abab", small, large) == "2211"
    counts = simulate(lines("abab"), 1, False, [small, large])[1]
    assert [(c.lookups, c.misses, c.bytes_in) for c in counts] == [(4, 4, 64), (4, 2, 32)]


def test_a_dirty_line_is_written_back_once_to_the_level_that_holds_it():
    small, large = level(16, 1), level(32, 2, name="L2")
    places = lines("aabcd")
    # a is stored twice in L1, goes to L2 when b comes, and from there to memory when c comes.
    _, counts, _ = simulate(places, 1, [True, True, False, False, False], [small, large])
    assert [c.written_back for c in counts] == [1, 1]
    # b and c were only read.
    assert [c.bytes_out for c in counts] == [16, 16]


def test_an_access_over_a_line_boundary_uses_both_lines():
    told, (count,), _ = simulate([12, 16, 0], [8, 1, 1], False, [level(64, 4)])
    assert list(told) == [1, 0, 0]
    assert (count.lookups, count.misses) == (4, 2)


def test_cores_have_their_own_levels_but_the_last():
    levels = [level(64, 4), level(256, 4, name="L2")]
    told, counts, _ = simulate(lines("aaaa"), 1, False, levels, [0, 1, 1, 0])
    assert told.tolist() == [2, 1, 0, 0]
    assert [c.misses for c in counts] == [2, 1]
    assert simulate(lines("aa"), 1, False, levels[:1], [0, 1]).found.tolist() == [1, 1]


def test_longer_lines_below_bring_neighbours():
    small, large = level(16, 1), level(128, 1, name="L2", line=64)
    assert found("abcd", small, large) == "2111"


hierarchies = st.builds(
    lambda levels: CacheHierarchy(tuple(
        CacheLevel(f"L{n}", sets * ways * line, line, ways, kind, seed)
        for n, (sets, ways, kind, seed, line) in enumerate(levels, 1))),
    st.lists(st.tuples(
        st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from([1, 2, 4, 8]),
        st.sampled_from(REPLACEMENTS), st.integers(1, 99), st.sampled_from([8, 16])),
        min_size=1, max_size=3).map(lambda found: sorted(found, key=lambda x: x[4])),
)  # fmt: skip
odd_ways = st.builds(
    lambda sets, ways, kind: CacheHierarchy((CacheLevel("L1", sets * ways * 8, 8, ways, kind),)),
    st.sampled_from([1, 2, 3]), st.sampled_from([3, 5, 12, 33, 48]),
    st.sampled_from(["lru", "fifo", "random"]))  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.one_of(hierarchies, odd_ways), st.integers(1, 12), st.integers(0, 2**32 - 1),
       st.sampled_from([1, 1, 3]))
def test_it_agrees_with_a_plain_simulator_on_random_accesses(hierarchy, spread, seed, cores):
    if any(level.replacement == "random" for level in hierarchy):
        cores = 1  # the cores of the plain one have random numbers of their own
    rng = np.random.default_rng(seed)
    count = 1500
    places = rng.integers(0, 64 * spread, count)
    places += rng.integers(0, 2, count) * 4096  # and lines of the same sets far away
    nbytes = rng.integers(1, 20, count)
    writes = rng.random(count) < 0.3
    on = rng.integers(0, cores, count)
    slow = SlowCache(hierarchy, cores)
    right = [slow.access(int(a), int(b), bool(w), int(c))
             for a, b, w, c in zip(places, nbytes, writes, on, strict=True)]
    told, counts, gone = simulate(places, nbytes, writes, hierarchy, on)
    assert told.tolist() == right
    assert counts[0].lookups == slow.lookups
    assert gone.tolist() == slow.gone
    assert [c.misses for c in counts] == slow.total("misses")
    assert [c.written_back for c in counts] == slow.total("written_back")
    cut = int(rng.integers(0, count + 1))
    with Replay(hierarchy, cores) as replay:  # the same, a part after the other
        first = replay.feed(places[:cut], nbytes[:cut], writes[:cut], on[:cut])
        second = replay.feed(places[cut:], nbytes[cut:], writes[cut:], on[cut:])
    assert [*first.found, *second.found] == right and second.counts == counts
    later = [[n + cut, line] for n, line in second.gone.tolist()]
    assert first.gone.tolist() + later == slow.gone


def test_reuse_distance_is_the_number_of_other_lines_since():
    assert reuse_distances([1, 2, 1, 1, 3, 2]).tolist() == [
        FIRST_USE, FIRST_USE, 1, 0, FIRST_USE, 2]
    assert reuse_distances([]).tolist() == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=200), st.sampled_from([1, 2, 8, 16]))
def test_a_fully_associative_lru_cache_hits_what_is_nearer_than_its_lines(used, ways):
    level = CacheLevel("L1", ways * 4, 4, ways)
    told, _, _ = simulate([4 * x for x in used], 1, False, [level])
    distance = reuse_distances(used)
    assert (told == 0).tolist() == ((distance >= 0) & (distance < ways)).tolist()


def test_descriptions_are_read_and_written():
    text = "32K:8, 512K:16:128:plru"
    made = CacheHierarchy.parse(text)
    assert [(x.name, x.size, x.ways, x.line, x.replacement) for x in made] == [
        ("L1", 32768, 8, 64, "lru"), ("L2", 524288, 16, 128, "plru")]
    assert as_hierarchy(made.to_dict()) == made
    assert as_hierarchy(text) == made
    assert "L2 512 KiB, 128 B lines, 16-way, plru" in str(made)
    assert CacheHierarchy.machine().levels[0].name == "L1"


def test_the_caches_of_a_machine_are_read_from_the_system(tmp_path, monkeypatch):
    rows = [("1", "Data", "48K", "64", "12"), ("1", "Instruction", "32K", "64", "8"),
            ("2", "Unified", "2048K", "64", "16"), ("3", "Unified", "36M", "64", "12")]
    names = ("level", "type", "size", "coherency_line_size", "ways_of_associativity")
    for number, row in enumerate(rows):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in zip(names, row, strict=True):
            (folder / name).write_text(text + "\n")
    made = CacheHierarchy(cache._sysfs_levels(tmp_path))
    assert str(made) == ("L1 48 KiB, 64 B lines, 12-way, lru; L2 2 MiB, 64 B lines, 16-way, lru; "
                         "L3 36 MiB, 64 B lines, 12-way, lru")

    told = {"hw.cachelinesize": 128, "hw.perflevel0.l1dcachesize": 131072,
            "hw.perflevel0.l2cachesize": 16777216}

    def sysctl(command, **_):
        value = told.get(command[-1])
        return SimpleNamespace(returncode=0 if value else 1, stdout=f"{value}\n")

    monkeypatch.setattr(cache.subprocess, "run", sysctl)
    made = CacheHierarchy(cache._sysctl_levels())
    assert [(x.name, x.size, x.line, x.ways) for x in made] == [
        ("L1", 131072, 128, 8), ("L2", 16777216, 128, 8)]


@pytest.mark.parametrize("bad, said", [
    (lambda: CacheLevel("L1", 1000, 64, 8), "multiple of 512"),
    (lambda: CacheLevel("L1", 1024, 48, 2), "power of two"),
    (lambda: CacheLevel("L1", 64 * 12, 64, 12, "plru"), "tree-PLRU needs"),
    (lambda: CacheLevel("L1", 1024, 64, 2, "mru"), "choose one of lru"),
    (lambda: CacheHierarchy.parse("large"), "32K:8:64:lru"),
    (lambda: CacheHierarchy.parse("1K:1:64, 4K:1:32"), "shorter lines"),
    (lambda: as_hierarchy([{"size": 4}]), "describes no cache level"),
    (lambda: simulate([-1], 1, False, "1K"), "from 0"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_the_reason(bad, said):
    with pytest.raises(CacheError, match=said):
        bad()
