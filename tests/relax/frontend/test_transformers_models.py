"""Causal language models of transformers itself, with small random weights: all tokens at once and
with a cache of keys and values, texts of any number and length, padded ones among them."""

import warnings

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, StaticCache

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend.torch import from_exported_program

VOCAB, HEADS, DIM, LAYERS, ROOM = 31, 4, 4, 2, 12
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": LAYERS,
         "num_attention_heads": HEADS, "num_key_value_heads": 2, "vocab_size": VOCAB,
         "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
MODELS = {
    "gpt2": {"n_layer": LAYERS, "n_embd": 16, "n_head": HEADS, "vocab_size": VOCAB,
             "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2},
    "llama": SIZES, "qwen2": SIZES, "qwen3": SIZES | {"head_dim": DIM},
    "mistral": SIZES | {"sliding_window": 4}, "gemma": SIZES | {"head_dim": DIM},
    "gemma2": SIZES | {"head_dim": DIM, "sliding_window": 4},
    "gemma3_text": SIZES | {"head_dim": DIM, "sliding_window": 4}, "phi": SIZES, "phi3": SIZES}
#: torch's attention, or products and a softmax; gemma2 limits its scores by tanh between these
WAYS = ("sdpa", "eager")
FREE = torch.export.Dim.AUTO


class Whole(torch.nn.Module):
    """All tokens at once."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, there):
        return self.model(input_ids=ids, attention_mask=there, use_cache=False).logits


class Growing(Whole):
    """Some tokens more; keys and values of those before them come in, and go out with theirs."""

    def forward(self, ids, there, past):
        cache = DynamicCache()
        for k, (keys, values) in enumerate(past):
            cache.update(keys, values, k)
        out = self.model(ids, attention_mask=there, past_key_values=cache, use_cache=True)
        return out.logits, [(one.keys, one.values) for one in cache.layers]


class Fixed(Whole):
    """Keys and values in buffers of a fixed size, into which the model writes at `place`."""

    def forward(self, ids, place, buffers):
        cache = StaticCache(self.model.config, max_cache_len=ROOM)
        for layer, (keys, values) in zip(cache.layers, buffers):
            layer.lazy_initialization(keys, values)
            layer.keys.copy_(keys)
            layer.values.copy_(values)
            layer.cumulative_length.add_(place)
        places = place + torch.arange(ids.shape[1])
        out = self.model(ids, position_ids=places[None], past_key_values=cache, use_cache=True)
        return out.logits, [(one.keys, one.values) for one in cache.layers]


def small(kind, way):
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = AutoConfig.for_model(kind, **MODELS[kind])
        return AutoModelForCausalLM.from_config(config, attn_implementation=way).eval()


def tokens(rows, count):
    return torch.randint(3, VOCAB, (rows, count))


def texts(rows, count, empty=0):
    """So many texts, of which the first begins after `empty` places."""
    there = torch.ones(rows, count, dtype=torch.int64)
    there[0, :empty] = 0
    return tokens(rows, count), there


def continued(model, rows, count, past, empty=0):
    """Tokens after `past` others, of which the first `empty` of the first text are none."""
    groups = getattr(model.config, "num_key_value_heads", HEADS)
    held = [tuple(torch.randn(rows, groups, past, DIM) for _ in range(2)) for _ in range(LAYERS)]
    return tokens(rows, count), texts(rows, count + past, empty)[1], held


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def agree(module, cases, sizes):
    """Import a module whose sizes are free, and compare runs with torch."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        exported = torch.export.export(module, cases[0], dynamic_shapes=sizes, strict=False)
        wanted = [leaves(module(*args)) for args in cases]
    vm = relax.VirtualMachine(relax.build(from_exported_program(exported), "llvm"), tvm.cpu())
    for args, want in zip(cases, wanted):
        out = vm["main"](*(tvm.nd.array(a.numpy()) for a in leaves(args)))
        got = [out] if hasattr(out, "numpy") else list(out)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            torch.testing.assert_close(torch.from_numpy(g.numpy()), w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", MODELS)
def test_texts_of_any_number_and_length(kind):
    """The last of them has a text of padding only, whose queries look at nothing."""
    free = {0: FREE, 1: FREE}
    agree(Whole(small(kind, WAYS[kind == "gemma2"])),
          [texts(2, 6, 2), texts(3, 9), texts(1, 2), texts(1, 17, 3), texts(2, 5, 5)], (free, free))


@pytest.mark.parametrize("kind", MODELS)
def test_keys_and_values_of_any_number_of_tokens(kind):
    model, free = small(kind, WAYS[kind not in ("gpt2", "llama", "qwen3")]), {0: FREE, 1: FREE}
    held = [({0: FREE, 2: FREE},) * 2] * LAYERS
    agree(Growing(model), [continued(model, 2, 3, 5, 2), continued(model, 1, 2, 7),
                           continued(model, 3, 2, 11, 4), continued(model, 2, 2, 3, 5)],
          (free, free, held))


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "gemma3_text"])
def test_buffers_of_a_fixed_size_for_keys_and_values(kind):
    """Where the window slides, they are not larger than it."""
    model = small(kind, "eager")
    groups = getattr(model.config, "num_key_value_heads", HEADS)
    rooms = [one.max_cache_len for one in StaticCache(model.config, max_cache_len=ROOM).layers]

    def case(place):
        held = [tuple(torch.randn(1, groups, room, DIM) for _ in range(2)) for room in rooms]
        return tokens(1, 2), torch.tensor(place), held

    agree(Fixed(model), [case(1), case(0), case(min(rooms) - 2)], None)
