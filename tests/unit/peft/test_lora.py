"""LoRA adapters: the formula, several adapters, merging, and files with the names of peft."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.quantized_blocks import random_matrix
from support.small_models import ENTRIES

import tallow as tl
from tallow import kernels, models, nn
from tallow.devices import to_host
from tallow.errors import (
    ArgumentError,
    CheckpointError,
    KernelUnavailable,
    NumericError,
    TallowWarning,
    UnsupportedError,
)
from tallow.generation import generate
from tallow.io import safetensors
from tallow.models import config as config_module
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.decoders.llama_formats import reordered
from tallow.nn.block_layers import BlockConv1D, BlockLinear
from tallow.nn.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_
from tallow.nn.transposed_linear import Conv1D
from tallow.peft import (
    LoraConfig,
    ModulesToSaveWrapper,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    set_peft_model_state_dict,
)

SIZES = {
    "vocab_size": 29,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 24,
    "initializer_range": 0.3,
}
TOKENS = [[1, 5, 18, 0, 7, 7, 11]]
RANDOM: dict[str, Any] = {"r": 3, "lora_alpha": 6, "init_lora_weights": False}  # an adapter that changes the results
Array = npt.NDArray[Any]


def llama(**changes: Any) -> Llama:
    tl.manual_seed(0)
    return Llama(LlamaConfig(**SIZES | changes)).eval()


def values(tensor: tl.Tensor) -> Array:
    return to_host(tensor.detach().array)


def logits(model: Any) -> Array:
    with tl.no_grad():
        return values(model(tl.tensor(TOKENS)))


def assert_close(a: Array, b: Array, atol: float = 2e-5) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)


def network() -> nn.Sequential:
    tl.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4, bias=False))


# ------------------------------------------------------------------------------------------------------------- formula


@pytest.mark.parametrize("use_rslora", [False, True])
def test_a_layer_computes_the_formula(use_rslora: bool) -> None:
    """y = x Wᵀ + b + alpha / r · x Aᵀ Bᵀ"""
    base = nn.Linear(6, 8)
    weight, bias = values(base.weight).copy(), values(base.bias).copy()
    model = get_peft_model(nn.Sequential(base), LoraConfig(**RANDOM, target_modules=["0"], use_rslora=use_rslora))
    state = {name: values(tensor) for name, tensor in get_peft_model_state_dict(model).items()}
    a, b = state["base_model.model.0.lora_A.weight"], state["base_model.model.0.lora_B.weight"]
    assert (a.shape, b.shape) == ((3, 6), (8, 3))
    x = tl.randn(2, 5, 6)
    scale = 6 / (np.sqrt(3) if use_rslora else 3)
    expected = values(x) @ weight.T + bias + scale * (values(x) @ a.T @ b.T)
    assert_close(values(model(x)), expected)
    assert_close(values(model.merge_and_unload()(x)), expected)


def test_rows_with_magnitudes() -> None:
    """DoRA, arXiv:2402.09353, equations 5 and 11: W' = m (W + ΔW) / ‖W + ΔW‖, and the norm has no gradient."""
    base = nn.Linear(6, 8)
    weight, bias = values(base.weight).astype(np.float64), values(base.bias).astype(np.float64)
    model = get_peft_model(nn.Sequential(base), LoraConfig(**RANDOM, target_modules=["0"], use_dora=True))
    state = {name.rpartition(".0.")[2]: tensor for name, tensor in get_peft_model_state_dict(model).items()}
    a, b = (values(state[f"lora_{part}.weight"]).astype(np.float64) for part in "AB")
    whole = weight + 2 * b @ a
    length = np.linalg.norm(whole, axis=1)
    assert_close(values(state["lora_magnitude_vector"]), length)  # nothing changes at first
    magnitude = np.linspace(0.5, 2, 8)
    state["lora_magnitude_vector"] = tl.tensor(magnitude, dtype=tl.float32)
    set_peft_model_state_dict(model, {f"base_model.model.0.{name}": tensor for name, tensor in state.items()})
    x = tl.randn(5, 6)
    model(x).sum().backward()
    gradient = next(p.grad for name, p in model.named_parameters() if "magnitude" in name)
    assert_close(values(gradient), ((whole / length[:, None]) @ values(x).T).sum(1))
    gradient = next(p.grad for name, p in model.named_parameters() if "lora_B" in name)
    assert_close(values(gradient), 2 * (magnitude / length)[:, None] * (a @ values(x).T.sum(1)))
    expected = values(x) @ (whole * (magnitude / length)[:, None]).T + bias
    assert_close(values(model(x)), expected)
    assert_close(values(model.merge_and_unload()(x)), expected)


def test_magnitudes_of_other_layers_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="use_dora with a Embedding"):
        get_peft_model(nn.Sequential(nn.Embedding(5, 4)), LoraConfig(target_modules=["0"], use_dora=True))


def test_a_new_adapter_changes_nothing_and_only_it_is_trained() -> None:
    model = llama()
    before, weights = logits(model), {name: values(each).copy() for name, each in model.state_dict().items()}
    adapted = get_peft_model(model, LoraConfig(r=4, lora_alpha=64))
    np.testing.assert_array_equal(logits(adapted), before)
    trained = [name for name, each in adapted.named_parameters() if each.requires_grad]
    assert trained == [
        f"base_model.model.model.layers.{i}.self_attn.{layer}.lora_{part}.default.weight"
        for i in range(2)
        for layer in ("q_proj", "v_proj")
        for part in "AB"
    ]
    assert adapted.get_nb_trainable_parameters() == (
        2 * (4 * 32 + 32 * 4 + 4 * 32 + 16 * 4),
        sum(each.numel() for each in adapted.parameters()),
    )
    optimizer = tl.optim.AdamW(adapted.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        result = adapted(tl.tensor(TOKENS)[:, :-1])
        loss = nn.functional.cross_entropy(result.flatten(0, 1), tl.tensor(TOKENS)[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert abs(logits(adapted) - before).max() > 0.1
    base = adapted.unload()
    assert type(base) is Llama
    for name, each in base.state_dict().items():
        np.testing.assert_array_equal(values(each), weights[name])


@pytest.mark.parametrize(
    ("start", "std"), [(True, 100**-0.5 / 3**0.5), ("gaussian", 1 / 50), (False, 100**-0.5 / 3**0.5)]
)
def test_initial_values(start: bool | str, std: float) -> None:
    tl.manual_seed(0)
    model = get_peft_model(
        nn.Sequential(nn.Linear(100, 100)), LoraConfig(r=50, target_modules=["0"], init_lora_weights=start)
    )
    a, b = (values(each) for each in get_peft_model_state_dict(model).values())
    assert a.std() == pytest.approx(std, rel=0.05)
    assert b.any() == (start is False)


def test_dropout_is_of_the_adapter_alone() -> None:
    config = LoraConfig(**RANDOM, target_modules=["0"], lora_dropout=0.5)
    model = get_peft_model(nn.Sequential(nn.Linear(64, 1, bias=False)), config)
    x = tl.ones(200, 64)
    base = values(model.get_base_model()[0].base_layer(x))
    exact = values(model.eval()(x)) - base
    model.train()
    noisy = values(model(x)) - base
    assert noisy.std() > 0
    assert abs(noisy.mean() - exact.mean()) < 5 * noisy.std() / np.sqrt(200)
    assert np.ptp(exact) < 1e-5


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float64])
def test_adapters_of_half_precision_layers_are_float32(dtype: tl.dtype) -> None:
    model = get_peft_model(network().to(dtype), LoraConfig(**RANDOM, target_modules=["0", "2"]))
    own = tl.float64 if dtype is tl.float64 else tl.float32
    assert {each.dtype for each in model.parameters() if each.requires_grad} == {own}
    x = tl.randn(3, 6).to(dtype)
    y = model(x)
    assert y.dtype is dtype
    merged = model.merge_and_unload()
    assert merged[0].weight.dtype is dtype
    tolerance = {tl.float16: 0.01, tl.bfloat16: 0.05, tl.float64: 1e-6}[dtype]
    np.testing.assert_allclose(values(merged(x).float()), values(y.float()), atol=tolerance, rtol=tolerance)


def test_rows_that_are_transposed() -> None:
    model = GPT2(GPT2Config(vocab_size=29, n_positions=16, n_embd=8, n_layer=2, n_head=2, initializer_range=0.3)).eval()
    before = logits(model)
    adapted = get_peft_model(model, LoraConfig(**RANDOM))
    assert adapted.peft_config["default"].fan_in_fan_out
    state = {name: values(each) for name, each in get_peft_model_state_dict(adapted).items()}
    path = "base_model.model.transformer.h.1.attn.c_attn"
    assert state[f"{path}.lora_A.weight"].shape == (3, 8)
    assert state[f"{path}.lora_B.weight"].shape == (24, 3)
    expected = logits(adapted)
    assert abs(expected - before).max() > 0.1
    weight = values(model.transformer.h[1].attn.c_attn.base_layer.weight).copy()
    merged = adapted.merge_and_unload()
    assert_close(logits(merged), expected)
    change = values(merged.transformer.h[1].attn.c_attn.weight) - weight
    assert_close(change, 2 * (state[f"{path}.lora_B.weight"] @ state[f"{path}.lora_A.weight"]).T)


# ---------------------------------------------------------------------------------------------------- quantised layers


@pytest.mark.parametrize("config", [Int8WeightOnlyConfig(), Int4WeightOnlyConfig(group_size=32)], ids=str)
def test_adapters_of_layers_with_few_bits(config: Any) -> None:
    model = llama()
    quantize_(model, config, lambda module, name: name.endswith(("q_proj", "v_proj", "o_proj")))
    adapted = get_peft_model(model, LoraConfig(**RANDOM))
    layer = adapted.get_base_model().model.layers[0].self_attn.q_proj
    assert type(layer.base_layer) is BlockLinear
    adapted(tl.tensor(TOKENS)).sum().backward()
    for each in adapted.parameters():
        assert (each.grad is not None) == each.requires_grad
    with kernels.off():  # which round the input of a product with blocks
        expected = logits(adapted)
    merged = adapted.merge_and_unload()
    assert type(merged.model.layers[0].self_attn.q_proj) is nn.Linear
    assert type(merged.model.layers[0].self_attn.o_proj) is BlockLinear
    with kernels.off():
        assert_close(logits(merged), expected, atol=1e-4)


@pytest.mark.cpu("the blocks stay in NumPy arrays; on a GPU a file's weights are widened")
@pytest.mark.parametrize(("kind", "merged_kind"), [(BlockLinear, nn.Linear), (BlockConv1D, Conv1D)])
def test_adapters_of_blocks_of_gguf(kind: type[BlockLinear], merged_kind: type[nn.Module]) -> None:
    rng = np.random.default_rng(0)
    base = kind(random_matrix("Q8_0", 8, 64, rng, scale=0.002), nn.Parameter(tl.randn(8)))
    model = get_peft_model(nn.Sequential(base), LoraConfig(**RANDOM, target_modules=["0"]))
    assert model.get_nb_trainable_parameters() == (3 * (64 + 8), 3 * (64 + 8) + 8 * 64 + 8)
    x = tl.randn(5, 64, requires_grad=True)
    y = model(x)
    delta = model.get_base_model()[0].delta_weight("default")
    exact = values(x) @ (base.matrix.widen() + values(delta)).T + values(base.bias)
    # Compiled kernels round the input of a product with blocks to int8.
    np.testing.assert_allclose(values(y), exact, atol=0.02 * abs(exact).max())
    y.sum().backward()
    assert x.grad is not None
    assert_close(values(x.grad)[0], (base.matrix.widen() + values(delta)).sum(axis=0), atol=1e-4)
    merged = model.merge_and_unload()
    assert type(merged[0]) is merged_kind
    assert_close(values(merged(x)), exact)


# --------------------------------------------------------------------------------------------------- generated tokens


@pytest.mark.cpu("fused blocks of whole layers")
def test_fused_decoding_does_not_ignore_an_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    model = llama()
    base = list(generate(model, [1], max_tokens=16))
    adapted = get_peft_model(model, LoraConfig(**RANDOM, target_modules="all-linear"))
    answer = list(generate(adapted, [1], max_tokens=16))
    assert answer != base
    adapted.explain()
    printed = capsys.readouterr().out
    assert printed.count("q_proj is a LoraLinear, which no fused block computes") == 2
    with kernels.require_fused(), pytest.raises(KernelUnavailable, match="LoraLinear"):
        list(generate(adapted, [1], max_tokens=2))
    with adapted.disable_adapter():
        assert list(generate(adapted, [1], max_tokens=16)) == base
    merged = adapted.merge_and_unload()
    assert list(generate(merged, [1], max_tokens=16)) == answer
    merged.explain()
    assert "LoraLinear" not in capsys.readouterr().out


def test_a_cache_notices_a_new_adapter() -> None:
    model = llama()
    cache = model.new_cache(length=8)
    model.next_logits([1, 2], cache)
    get_peft_model(model, LoraConfig(**RANDOM))
    after = to_host(model.next_logits([3], cache))
    assert abs(after - to_host(llama().next_logits([1, 2, 3], llama().new_cache(length=8)))).max() > 0.01


# --------------------------------------------------------------------------------------------------- several adapters


def test_several_adapters_by_name() -> None:
    model = get_peft_model(network(), LoraConfig(**RANDOM, target_modules=["0"]), "first")
    x = tl.randn(3, 6)
    first = values(model(x))
    model.add_adapter("second", LoraConfig(**RANDOM, target_modules=["0", "2"]))
    np.testing.assert_array_equal(values(model(x)), first)
    assert [name for name, each in model.named_parameters() if each.requires_grad and "second" in name] == []
    model.set_adapter("second")
    assert (model.active_adapter, model.active_adapters) == ("second", ["second"])
    assert {name.split(".")[-2] for name, each in model.named_parameters() if each.requires_grad} == {"second"}
    second = values(model(x))
    assert abs(second - first).max() > 0.01
    with model.disable_adapter():
        base = values(model(x))
    assert_close(base, values(network()(x)))
    model.set_adapter(["first", "second"])
    both = values(model(x))
    deltas = model.get_base_model()[0]
    inner = values(deltas.base_layer(x)) + values(x) @ sum(values(deltas.delta_weight(n)).T for n in deltas.adapters)
    last = model.get_base_model()[2]
    assert_close(both, np.tanh(inner) @ (values(last.base_layer.weight) + values(last.delta_weight("second"))).T)
    model.delete_adapter("second")
    np.testing.assert_array_equal(values(model(x)), first)
    assert type(model.get_base_model()[2]) is nn.Linear
    with pytest.raises(ArgumentError, match="no adapter 'second'"):
        model.set_adapter("second")
    for name in ("first", "a.b", "../a", "", "keys"):
        with pytest.raises(ArgumentError, match=f"the name {name!r}"):
            model.add_adapter(name, LoraConfig(target_modules=["0"]))
    with pytest.raises(ArgumentError, match="has adapters already"):
        get_peft_model(model, LoraConfig(target_modules=["0"]))


def test_merging_some_adapters() -> None:
    model = get_peft_model(network(), LoraConfig(**RANDOM, target_modules=["0"]), "first")
    model.add_adapter("second", LoraConfig(**RANDOM, target_modules=["2"]))
    x = tl.randn(3, 6)
    model.set_adapter("second")
    second = values(model(x))
    model.set_adapter("first")
    assert_close(values(model.merge_and_unload(adapter_names=["second"])(x)), second)
    assert not any("lora" in name for name, _ in model.named_modules())


def test_a_merge_that_is_not_finite() -> None:
    model = get_peft_model(network(), LoraConfig(**RANDOM, target_modules=["0"]))
    with tl.no_grad():
        model.get_base_model()[0].lora_B["default"].weight[0, 0] = float("inf")
    with pytest.raises(NumericError, match="not finite"):
        model.merge_and_unload(safe_merge=True)
    assert model.active_adapters == ["default"]


def test_copies_and_pickles() -> None:
    config = LoraConfig(**RANDOM, target_modules=["0"], modules_to_save=["2"])
    model = get_peft_model(network(), config)
    x = tl.randn(3, 6)
    expected = values(model(x))
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(values(again(x)), expected)
    assert model.get_base_model()[2].in_features == 8
    with pytest.raises(AttributeError, match="nothing"):
        _ = model.nothing


# ------------------------------------------------------------------------------------------- whole modules and biases


def test_modules_that_are_trained_as_a_whole() -> None:
    config = ENTRIES["BertModel"]
    tl.manual_seed(0)
    model = models.BertForSequenceClassification(
        models.BertConfig(**{name: value for name, value in config.items() if name != "model_type"})
    ).eval()
    before = logits(model)
    adapted = get_peft_model(model, LoraConfig(r=2, task_type="SEQ_CLS"))
    assert adapted.peft_config["default"].modules_to_save == ("classifier", "score")
    assert isinstance(model.classifier, ModulesToSaveWrapper)
    parts = [f"{layer}.lora_{part}" for layer in ("query", "value") for part in "AB"]
    assert set(get_peft_model_state_dict(adapted)) == {
        f"base_model.model.{name}"
        for name in (
            *("classifier.weight", "classifier.bias"),
            *(f"bert.encoder.layer.{i}.attention.self.{part}.weight" for i in range(2) for part in parts),
        )
    }
    with tl.no_grad():
        model.classifier.weight[...] = 0
        model.classifier.bias[...] = 7
    assert model.classifier.bias.requires_grad
    np.testing.assert_array_equal(logits(adapted), np.full_like(before, 7))
    with adapted.disable_adapter():
        assert_close(logits(adapted), before)
    adapted.add_adapter("other", LoraConfig(r=2, modules_to_save=["classifier"]))
    with pytest.raises(ArgumentError, match="several active adapters replace classifier"):
        adapted.set_adapter(["default", "other"])
    adapted.set_adapter("default")
    np.testing.assert_array_equal(logits(adapted.merge_and_unload()), np.full_like(before, 7))
    assert type(model.classifier) is nn.Linear


def test_a_head_that_is_trained_as_a_whole_is_used() -> None:
    model = llama()
    adapted = get_peft_model(model, LoraConfig(r=2, modules_to_save=["lm_head"]))
    with tl.no_grad():
        model.lm_head.weight[...] = 0
    assert not logits(adapted).any()
    assert list(generate(adapted, [1], max_tokens=3)) == [0, 0, 0]


def test_a_module_inside_one_that_is_trained_as_a_whole() -> None:
    model = get_peft_model(llama(), LoraConfig(r=2, modules_to_save=["mlp", "up_proj"]))
    parts = {name.split("mlp.")[1] for name in get_peft_model_state_dict(model) if "mlp" in name}
    assert parts == {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}


def test_an_adapter_of_the_head() -> None:
    model = llama()
    expected = logits(model)
    adapted = get_peft_model(model, LoraConfig(**RANDOM, target_modules=["lm_head"]))
    hidden = values(model.model(tl.tensor(TOKENS)))
    assert_close(logits(adapted), expected + hidden @ values(model.lm_head.delta_weight("default")).T)
    answer = list(generate(adapted, [1], max_tokens=8))
    assert list(generate(adapted.merge_and_unload(), [1], max_tokens=8)) == answer


@pytest.mark.parametrize("bias", ["all", "lora_only"])
def test_trained_biases(bias: str, tmp_path: Path) -> None:
    model = get_peft_model(
        nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 4)), LoraConfig(target_modules=["0"], bias=bias)
    )
    names = {"0.base_layer.bias", "1.bias", "2.bias"} if bias == "all" else {"0.base_layer.bias"}
    parts = {f"base_model.model.0.lora_{part}.weight" for part in "AB"}
    assert set(get_peft_model_state_dict(model)) == {f"base_model.model.{name}" for name in names} | parts
    with tl.no_grad():
        model.get_base_model()[0].base_layer.bias[...] = 3
    with pytest.raises(UnsupportedError, match="has changed its biases"), model.disable_adapter():
        pass
    with pytest.raises(UnsupportedError, match="has changed its biases"):
        model.unload()
    with pytest.raises(UnsupportedError, match="several adapters with trained biases"):
        model.add_adapter("other", LoraConfig(target_modules=["0"]))
    model.save_pretrained(tmp_path)
    state = {
        name.replace(".base_layer", ""): each for name, each in tl.load(tmp_path / "adapter_model.safetensors").items()
    }
    other = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 4))
    safetensors.save(state, tmp_path / "adapter_model.safetensors")  # as older versions of peft name them
    PeftModel.from_pretrained(other, tmp_path)
    np.testing.assert_array_equal(values(other[0].base_layer.bias), np.full(8, 3))


# -------------------------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "0.q 0.v 1.q 1.v"),
        ({"target_modules": ["o_proj"]}, "0.o 1.o"),
        ({"target_modules": ["1.self_attn.o_proj", "proj"]}, "1.o"),
        ({"target_modules": r".*\.0\..*(q|k)_proj"}, "0.q 0.k"),
        ({"target_modules": "all-linear", "exclude_modules": r".*mlp.*"}, "0.q 0.k 0.v 0.o 1.q 1.k 1.v 1.o"),
        ({"exclude_modules": ["0.self_attn.q_proj"]}, "0.v 1.q 1.v"),
        ({"layers_to_transform": 1}, "1.q 1.v"),
        ({"layers_to_transform": [0], "layers_pattern": "layers"}, "0.q 0.v"),
        ({"modules_to_save": ["v_proj"]}, "0.q 1.q"),
    ],
)
def test_targets(settings: dict[str, Any], expected: str) -> None:
    model = get_peft_model(llama(), LoraConfig(r=2, **settings))
    found = {name.split(".lora_")[0] for name in get_peft_model_state_dict(model) if ".lora_" in name}
    assert found == {
        f"base_model.model.model.layers.{i}.self_attn.{name}_proj"
        for i, name in (e.split(".") for e in expected.split())
    }


@pytest.mark.parametrize(
    ("name", "layers"),
    {
        **dict.fromkeys(("BertModel", "RobertaModel"), "query value"),
        **dict.fromkeys(("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Whisper"), "q_proj v_proj"),
        "DistilBertModel": "q_lin v_lin",
        "Falcon": "query_key_value",
        "GPT2": "c_attn",
        "Phi3": "qkv_proj",
        "T5ForConditionalGeneration": "q v",
        **dict.fromkeys(("BartForConditionalGeneration", "MarianMTModel"), "q_proj v_proj"),
    }.items(),
)
def test_default_targets(name: str, layers: str) -> None:
    model_class = getattr(models, name)
    model = model_class(model_class.config_class.from_entries(ENTRIES[name], "config.json"))
    adapted = get_peft_model(model, LoraConfig(r=1))
    assert {path.split(".lora_")[0].split(".")[-1] for path in get_peft_model_state_dict(adapted)} == set(
        layers.split()
    )


def test_other_ranks_by_pattern() -> None:
    settings: dict[str, Any] = {"rank_pattern": {"q_proj": 1, r"layers\.1\..*": 5}, "alpha_pattern": {"v_proj": 3}}
    model = get_peft_model(llama(), LoraConfig(r=2, lora_alpha=8, **settings))
    shapes = {name: tuple(each.shape) for name, each in get_peft_model_state_dict(model).items()}
    layers = [f"base_model.model.model.layers.{i}.self_attn" for i in range(2)]
    assert [shapes[f"{path}.{part}.lora_A.weight"][0] for path in layers for part in ("q_proj", "v_proj")] == [
        1,
        2,
        1,
        5,
    ]
    scales = [
        getattr(layer.self_attn, part).scaling for layer in model.model.model.layers for part in ("q_proj", "v_proj")
    ]
    assert [each["default"] for each in scales] == [8, 3 / 2, 8, 3 / 5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_modules": ["nothing"]}, "Llama has no such modules"),
        ({"target_modules": ["model.norm"]}, "model.norm is a RMSNorm"),
        ({"target_modules": ["self_attn"]}, "self_attn is a LlamaAttention"),
        ({"modules_to_save": ["nothing"]}, "modules_to_save=.'nothing',.: Llama has no such modules"),
        ({"modules_to_save": ["rotary_emb"]}, "cannot be trained as a whole"),
    ],
)
def test_targets_that_do_not_exist(settings: dict[str, Any], message: str) -> None:
    model = llama()
    with pytest.raises(ArgumentError, match=message):
        get_peft_model(model, LoraConfig(**settings))
    assert [name for name, _ in model.named_modules()] == [name for name, _ in llama().named_modules()]
    assert all(each.requires_grad for each in model.parameters())


def test_a_model_without_default_targets() -> None:
    with pytest.raises(ArgumentError, match="no default target_modules for Sequential"):
        get_peft_model(network(), LoraConfig())


@pytest.mark.parametrize(
    "settings",
    [
        {"r": 0},
        {"r": 2.0},
        {"lora_alpha": float("nan")},
        {"lora_dropout": 1.5},
        {"bias": "some"},
        {"init_lora_weights": "pissa"},
        {"target_modules": 3},
        {"target_modules": "(q"},
        {"rank_pattern": {"q_proj": "2"}},
        {"rank_pattern": {"(": 2}},
        {"layers_to_transform": ["1"]},
        {"modules_to_save": "lm_head"},
        {"task_type": "OTHER"},
    ],
    ids=str,
)
def test_invalid_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"LoraConfig: "):
        LoraConfig(**settings)


# --------------------------------------------------------------------------------------------------------------- files


def write_adapter(folder: Path, tensors: dict[str, Array], **entries: Any) -> None:
    """Write an adapter's folder as peft does: its names, and all entries that it writes."""
    folder.mkdir(exist_ok=True)
    config: dict[str, Any] = {
        **dict.fromkeys(("alora_invocation_tokens", "arrow_config", "auto_mapping", "corda_config", "eva_config")),
        **dict.fromkeys(("exclude_modules", "layer_replication", "layers_pattern", "layers_to_transform")),
        **dict.fromkeys(("megatron_config", "modules_to_save", "revision", "trainable_token_indices")),
        **dict.fromkeys(("lora_bias", "use_dora", "use_qalora", "use_rslora", "fan_in_fan_out"), False),
        **dict.fromkeys(("inference_mode", "init_lora_weights"), True),
        **{name: {} for name in ("alpha_pattern", "rank_pattern", "loftq_config")},
        "base_model_name_or_path": "a/b",
        "bias": "none",
        "lora_alpha": 4,
        "lora_dropout": 0.05,
        "megatron_core": "megatron.core",
        "peft_type": "LORA",
        "peft_version": "0.18.0",
        "qalora_group_size": 16,
        "r": 2,
        "target_modules": ["k_proj"],
        "task_type": "CAUSAL_LM",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config | entries))
    safetensors.save({name: tl.tensor(array) for name, array in tensors.items()}, folder / "adapter_model.safetensors")


def adapter_tensors(rank: int = 2) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    shapes = {"A": (rank, 32), "B": (16, rank)}
    return {
        f"base_model.model.model.layers.{i}.self_attn.k_proj.lora_{part}.weight": rng.standard_normal(shape).astype(
            "f4"
        )
        for i in range(2)
        for part, shape in shapes.items()
    }


def with_deltas(model: Llama, tensors: dict[str, Array], scale: float) -> Llama:
    """Add scale · B A to the weights of k_proj."""
    for i, layer in enumerate(model.model.layers):
        path = f"base_model.model.model.layers.{i}.self_attn.k_proj.lora_"
        delta = scale * tensors[f"{path}B.weight"] @ tensors[f"{path}A.weight"]
        with tl.no_grad():
            layer.self_attn.k_proj.weight += tl.tensor(delta)
    return model


def test_a_file_of_peft(tmp_path: Path) -> None:
    tensors = adapter_tensors()
    write_adapter(tmp_path, tensors)
    model = PeftModel.from_pretrained(llama(), tmp_path)
    assert not any(each.requires_grad for each in model.parameters())
    assert not model.training
    assert_close(logits(model), logits(with_deltas(llama(), tensors, 4 / 2)))
    model.save_pretrained(tmp_path / "copy")
    copy = tl.load(tmp_path / "copy" / "adapter_model.safetensors")
    assert copy.keys() == tensors.keys()
    for name, each in copy.items():
        np.testing.assert_array_equal(values(each), tensors[name])
    entries = json.loads((tmp_path / "copy" / "adapter_config.json").read_text())
    original = json.loads((tmp_path / "adapter_config.json").read_text())
    assert entries == {name: original[name] for name in entries}
    trainable = PeftModel.from_pretrained(llama(), tmp_path, is_trainable=True)
    assert trainable.get_nb_trainable_parameters()[0] == sum(each.size for each in tensors.values())


def test_rows_of_interleaved_models(tmp_path: Path) -> None:
    """GGUF and llama2.c files of Llama order the rows of q_proj and k_proj otherwise; an adapter's file does not."""
    tensors = adapter_tensors()
    write_adapter(tmp_path, tensors)
    interleaved = llama(rope_interleaved=True)
    for layer in interleaved.model.layers:
        for each in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            each.weight = nn.Parameter(tl.tensor(reordered(values(each.weight), 8, to_interleaved=True)))
    model = PeftModel.from_pretrained(interleaved, tmp_path)
    assert_close(logits(model), logits(with_deltas(llama(), tensors, 4 / 2)))
    model.save_pretrained(tmp_path)
    for name, each in tl.load(tmp_path / "adapter_model.safetensors").items():
        np.testing.assert_array_equal(values(each), tensors[name])


def test_folders_of_several_adapters(tmp_path: Path) -> None:
    model = get_peft_model(network(), LoraConfig(**RANDOM, target_modules=["0"]))
    model.add_adapter("other", LoraConfig(**RANDOM, target_modules=["2"]))
    model.save_pretrained(tmp_path)
    files = ["adapter_config.json", "adapter_model.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*files, "other"]
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == files
    again = PeftModel.from_pretrained(network(), tmp_path)
    again.load_adapter(tmp_path / "other", "other")
    x = tl.randn(2, 6)
    for name in ("default", "other"):
        model.set_adapter(name)
        again.set_adapter(name)
        np.testing.assert_array_equal(values(again(x)), values(model(x)))


def test_values_from_a_state_dict() -> None:
    source = get_peft_model(network(), LoraConfig(**RANDOM, target_modules=["0"]))
    target = get_peft_model(network(), LoraConfig(**RANDOM, target_modules=["0"]), "mine")
    parameters = list(target.parameters())
    set_peft_model_state_dict(target, get_peft_model_state_dict(source), "mine")
    x = tl.randn(2, 6)
    np.testing.assert_array_equal(values(target(x)), values(source(x)))
    assert all(a is b for a, b in zip(parameters, target.parameters(), strict=True))
    with pytest.raises(ArgumentError, match="no adapter 'default'"):
        get_peft_model_state_dict(target)
    with pytest.raises(ArgumentError, match="a Sequential has no adapters"):
        get_peft_model_state_dict(network())


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"use_dora": True}, "missing      model.layers.0.self_attn.k_proj.lora_magnitude_vector"),
        ({"lora_bias": True, "layer_replication": [[0, 1]]}, "layer_replication is"),
        ({"target_parameters": ["mlp.experts"]}, "target_parameters is"),
        ({"peft_type": "IA3"}, "peft_type is 'IA3'"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights='pissa'"),
        ({"r": 1 << 40}, "r=1099511627776"),
        ({"r": 1 << 20}, "wrong shape  model.layers.0.self_attn.k_proj.lora_A.weight"),
        ({"r": 3}, "wrong shape"),
        ({"target_modules": ["k_proj", "v_proj"]}, "missing      model.layers.0.self_attn.v_proj.lora_A.weight"),
        ({"layers_to_transform": [0]}, "unexpected   model.layers.1.self_attn.k_proj.lora_A.weight"),
        ({"target_modules": "((a+)+)+b"}, "may take exponential time"),
        ({"rank_pattern": {"(a|a)*b": 2}}, "may take exponential time"),
        ({"target_modules": f"a{{{10**20}}}"}, "is not a regular expression: the repetition number is too large"),
        ({"layers_pattern": "(" * 2000 + ")" * 2000}, "is not a regular expression"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_files_that_do_not_fit(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_adapter(tmp_path, adapter_tensors(), **entries)
    model = llama()
    with pytest.raises(CheckpointError, match=message):
        PeftModel.from_pretrained(model, tmp_path)
    assert [name for name, _ in model.named_modules()] == [name for name, _ in llama().named_modules()]
    assert all(each.requires_grad for each in model.parameters())


def test_entries_of_other_programs_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by ms-swift and LLaMA-Factory; peft ignores them with a warning too."""
    monkeypatch.setattr(config_module, "_reported", set())
    write_adapter(tmp_path, adapter_tensors(), lorap_emb_lr=1e-6, lora_dtype=None, model_kwargs={"a": 1})
    model = llama()
    with pytest.warns(TallowWarning, match=r"LoraConfig does not know .*'lorap_emb_lr' \(1e-06\), 'model_kwargs'"):
        PeftModel.from_pretrained(model, tmp_path)
    with pytest.raises(CheckpointError, match="lorap_emb_lr is 1e-06"):
        PeftModel.from_pretrained(llama(), tmp_path, strict=True)


def test_folders_without_an_adapter(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"adapter_config.json does not exist"):
        PeftModel.from_pretrained(llama(), tmp_path)
    write_adapter(tmp_path, adapter_tensors())
    (tmp_path / "adapter_model.safetensors").rename(tmp_path / "x")
    with pytest.raises(CheckpointError, match=r"has neither adapter_model.safetensors nor adapter_model.bin"):
        PeftModel.from_pretrained(llama(), tmp_path)
    write_adapter(tmp_path, {"model.layers.0": np.zeros(2, np.float32)})
    with pytest.raises(CheckpointError, match=r"does not start with base_model.model"):
        PeftModel.from_pretrained(llama(), tmp_path)
