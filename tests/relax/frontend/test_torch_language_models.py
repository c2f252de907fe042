"""Causal language models as libraries write them: rotary positions without gradients, grouped
heads, masks of packed and padded texts, caches that grow and caches of a fixed size."""

import math

import pytest

torch = pytest.importorskip("torch")

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend.torch import from_exported_program

nn, F = torch.nn, torch.nn.functional
VOCAB, WIDTH, HEADS, GROUPS, DIM, ROOM = 19, 16, 4, 2, 4, 12


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rates", 1 / 100 ** (torch.arange(0, DIM, 2) / DIM))

    @torch.no_grad()
    def forward(self, x, positions):
        with torch.autocast("cpu", enabled=False):
            angles = (self.rates[None, :, None].float().expand(len(positions), -1, 1)
                      @ positions[:, None, :].float()).transpose(1, 2)
            both = torch.cat((angles, angles), -1)
            return both.cos().to(x.dtype)[:, None], both.sin().to(x.dtype)[:, None]


def turned(x, cos, sin):
    a, b = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return x * cos + torch.cat((-b, a), -1) * sin


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH))

    def forward(self, x):
        up = x.to(torch.float32)
        return self.weight * (up * torch.rsqrt(up.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.q, self.o = nn.Linear(WIDTH, HEADS * DIM, bias), nn.Linear(HEADS * DIM, WIDTH, False)
        self.k, self.v = (nn.Linear(WIDTH, GROUPS * DIM, bias) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, 24, False) for _ in range(2))
        self.down = nn.Linear(24, WIDTH, False)
        self.before, self.after = Norm(), Norm()

    def forward(self, x, cos, sin, mask, store):
        y = self.before(x)
        q, k, v = (f(y).view(*y.shape[:-1], -1, DIM).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        k, v = store(turned(k, cos, sin), v)
        y = F.scaled_dot_product_attention(turned(q, cos, sin), k, v, attn_mask=mask,
                                           enable_gqa=True, scale=DIM**-0.5)
        x = x + self.o(y.transpose(1, 2).reshape(*x.shape[:-1], -1).contiguous())
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Language(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.embed, self.rotary = nn.Embedding(VOCAB, WIDTH, padding_idx=0), Rotary()
        self.layers = nn.ModuleList(Layer(bias) for _ in range(2))
        self.norm = Norm()

    def run(self, ids, positions, mask, stores):
        x = self.embed(ids) * math.sqrt(WIDTH)
        cos, sin = self.rotary(x, positions)
        for layer, store in zip(self.layers, stores):
            x = layer(x, cos, sin, mask, store)
        scores = F.linear(self.norm(x), self.embed.weight)
        return 5.0 * torch.tanh(scores / 5.0)


def kept(k, v):
    return k, v


class Whole(Language):
    """All tokens at once, each looking at those before it."""

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        mask = (places[None] <= places[:, None])[None, None]
        return self.run(ids, places[None], mask, [kept] * 2)


class Packed(Language):
    """Several texts in a row: where positions begin again, another text begins."""

    def forward(self, ids, positions):
        steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
        texts = (steps != 1).cumsum(-1)
        places = torch.arange(ids.shape[1])
        same = texts[:, None, :, None] == texts[:, None, None, :]
        mask = same & (places[None] <= places[:, None]) & (places[None] > places[:, None] - 4)
        return self.run(ids, positions, mask, [kept] * 2)


class Padded(Language):
    """Texts of several lengths, filled up in front: there a query looks at nothing."""

    def forward(self, ids, there):
        positions = (there.long().cumsum(-1) - 1).masked_fill(there == 0, 1)
        n = ids.shape[1]
        mask = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)
        mask = mask[None, None].expand(ids.shape[0], 1, -1, -1).clone()
        hidden = (mask + there[:, None, None, :].float()) == 0
        mask = mask.masked_fill(hidden, -math.inf)
        return self.run(ids, positions, mask, [kept] * 2)


class Growing(Language):
    """One token more, with keys and values of those before it; gives them with its own."""

    def forward(self, ids, past):
        held = []

        def store(layer):
            def put(k, v):
                held.append(tuple(torch.cat(pair, -2) for pair in zip(past[layer], (k, v))))
                return held[-1]

            return put

        positions = past[0][0].shape[-2] + torch.arange(ids.shape[1])
        return self.run(ids, positions[None], None, [store(0), store(1)]), held


class Fixed(Language):
    """Keys and values in buffers of a fixed size, written at the place of the token."""

    def __init__(self):
        super().__init__()
        for name in ("k0", "v0", "k1", "v1"):
            self.register_buffer(name, torch.zeros(1, GROUPS, ROOM, DIM))

    def forward(self, ids, place):
        def store(layer):
            def put(k, v):
                for name, new in ((f"k{layer}", k), (f"v{layer}", v)):
                    getattr(self, name).index_copy_(2, place, new)
                return getattr(self, f"k{layer}"), getattr(self, f"v{layer}")

            return put

        mask = torch.arange(ROOM)[None] <= place[:, None]
        return self.run(ids, place[None], mask[None, None], [store(0), store(1)])


def tokens(rows, count):
    return torch.randint(1, VOCAB, (rows, count))


def padded(count):
    there = torch.ones(2, count, dtype=torch.int64)
    there[0, :2] = 0
    return tokens(2, count), there


def packed(count):
    positions = torch.cat([torch.arange(3), torch.arange(count - 3)])[None]
    return tokens(1, count), positions


def growing(count):
    return tokens(1, 1), [(torch.randn(1, GROUPS, count, DIM), torch.randn(1, GROUPS, count, DIM))
                          for _ in range(2)]


N = torch.export.Dim("n", min=4, max=31)
MODELS = {
    "whole": (Whole, lambda n: (tokens(1, n),), ({1: N},)),
    "packed": (Packed, packed, ({1: N}, {1: N})),
    "padded": (Padded, padded, ({1: N}, {1: N})),
    "growing": (Growing, growing, ({}, [({2: N}, {2: N})] * 2)),
}


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def machine(exported):
    vm = relax.VirtualMachine(relax.build(from_exported_program(exported), "llvm"), tvm.cpu())

    def run(*args):
        out = vm["main"](*(tvm.nd.array(a.numpy()) for a in leaves(args)))
        return [torch.from_numpy(o.numpy()) for o in ([out] if hasattr(out, "numpy") else out)]

    return run


def agree(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_language_model_of_any_length(name):
    kind, inputs, dynamic = MODELS[name]
    torch.manual_seed(3)
    model = kind().eval()
    run = machine(torch.export.export(model, inputs(6), dynamic_shapes=dynamic))
    with torch.no_grad():
        for length in (6, 9, 4):
            args = inputs(length)
            agree(run(*args), leaves(model(*args)))


def test_a_cache_of_a_fixed_size_is_given_back():
    """Buffers that the model changed come after its result."""
    torch.manual_seed(3)
    model = Fixed().eval()
    args = tokens(1, 3), torch.tensor([2, 3, 4])
    run = machine(torch.export.export(model, args))
    got = run(*args)
    with torch.no_grad():
        want = [model(*args), model.k0, model.v0, model.k1, model.v1]
    agree(got, want)


class Mixed(nn.Module):
    """A product in bfloat16, and a part of it that is not."""

    def forward(self, x):
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            with torch.autocast("cpu", enabled=False):
                z = x @ x
        return y * 2, z


def test_products_in_half_precision_where_torch_casts():
    torch.manual_seed(3)
    x = torch.randn(3, 3)
    mod = from_exported_program(torch.export.export(Mixed(), (x,)))
    out = mod["main"].struct_info.ret.fields
    assert [f.dtype for f in out] == ["bfloat16", "float32"]
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    torch.testing.assert_close(torch.from_numpy(vm["main"](tvm.nd.array(x.numpy()))[1].numpy()),
                               x @ x)


class Windows(nn.Module):
    """Attention within windows that are shifted over the edges of the image."""

    def __init__(self, shift, size=4):
        super().__init__()
        self.shift, self.size = shift, size
        self.qkv = nn.Linear(8, 24)
        self.bias = nn.Parameter(torch.randn(1, 2, size * size, size * size))

    def forward(self, x):
        s, shift = self.size, self.shift
        b, h, w, c = x.shape
        x = F.pad(x, (0, 0, 0, -w % s, 0, -h % s))
        _, high, wide, _ = x.shape
        x = torch.roll(x, (-shift, -shift), (1, 2))
        parts = x.view(b, high // s, s, wide // s, s, c).permute(0, 1, 3, 2, 4, 5)
        parts = parts.reshape(-1, s * s, c)
        q, k, v = self.qkv(parts).reshape(-1, s * s, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        scores = (q * (c // 2)**-0.5) @ k.transpose(-2, -1) + self.bias
        mask = x.new_zeros((high, wide))
        count = 0
        for rows in ((0, -s), (-s, -shift), (-shift, None)):
            for columns in ((0, -s), (-s, -shift), (-shift, None)):
                mask[rows[0]:rows[1], columns[0]:columns[1]] = count
                count += 1
        mask = mask.view(high // s, s, wide // s, s).permute(0, 2, 1, 3).reshape(-1, s * s)
        away = mask.unsqueeze(1) - mask.unsqueeze(2)
        away = away.masked_fill(away != 0, -100.0).masked_fill(away == 0, 0.0)
        scores = scores.view(b, len(away), 2, s * s, s * s) + away.unsqueeze(1).unsqueeze(0)
        out = scores.softmax(-1).view(-1, 2, s * s, s * s) @ v
        out = out.transpose(1, 2).reshape(b, high // s, wide // s, s, s, c)
        out = out.permute(0, 1, 3, 2, 4, 5).reshape(b, high, wide, c)
        return torch.roll(out, (shift, shift), (1, 2))[:, :h, :w].contiguous()


@pytest.mark.parametrize("size", [8, 10])
@pytest.mark.parametrize("shift", [1, 2])
def test_attention_in_shifted_windows(shift, size):
    torch.manual_seed(3)
    model, image = Windows(shift).eval(), torch.randn(2, size, size, 8)
    with torch.no_grad():
        agree(machine(torch.export.export(model, (image,)))(image), [model(image)])


class Buffered(nn.Module):
    """Attention with a mask cut from a table of all positions, as GPT-2 has it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(16, 16, dtype=torch.bool).tril())

    def forward(self, q, k, v, past_k, past_v):
        k, v = torch.cat((past_k, k), -2), torch.cat((past_v, v), -2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(v.shape[-1])
        new, whole = q.shape[-2], k.shape[-2]
        scores = torch.where(self.table[whole - new:whole, :whole], scores, -1e9)
        return torch.softmax(scores, -1) @ v


def test_a_mask_that_is_cut_from_a_table():
    """Torch counts on the table to be large enough, and a run checks it."""
    def case(new, past):
        return [torch.rand(1, 2, n, 4) for n in (new, new, new, past, past)]

    free = {2: torch.export.Dim.AUTO}
    mod = from_exported_program(torch.export.export(Buffered(), tuple(case(3, 5)),
                                                    dynamic_shapes=(free,) * 5))
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for args in (case(3, 5), case(2, 9), case(6, 1)):
        got = vm["main"](*(tvm.nd.array(a.numpy()) for a in args))
        got = got.numpy() if hasattr(got, "numpy") else got[0].numpy()
        torch.testing.assert_close(torch.from_numpy(got), Buffered()(*args))
    with pytest.raises(ValueError):
        vm["main"](*(tvm.nd.array(a.numpy()) for a in case(9, 12)))
