"""Recurrent layers of ONNX: against its reference evaluator, which goes forwards only."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.relax.frontend.onnx_running import (
    built, check, model_of, one, same, uniform,
)

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
T, B, I, H = 4, 2, 3, 5


def weights(name, ways=1):
    g = GATES[name]
    return uniform(ways, g * H, I), uniform(ways, g * H, H), uniform(ways, 2 * g * H)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", GATES)
def test_forwards(name, bias):
    w, r, b = weights(name)
    outputs = ["y", "h", "c"][:3 if name == "LSTM" else 2]
    attrs = {"linear_before_reset": int(bias)} if name == "GRU" else {}
    inputs = [uniform(T, B, I), w, r, *([b] if bias else [])]
    check(*one(name, inputs, outputs=outputs, hidden_size=H, **attrs))


@pytest.mark.parametrize("name", GATES)
def test_states_and_peepholes(name):
    w, r, b = weights(name)
    inputs = [uniform(T, B, I), w, r, b, None, uniform(1, B, H)]
    if name == "LSTM":
        inputs += [uniform(1, B, H), uniform(1, 3 * H)]
    check(*one(name, inputs, outputs=["y", "h"], hidden_size=H))


def test_the_batch_first():
    w, r, b = weights("LSTM")
    check(*one("LSTM", [uniform(B, T, I), w, r, b], outputs=["y", "h"], hidden_size=H, layout=1))


@pytest.mark.parametrize("name", GATES)
def test_both_directions_are_each_of_them(name):
    """The second is the first over the turned sequence, turned back."""
    w, r, b = weights(name, 2)
    x = uniform(T, B, I)
    both, both_feeds = one(name, [x, w, r, b], outputs=["y", "h"], hidden_size=H,
                           direction="bidirectional")
    got = built(both)(both_feeds)
    parts = []
    for way in (0, 1):
        own = [v[way:way + 1] for v in (w, r, b)]
        model, feeds = one(name, [x[::-1].copy() if way else x, *own], outputs=["y", "h"],
                           hidden_size=H)
        y, h = built(model)(feeds)
        parts.append((y[::-1] if way else y, h))
    same(got, [np.concatenate([p[k] for p in parts], 1 if k == 0 else 0) for k in (0, 1)])


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_shorter_sequences_end_before(direction):
    w, r, b = weights("GRU")
    x, lengths = uniform(T, B, I), np.array([4, 2], "int32")
    model, feeds = one("GRU", [x, w, r, b, lengths], outputs=["y", "h"], hidden_size=H,
                       direction=direction)
    y, h = built(model)(feeds)
    short, short_feeds = one("GRU", [x[:2], w, r, b], outputs=["y", "h"], hidden_size=H,
                             direction=direction)
    y2, h2 = built(short)(short_feeds)
    same([y[:2, :, 1], h[:, 1]], [y2[:, :, 1], h2[:, 1]])
    assert not y[2:, :, 1].any()


def test_other_activations_and_a_limit():
    w, r, b = weights("RNN")
    x = uniform(2, B, I) * 3
    model, feeds = one("RNN", [x, w, r, b], outputs=["y"], hidden_size=H, clip=0.5,
                       activations=["HardSigmoid"], activation_alpha=[0.3], activation_beta=[0.4])
    h, want = np.zeros((B, H), "float32"), []
    for step in x:
        inside = step @ w[0].T + h @ r[0].T + b[0, :H] + b[0, H:]
        h = np.clip(0.3 * np.clip(inside, -0.5, 0.5) + 0.4, 0, 1)
        want.append(h[None])
    same(built(model)(feeds), [np.stack(want).astype("float32")])
    model, feeds = one("RNN", [x, w, r, b], hidden_size=H, activations=["ThresholdedRelu"])
    with pytest.raises(ValueError, match="ThresholdedRelu is not translated"):
        built(model)


def test_weights_that_are_constants_or_parameters():
    w, r, b = weights("LSTM")
    x = uniform(T, B, I)
    from onnx import helper

    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=H)
    check(model_of([node], {"x": x}, ["y"], {"w": w, "r": r, "b": b}), {"x": x})
