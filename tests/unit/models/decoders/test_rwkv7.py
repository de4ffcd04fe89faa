"""RWKV-7 against the equations of its paper, position by position in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow.models.decoders.rwkv7 import RWKV7, RWKV7Config
from tallow.nn.generalized_delta import generalized_delta_rule

SIZES = {"vocab_size": 29, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "head_dim": 6}
SIZES |= {"decay_low_rank_dim": 5, "a_low_rank_dim": 4, "v_low_rank_dim": 3, "gate_low_rank_dim": 7}


def small() -> RWKV7:
    """Return a model of which all parameters affect the output."""
    tl.manual_seed(0)
    model = RWKV7(RWKV7Config(**SIZES, initializer_range=0.3)).eval()
    rng = np.random.default_rng(0)
    with tl.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1 or ".x_" in name or name.endswith("r_k"):
                parameter.add_(tl.tensor(rng.normal(0, 0.3, parameter.shape).astype(np.float32)))
    return model


def norm(x: Any, weights: dict[str, Any], name: str, groups: int = 1, eps: float = 1e-5) -> Any:
    parts = x.reshape(groups, -1)
    centred = parts - parts.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return normed.reshape(x.shape) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def reference(weights: dict[str, Any], tokens: list[int]) -> Any:
    """Return the logits (T, V) of a text, by section 4 and appendix of arXiv:2503.14456."""
    heads, width = SIZES["hidden_size"] // SIZES["head_dim"], SIZES["hidden_size"]
    layers = range(SIZES["num_hidden_layers"])
    states = [np.zeros((heads, SIZES["head_dim"], SIZES["head_dim"])) for _ in layers]  # (values, keys), as the paper
    last_mix, last_ffn = ([np.zeros(width) for _ in layers] for _ in range(2))
    logits = []
    for token in tokens:
        x = norm(weights["model.embeddings.weight"][token], weights, "model.layers.0.pre_norm")
        for layer in layers:
            at = f"model.layers.{layer}."

            def of(name: str, at: str = at) -> Any:
                return weights[f"{at}attn.{name}"]

            def low(name: str, y: Any, middle: Any = lambda y: y, of: Any = of) -> Any:
                found = of(f"{name}_lora.lora.2.weight") @ middle(of(f"{name}_lora.lora.0.weight") @ y)
                return found if name == "g" else found + of(f"{name}_lora.lora.2.bias")

            y = norm(x, weights, f"{at}attn_norm")
            mixed = {mix: y + (last_mix[layer] - y) * of(f"x_{mix}").reshape(-1) for mix in "rwkvag"}
            last_mix[layer] = y
            r, k, v = (of(f"{name}_proj.weight") @ mixed[name] for name in "rkv")
            first = v if layer == 0 else first  # noqa: F821 - of layer 0
            if layer:
                v = v + (first - v) * sigmoid(low("v", mixed["v"]))
            # w = exp(-exp(-1/2 - softplus(-d)))
            decay = np.exp(-np.exp(-0.5 - np.log1p(np.exp(-low("w", mixed["w"], np.tanh)))))
            rate, gate = sigmoid(low("a", mixed["a"])), low("g", mixed["g"], sigmoid)
            removed = (k * of("k_k")).reshape(heads, -1)
            removed /= np.linalg.norm(removed, axis=-1, keepdims=True)
            k = k * (1 + (rate - 1) * of("k_a"))
            outputs = []
            for h in range(heads):
                part = slice(h * SIZES["head_dim"], (h + 1) * SIZES["head_dim"])
                transition = np.diag(decay[part]) - np.outer(removed[h], rate[part] * removed[h])
                states[layer][h] = states[layer][h] @ transition + np.outer(v[part], k[part])
                outputs.append(states[layer][h] @ r[part])
            y = norm(np.concatenate(outputs), weights, f"{at}attn.g_norm", heads, SIZES["head_dim"] * 1e-5)
            own = ((r * k).reshape(heads, -1) * of("r_k")).sum(-1, keepdims=True) * v.reshape(heads, -1)
            x = x + of("o_proj.weight") @ ((y + own.reshape(-1)) * gate)
            y = norm(x, weights, f"{at}ffn_norm")
            key = weights[f"{at}ffn.key.weight"] @ (y + (last_ffn[layer] - y) * weights[f"{at}ffn.x_k"])
            last_ffn[layer] = y
            x = x + weights[f"{at}ffn.value.weight"] @ np.maximum(key, 0) ** 2
        logits.append(weights["lm_head.weight"] @ norm(x, weights, "model.norm"))
    return np.array(logits)


def test_logits_are_those_of_the_papers_equations() -> None:
    model = small()
    weights = {name: tensor.numpy().astype(np.float64) for name, tensor in model.state_dict().items()}
    tokens = np.random.default_rng(1).integers(0, 29, 37).tolist()
    expected = reference(weights, tokens)
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor([tokens])).numpy()[0], expected, atol=2e-4)
    cache = model.new_cache()
    np.testing.assert_allclose(model.next_logits(tokens[:19], cache), expected[18], atol=2e-4)
    found = [model.next_logits([token], cache) for token in tokens[19:]]
    np.testing.assert_allclose(found, expected[19:], atol=2e-4)


def test_older_files_have_the_shares_as_one_tensor() -> None:
    model = small()
    state = model.state_dict()
    shares = [state.pop(f"model.layers.1.attn.x_{mix}") for mix in "rwkvag"]
    state["model.layers.1.attn.x_x"] = tl.cat(shares).flatten(1)
    found = model.config.separated(state)
    assert found.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(found[name].numpy(), tensor.numpy())


def test_gradients_of_the_rule() -> None:
    rng = np.random.default_rng(0)
    shapes = [(1, 2, 20, 3), (1, 2, 20, 3), (1, 2, 20, 3), (1, 2, 20, 4), (1, 2, 20, 3), (1, 2, 20, 3), (1, 2, 3, 4)]
    arrays = [rng.normal(0, 0.4, shape) for shape in shapes]
    arrays[1] = -0.6 * sigmoid(arrays[1])
    directions = [rng.normal(size=shape) for shape in shapes]

    def outputs(shift: float) -> Any:
        moved = [tl.tensor(x + shift * d, requires_grad=True) for x, d in zip(arrays, directions, strict=True)]
        return moved, sum((each**2).sum() for each in generalized_delta_rule(*moved))

    operands, total = outputs(0.0)
    total.backward()
    slope = sum((x.grad.numpy() * d).sum() for x, d in zip(operands, directions, strict=True))
    difference = (outputs(1e-5)[1].item() - outputs(-1e-5)[1].item()) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=1e-6)
