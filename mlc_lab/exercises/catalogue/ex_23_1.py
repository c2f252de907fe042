"""23.1  Say how large a cache of keys and values is, and what a step has to read."""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row

MIB = 1 << 20


def truth(v: Values) -> dict[str, int]:
    """What is asked for."""
    token = 2 * v.layers * v.width // v.group * v.size
    text, weights = token * v.tokens // MIB, v.weights
    return {"token": token, "text": text, "most": (v.memory * 1024 - weights) // text,
            "read": weights + text, "together": weights + v.texts * text}


def draw(rng: random.Random) -> dict[str, int]:
    """A model, the length of its texts, and the memory of a machine."""
    layers, width, size = rng.choice([16, 24, 32]), rng.choice([1024, 2048]), rng.choice([2, 4])
    group, tokens = rng.choice([2, 4]), rng.choice([1024, 2048, 4096])
    weights = 12 * width * width * layers * size // MIB
    text = 2 * layers * width // group * size * tokens // MIB
    memory = -(-(weights + rng.randint(6, 20) * text + text // 2) // 1024)
    return {"layers": layers, "width": width, "size": size, "bits": 8 * size, "group": group,
            "tokens": tokens, "weights": weights, "memory": memory,
            "texts": rng.choice([2, 3, 4])}


EXERCISE = Exercise(
    id="23.1",
    title="The cache of keys and values",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
A language model has {layers} layers of width {width}, and all its numbers have {bits} bits. Its
parameters take {weights} MiB. For each token that was written, each layer keeps a key and a value.
Here {group} heads of queries share one head of keys and values, so a key has {width} / {group}
numbers, and so has a value.

A text has {tokens} tokens. The machine has {memory} GiB of memory, for parameters and caches alone.
(1 MiB is 1024 * 1024 bytes, 1 GiB is 1024 MiB.)""",
    draw=draw,
    fields=lambda v: [
        Field("token", "Bytes in the cache for one token"),
        Field("text", f"MiB in the cache for a text of {v.tokens} tokens"),
        Field("most", "Texts of this length for whose caches there is room"),
        Field("read", "MiB that a step reads which writes one token behind such a text"),
        Field("together", f"MiB that a step reads which writes one token behind each of {v.texts} "
                          "such texts"),
    ],
    checks=lambda v: [
        row("prediction", 1, "a token", field="token", equals=lambda: truth(v)["token"],
            says={truth(v)["token"] // v.size: "these are numbers, not bytes",
                  truth(v)["token"] * v.group: f"{v.group} heads share one key and one value",
                  truth(v)["token"] // v.layers: "each layer keeps its own",
                  truth(v)["token"] // 2: "there is a key and a value" if v.size > 2 else
                                          "there is a key and a value, of numbers of 2 bytes"}),
        row("prediction", 1, "a text", field="text", equals=lambda: truth(v)["text"]),
        row("prediction", 1, "texts for which there is room", field="most",
            equals=lambda: truth(v)["most"],
            says={truth(v)["most"] + 1: "a part of a cache is no use",
                  v.memory * 1024 // truth(v)["text"]: "the parameters take memory too"}),
        row("prediction", 1, "what a step reads", field="read", equals=lambda: truth(v)["read"],
            says={v.weights: "the keys and values of all tokens before are read too",
                  truth(v)["text"]: "each parameter is read too, once"}),
        row("prediction", 2, "what a step of several texts reads", field="together",
            equals=lambda: truth(v)["together"],
            says={v.texts * truth(v)["read"]:
                      "each parameter is read once for all texts of a step; that is the gain"}),
    ],
    hints=(
        "A key and a value, in each layer, of {width} / {group} numbers of {bits} bits.",
        "A step multiplies one row with each matrix of parameters, so each parameter is read once, "
        "and its queries meet each key and value that is kept.",
        "Bytes of a token: 2 * {layers} * {width} / {group} * {size}. With several texts in one "
        "step the rows of all of them meet a parameter that was read once; but each text has its "
        "own cache.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "token": truth(v)["token"] // 2}, 5, "a key and a value"),
        Wrong({**truth(v), "token": truth(v)["token"] * v.group, "read": v.weights}, 4,
              "share one key and one value"),
        Wrong({**truth(v), "together": v.texts * truth(v)["read"]}, 4, "that is the gain"),
        Wrong({**truth(v), "most": v.memory * 1024 // truth(v)["text"]}, 5,
              "the parameters take memory too"),
    ],
)
