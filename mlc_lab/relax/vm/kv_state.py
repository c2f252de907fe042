"""Caches of keys and values for attention: pages of memory that several sequences share.

A sequence is a list of pages. Sequences that begin alike have their first pages in common; a page
that is not full is copied when a sequence forks. `FUNCTIONS` has what a program calls, by TVM's
names; the attention itself is numpy's, in float32.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...runtime import NDArray, array, registry

#: how keys and queries are turned by their positions
NONE, NORMAL, INLINE = range(3)


def frequencies(size: int, theta: float, scaling: Mapping[str, Any]) -> np.ndarray:
    """The angle that one position turns each of `size` features by, before scaling of positions.

    Raises ValueError for a kind of scaling that is not known.
    """
    inverse = (1.0 / theta ** (np.arange(size) * 2 % size / size)).astype("float32")
    kind = scaling.get("rope_type")
    if kind is None:
        return inverse
    if kind != "llama3":
        raise ValueError(f"a cache turns keys plainly or as llama3 does, not by {kind!r}")
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * inverse / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return ((1 - smooth) * inverse / scaling["factor"] + smooth * inverse).astype("float32")


def rotated(x: np.ndarray, positions: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Rows of heads, (tokens, heads, features), turned by their positions; features after those of
    `angles` stay."""
    size = len(angles)
    turned, rest = x[..., :size].astype("float32"), x[..., size:]
    angle = (positions.astype("float32")[:, None] * angles)[:, None, :]
    half = np.concatenate([-turned[..., size // 2:], turned[..., :size // 2]], -1)
    done = np.cos(angle) * turned + np.sin(angle) * half
    return np.concatenate([done, rest.astype("float32")], -1)


class PagedKVCache:
    """Keys and values of some layers, for up to `max_sequences` sequences.

    `sizes` are the most sequences, the most tokens of all, the most tokens of one step, the tokens
    of a page, and whether windows slide (which is refused).
    """

    def __init__(self, sizes: Sequence[int], layers: Sequence[int], num_qo_heads: int,
                 num_kv_heads: int, head_dim: int, rope_mode: int, rope_scale: float,
                 rope_theta: float, like: Any, rope_scaling: str = "{}", rotary_dim: int = 0
                 ) -> None:
        self.max_sequences, total, self.chunk, self.page_size, slides = map(int, sizes)
        if slides:
            raise ValueError("a cache of sliding windows is not here: all tokens stay")
        if num_qo_heads % num_kv_heads:
            raise ValueError(f"{num_qo_heads} heads of queries do not share {num_kv_heads} of keys "
                             "evenly")
        self.layers = int(layers[-1]) - int(layers[0])
        self.first_layer = int(layers[0])
        self.num_qo_heads, self.num_kv_heads = int(num_qo_heads), int(num_kv_heads)
        self.head_dim, self.mode, self.scale = int(head_dim), int(rope_mode), float(rope_scale)
        self.angles = frequencies(int(rotary_dim) or self.head_dim, float(rope_theta),
                                  json.loads(str(rope_scaling)))
        count = -(-total // self.page_size) + self.max_sequences
        dtype = np.asarray(like.numpy() if isinstance(like, NDArray) else like).dtype
        self.total = total
        self.pages = np.zeros((2, self.layers, count, self.page_size, self.num_kv_heads,
                               self.head_dim), dtype)
        self.clear()

    def clear(self) -> None:
        """Forget all sequences."""
        self.free = list(range(self.pages.shape[2]))[::-1]
        self.users = [0] * self.pages.shape[2]
        self.of: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.batch: list[tuple[int, int, int]] = []

    def _known(self, seq: int) -> int:
        if seq not in self.of:
            raise ValueError(f"there is no sequence {seq}: the cache has {sorted(self.of)}")
        return int(seq)

    def add_sequence(self, seq: int) -> None:
        """Begin a sequence."""
        if seq in self.of:
            raise ValueError(f"there is a sequence {seq} already")
        if len(self.of) == self.max_sequences:
            raise ValueError(f"the cache holds {self.max_sequences} sequences at most")
        self.of[seq], self.lengths[seq] = [], 0

    def remove_sequence(self, seq: int) -> None:
        """End a sequence; its memory is free, but for what others share."""
        for page in self.of.pop(self._known(seq)):
            self._leave(page)
        del self.lengths[seq]

    def _leave(self, page: int) -> None:
        self.users[page] -= 1
        if not self.users[page]:
            self.free.append(page)

    def _needs(self, count: int) -> None:
        """ValueError where so many pages are not free; asked before anything changes."""
        if len(self.free) < count:
            raise ValueError(f"the cache is full: it was made for {self.total} tokens")

    def _new(self) -> int:
        page = self.free.pop()
        self.users[page] = 1
        return page

    def fork_sequence(self, parent: int, child: int, position: int = -1) -> None:
        """Begin a sequence with what another one holds, up to a position; -1: all of it."""
        length = self.lengths[self._known(parent)]
        position = length if position == -1 else position
        if not 0 <= position <= length:
            raise ValueError(f"sequence {parent} has {length} tokens: it cannot fork at {position}")
        full, rest = divmod(position, self.page_size)
        self._needs(bool(rest))
        self.add_sequence(child)
        shared = self.of[parent][:full]
        for page in shared:
            self.users[page] += 1
        self.of[child], self.lengths[child] = list(shared), position
        if rest:
            page = self._new()
            self.pages[:, :, page, :rest] = self.pages[:, :, self.of[parent][full], :rest]
            self.of[child].append(page)

    def popn(self, seq: int, count: int) -> None:
        """Forget the last tokens of a sequence."""
        length = self.lengths[self._known(seq)] - count
        if count < 0 or length < 0:
            raise ValueError(f"sequence {seq} has {length + count} tokens, {count} are to go")
        pages, rest = self.of[seq], length % self.page_size
        keep = -(-length // self.page_size)
        copied = rest and self.users[pages[keep - 1]] > 1  # others read the last page too
        self._needs(copied and all(self.users[page] > 1 for page in pages[keep:]))
        self.lengths[seq] = length
        for page in pages[keep:]:
            self._leave(page)
        del pages[keep:]
        if copied:
            page = self._new()
            self.pages[:, :, page, :rest] = self.pages[:, :, pages[-1], :rest]
            self._leave(pages[-1])
            pages[-1] = page

    def begin_forward(self, seqs: Sequence[int], counts: Sequence[int], tree: Any = None) -> None:
        """Begin a step: so many new tokens for each of these sequences, in this order."""
        if tree is not None:
            raise ValueError("trees of draft tokens are not here: give each sequence its tokens "
                             "in a row")
        if len(seqs) != len(counts) or len(set(map(int, seqs))) != len(seqs):
            raise ValueError(f"a step has different sequences and a number of tokens for each, got "
                             f"{list(seqs)} and {list(counts)}")
        if sum(counts) > self.chunk:
            raise ValueError(f"a step has {self.chunk} tokens at most, not {sum(counts)}")
        if min(counts, default=0) < 0:
            raise ValueError(f"numbers of tokens are not negative, got {list(counts)}")
        batch = [(self._known(int(seq)), self.lengths[int(seq)], int(count))
                 for seq, count in zip(seqs, counts)]
        more = {seq: -(-(begin + count) // self.page_size) - len(self.of[seq])
                for seq, begin, count in batch}
        self._needs(sum(more.values()))
        self.batch = batch
        for seq, begin, count in batch:
            self.lengths[seq] = begin + count
            self.of[seq] += [self._new() for _ in range(more[seq])]

    def end_forward(self) -> None:
        """End the step."""
        self.batch = []

    def positions(self) -> np.ndarray:
        """Where each new token stands in its sequence."""
        parts = [np.arange(begin, begin + count) for _, begin, count in self.batch]
        return np.concatenate(parts or [np.zeros(0)]).astype("int32")

    def _places(self, seq: int, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """The page of each token of a sequence, and its row there."""
        at = np.arange(begin, end)
        return np.array(self.of[seq], "int64")[at // self.page_size], at % self.page_size

    def attention(self, layer: int, factor: float, qkv: np.ndarray) -> np.ndarray:
        """The attention of the new tokens to all of their sequences so far.

        `qkv` is (tokens, heads of queries + 2 * heads of keys, features); its keys and values stay
        in the cache. The scores are divided by the root of the features and multiplied by `factor`.
        """
        layer -= self.first_layer
        if len(qkv) != sum(count for *_, count in self.batch):
            raise ValueError(f"the step has {sum(n for *_, n in self.batch)} tokens, {len(qkv)} "
                             "are given")
        q, k, v = np.split(qkv, [self.num_qo_heads, self.num_qo_heads + self.num_kv_heads], 1)
        out = np.empty(q.shape, "float32")
        row = 0
        for seq, begin, count in self.batch:
            here, end = slice(row, row + count), begin + count
            row += count
            at = np.arange(begin, end)
            page, place = self._places(seq, begin, end)
            new = k[here] if self.mode != NORMAL else rotated(k[here], at * self.scale, self.angles)
            self.pages[0, layer, page, place] = new.astype(self.pages.dtype)
            self.pages[1, layer, page, place] = v[here]
            page, place = self._places(seq, 0, end)
            keys, values = (self.pages[i, layer, page, place].astype("float32") for i in (0, 1))
            queries = q[here].astype("float32")
            if self.mode != NONE:
                queries = rotated(queries, at * self.scale, self.angles)
            if self.mode == INLINE:
                keys = rotated(keys, np.arange(end) * self.scale, self.angles)
            group = self.num_qo_heads // self.num_kv_heads
            keys, values = (np.repeat(x, group, 1) for x in (keys, values))
            scores = np.einsum("qhd,khd->hqk", queries, keys) * (factor / math.sqrt(self.head_dim))
            scores[:, np.arange(end)[None] > at[:, None]] = -np.inf
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            out[here] = np.einsum("hqk,khd->qhd", scores, values)
        return out.astype(qkv.dtype)

    def held(self, seq: int, begin: int, end: int) -> np.ndarray:
        """Keys and values of a sequence: (2, layers, tokens, heads, features)."""
        page, place = self._places(self._known(seq), begin, end)
        return self.pages[:, :, page, place]

    def __repr__(self) -> str:
        return f"PagedKVCache({len(self.of)} sequences, {sum(self.lengths.values())} tokens)"


# ------------------------------------------------------------------------------- what programs call


def _attention(cache: PagedKVCache, layer: int, factor: float, qkv: NDArray, out: NDArray) -> None:
    out.copyfrom(cache.attention(int(layer), float(factor), qkv.numpy()))


def _debug_get_kv(cache: PagedKVCache, seq: int, begin: int, end: int, keys: NDArray,
                  values: NDArray) -> None:
    for tensor, part in zip((keys, values), cache.held(seq, begin, end)):
        tensor.copyfrom(np.ascontiguousarray(part))


_STATE, _CACHE = "vm.builtin.kv_state_", "vm.builtin.attention_kv_cache_"
#: name -> the function that programs call by it, with a cache as its first argument
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "vm.builtin.paged_attention_kv_cache_create_on_cpu": PagedKVCache,
    f"{_STATE}clear": PagedKVCache.clear,
    f"{_STATE}add_sequence": PagedKVCache.add_sequence,
    f"{_STATE}remove_sequence": PagedKVCache.remove_sequence,
    f"{_STATE}fork_sequence": PagedKVCache.fork_sequence,
    f"{_STATE}popn": PagedKVCache.popn,
    f"{_STATE}begin_forward": PagedKVCache.begin_forward,
    f"{_STATE}end_forward": PagedKVCache.end_forward,
    f"{_CACHE}attention_with_fused_qkv": _attention,
    f"{_CACHE}get_query_positions": lambda cache: array(cache.positions()),
    f"{_CACHE}get_num_available_pages": lambda cache: len(cache.free),
    f"{_CACHE}get_total_sequence_length": lambda cache: sum(cache.lengths.values()),
    f"{_CACHE}empty": lambda cache: not any(cache.lengths.values()),
    f"{_CACHE}debug_get_kv": _debug_get_kv,
}
for _name, _function in FUNCTIONS.items():
    registry.register_func(_name, _function, override=True)

__all__ = ["FUNCTIONS", "INLINE", "NONE", "NORMAL", "PagedKVCache", "frequencies", "rotated"]
