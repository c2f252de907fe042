"""`relax.frontend.nn.llm`: rotary positions and the cache in pages, against torch and numpy."""

import random

import numpy as np
import pytest

from mlc_lab import nd, relax, target, tir
from mlc_lab.build import build
from mlc_lab.relax.frontend import nn
from mlc_lab.relax.frontend.nn.llm import position_embedding as rope
from mlc_lab.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache
from mlc_lab.relax.vm.kv_state import PagedKVCache as Cache, frequencies, rotated
from mlc_lab.runtime import ShapeTuple, registry
from mlc_lab.runtime.registry import get_global_func

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
Q, KV, D = 4, 2, 8


def size(number):
    """A number as `nn.spec.Int` takes it."""
    return ShapeTuple([number])


def llama3_angles(size, theta):
    """As the paper's code has it: three cases by the length of the wave."""
    out = []
    for i in range(size):
        inverse = 1.0 / theta ** (2 * i % size / size)
        wave, old = 2 * np.pi / inverse, LLAMA3["original_max_position_embeddings"]
        low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
        if wave < old / high:
            out.append(inverse)
        elif wave > old / low:
            out.append(inverse / LLAMA3["factor"])
        else:
            smooth = (old / wave - low) / (high - low)
            out.append((1 - smooth) * inverse / LLAMA3["factor"] + smooth * inverse)
    return np.array(out, "float32")


@pytest.mark.parametrize("scaling", [{}, LLAMA3])
@pytest.mark.parametrize("rotary_dim", [8, 4])
def test_rotary_positions(scaling, rotary_dim):
    angles = llama3_angles(rotary_dim, 100.0) if scaling else 1.0 / 100.0 ** (
        np.arange(rotary_dim) * 2 % rotary_dim / rotary_dim)
    np.testing.assert_allclose(frequencies(rotary_dim, 100.0, scaling), angles, rtol=1e-5)
    func = rope.llama_rope_with_position_map(100.0, 0.5, D, Q, KV, "float32", scaling, rotary_dim)
    run = build(func, target="llvm")
    rng = np.random.default_rng(0)
    qkv = rng.standard_normal((5, Q + 2 * KV, D)).astype("float32")
    positions = np.array([3, 0, 7, 41, 2], "int32")
    for on in (1, 0):
        q, k, v = (np.zeros((5, n, D), "float32") for n in (Q, KV, KV))
        run(qkv, positions, q, k, v, on)
        turned = qkv.copy()
        if on:
            turned = rotated(qkv, positions * 0.5, angles.astype("float32"))
        np.testing.assert_allclose(q, turned[:, :Q], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(k, turned[:, Q:Q + KV], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(v, qkv[:, Q + KV:])


def test_rotations_keep_lengths_and_depend_on_distances():
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((2, 1, 1, D)).astype("float32")
    angles = frequencies(D, 10000.0, {})

    def score(i, j):
        a, b = (rotated(x, np.array([p]), angles) for x, p in ((q, i), (k, j)))
        return float((a * b).sum())

    assert score(9, 4) == pytest.approx(score(25, 20), rel=1e-4)
    assert score(9, 4) != pytest.approx(score(9, 3), rel=1e-3)


def test_longrope_divides_by_its_factors():
    scaling = {"rope_type": "longrope", "max_position_embeddings": 64,
               "original_max_position_embeddings": 16}
    func = rope.llama_rope_with_position_map(100.0, 1.0, D, Q, KV, "float32", scaling)
    run = build(func, target="llvm")
    rng = np.random.default_rng(0)
    qkv = rng.standard_normal((3, Q + 2 * KV, D)).astype("float32")
    positions, factors = np.array([1, 5, 30], "int32"), np.array([1, 2, 3, 4], "float32")
    q, k, v = (np.zeros((3, n, D), "float32") for n in (Q, KV, KV))
    run(qkv, positions, q, k, v, factors)
    angles = frequencies(D, 100.0, {}) / np.tile(factors, 2)
    scale = np.sqrt(1 + np.log(4) / np.log(16))
    np.testing.assert_allclose(q, rotated(qkv, positions, angles)[:, :Q] * scale, rtol=1e-4,
                               atol=1e-4)
    with pytest.raises(ValueError, match="'yarn' is not known"):
        rope.switch_rope_freq_func({"rope_type": "yarn"})


class Rotary(nn.Module):
    def forward(self, x: nn.Tensor, total: tir.Var):
        return nn.llm.llama_rope(x, total, 100.0, 1.0, Q, KV, {})


def test_llama_rope_in_a_model_counts_from_the_end():
    mod, _ = Rotary().export_tvm({"forward": {
        "x": nn.spec.Tensor((1, "n", Q + 2 * KV, D), "float32"), "total": nn.spec.Int()}})
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), nd.cpu())
    x = np.random.default_rng(0).standard_normal((1, 3, Q + 2 * KV, D)).astype("float32")
    q, k, v = (t.numpy() for t in vm["forward"](nd.array(x), size(10)))
    turned = rotated(x[0], np.arange(7, 10), frequencies(D, 100.0, {}))
    np.testing.assert_allclose(q[0], turned[:, :Q], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(k[0], turned[:, Q:Q + KV], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(v[0], x[0, :, Q + KV:])


# ------------------------------------------------------------------------------- the cache

LAYERS = 2


class Attention(nn.Module):
    def __init__(self, mode=RopeMode.NORMAL):
        super().__init__()
        self.mode = mode

    def create(self, max_batch: tir.Var, max_total: tir.Var, chunk: tir.Var, page: tir.Var,
               slides: tir.Var):
        return TIRPagedKVCache(
            max_batch, max_total, chunk, page, slides, relax.ShapeExpr([0, LAYERS]), LAYERS, Q, KV,
            self.mode, D, 1.0, 100.0, {}, relax.PrimValue(0), D, "float32", target.Target("llvm"))

    def forward(self, x: nn.Tensor, cache: PagedKVCache):
        first = cache.attention_with_fused_qkv(0, x, Q)
        return first, cache.attention_with_fused_qkv(1, x * 2.0, Q, 0.5)

    def places(self, x: nn.Tensor, cache: PagedKVCache):
        return cache.get_query_positions(x.shape[1])


def machine(mode=RopeMode.NORMAL):
    ints = dict.fromkeys(("max_batch", "max_total", "chunk", "page", "slides"), nn.spec.Int())
    one = {"x": nn.spec.Tensor((1, "n", Q + 2 * KV, D), "float32"),
           "cache": nn.spec.Object(PagedKVCache)}
    mod, _ = Attention(mode).export_tvm({"create": ints, "forward": one, "places": one})
    return relax.VirtualMachine(relax.build(mod, "llvm"), nd.cpu())


def call(name, *args):
    return get_global_func(f"vm.builtin.{name}")(*args)


class Reference:
    """All tokens of each sequence, and plain attention over them."""

    def __init__(self, mode):
        self.mode, self.of = mode, {}

    def step(self, seq, rows, factor):
        seen = self.of.setdefault(seq, [])
        begin = len(seen)
        seen += list(rows)
        every, out = np.array(seen), []
        at = np.arange(len(every))
        turned = every if self.mode == RopeMode.NONE else rotated(
            every, at, frequencies(D, 100.0, {}))
        for i in range(begin, len(every)):
            for h in range(Q):
                keys = turned[:i + 1, Q + h // (Q // KV)]
                score = keys @ turned[i, h] * factor / np.sqrt(D)
                weight = np.exp(score - score.max())
                out.append(weight @ every[:i + 1, Q + KV + h // (Q // KV)] / weight.sum())
        return np.array(out).reshape(len(rows), Q, D)


@pytest.mark.parametrize("mode", list(RopeMode))
def test_a_batch_that_grows_forks_and_shrinks(mode):
    vm = machine(mode)
    cache = vm["create"](*map(size, (4, 64, 16, 3, 0)))
    rng = np.random.default_rng(2)
    references = [Reference(mode) for _ in range(LAYERS)]

    def step(*batch):
        seqs, counts = zip(*batch)
        call("kv_state_begin_forward", cache, registry.convert(list(seqs)),
             registry.convert(list(counts)))
        x = rng.standard_normal((1, sum(counts), Q + 2 * KV, D)).astype("float32")
        begins = [len(references[0].of.get(s, [])) for s in seqs]
        np.testing.assert_array_equal(
            vm["places"](nd.array(x), cache).numpy(),
            np.concatenate([np.arange(b, b + n) for b, n in zip(begins, counts)]))
        found = vm["forward"](nd.array(x), cache)
        call("kv_state_end_forward", cache)
        for layer, (scale, factor) in enumerate(((1.0, 1.0), (2.0, 0.5))):
            rows = np.split(x[0] * scale, np.cumsum(counts)[:-1])
            want = np.concatenate([references[layer].step(s, r, factor)
                                   for s, r in zip(seqs, rows)])
            np.testing.assert_allclose(found[layer].numpy()[0], want, rtol=2e-3, atol=2e-4)

    for seq in (0, 1):
        call("kv_state_add_sequence", cache, seq)
    step((0, 5), (1, 2))
    step((1, 1), (0, 1))
    call("kv_state_fork_sequence", cache, 0, 2, 4)
    call("kv_state_fork_sequence", cache, 0, 3, -1)
    for reference in references:
        reference.of[2], reference.of[3] = reference.of[0][:4], list(reference.of[0])
    step((2, 3), (0, 2), (3, 1))
    call("kv_state_popn", cache, 0, 5)
    for reference in references:
        del reference.of[0][-5:]
    step((0, 4), (3, 2))  # what others share stays as it was
    step((2, 1), (3, 1), (1, 1))
    length = len(references[0].of[3])
    keys, values = (nd.empty((LAYERS, length, KV, D), "float32") for _ in range(2))
    call("attention_kv_cache_debug_get_kv", cache, 3, 0, length, keys, values)
    np.testing.assert_array_equal(values.numpy()[0],
                                  np.array(references[0].of[3])[:, Q + KV:])
    assert call("attention_kv_cache_get_total_sequence_length", cache) == sum(
        map(len, references[0].of.values()))
    assert not call("attention_kv_cache_empty", cache)
    before = call("attention_kv_cache_get_num_available_pages", cache)
    call("kv_state_remove_sequence", cache, 1)
    assert call("attention_kv_cache_get_num_available_pages", cache) == before + 2
    call("kv_state_clear", cache)
    assert call("attention_kv_cache_empty", cache)


def test_what_a_cache_refuses():
    vm = machine()
    with pytest.raises(Exception, match="sliding windows"):
        vm["create"](*map(size, (2, 8, 8, 4, 1)))
    cache = vm["create"](*map(size, (1, 8, 8, 4, 0)))
    call("kv_state_add_sequence", cache, 7)
    for name, args, message in [
            ("kv_state_add_sequence", (7,), "a sequence 7 already"),
            ("kv_state_add_sequence", (8,), "1 sequences at most"),
            ("kv_state_remove_sequence", (3,), "no sequence 3"),
            ("kv_state_popn", (7, 1), "has 0 tokens"),
            ("kv_state_fork_sequence", (7, 8, 2), "cannot fork at 2")]:
        with pytest.raises(ValueError, match=message):
            call(name, cache, *args)

    def begin(seqs, counts):
        call("kv_state_begin_forward", cache, registry.convert(seqs), registry.convert(counts))

    with pytest.raises(ValueError, match="8 tokens at most"):
        begin([7], [9])
    begin([7], [8])
    with pytest.raises(ValueError, match="is full"):
        begin([7], [8])


def test_a_refused_step_changes_nothing():
    def state():
        return list(cache.free), list(cache.users), {k: list(v) for k, v in cache.of.items()}, (
            dict(cache.lengths), list(cache.batch))

    cache = Cache((3, 16, 64, 4, 0), (0, 1), 1, 1, 2, 0, 1.0, 1e4, np.zeros(1, "float32"))
    rng = random.Random(0)
    refused = 0
    for _ in range(3000):
        before, seq, count = state(), rng.randrange(4), rng.randrange(-1, 9)
        act, *args = rng.choice([
            (cache.add_sequence, seq), (cache.remove_sequence, seq), (cache.popn, seq, count),
            (cache.fork_sequence, seq, rng.randrange(4), count),
            (cache.begin_forward, [seq, (seq + 1) % 4], [count, rng.randrange(9)])])
        try:
            act(*args)
        except ValueError:
            refused += 1
            assert state() == before
        held = [page for pages in cache.of.values() for page in pages]
        assert all(cache.users[page] == held.count(page) for page in range(len(cache.users)))
        assert sorted(cache.free) == [p for p, n in enumerate(cache.users) if not n]
        assert all(len(cache.of[s]) == -(-n // 4) for s, n in cache.lengths.items())
    assert 100 < refused < 2900
