"""Llama: the real checkpoint reproduces run.c's story, all code paths agree, and wrong weights are refused."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
from tallow import kernels
from tallow.devices import to_host
from tallow.dtypes import widen
from tallow.errors import ArgumentError, CheckpointError, DimensionError, GraphError, ShapeError
from tallow.generation import PromptCache, beam_search, decode_stream, generate, generate_batch, speculate
from tallow.io import safetensors
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.decoders.llama_formats import save_hugging_face
from tallow.nn import Linear, RMSNorm
from tallow.nn.attention import causal_attention
from tallow.nn.cache import KVCache
from tallow.nn.rope_scaling import frequencies
from tallow.nn.rotary import RotaryEmbedding
from tallow.text import Llama2cTokenizer

CONFIG = LlamaConfig(
    vocab_size=29,
    hidden_size=24,
    intermediate_size=20,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    max_position_embeddings=16,
    initializer_range=0.3,  # large enough that every layer affects the output
)
TOKENS = [1, 5, 28, 0, 7, 7, 11]
# float32 sums of a few dozen terms near 1, in a different order
ATOL = 2e-5


def make(**changes: Any) -> Llama:
    tl.manual_seed(0)
    return Llama(LlamaConfig(**vars(CONFIG) | changes)).eval()


def logits(model: Llama, tokens: list[list[int]]) -> np.ndarray[Any, Any]:
    with tl.no_grad():
        return model(tl.tensor(tokens)).float().numpy()


def one_by_one(model: Llama, tokens: list[int]) -> np.ndarray[Any, Any]:
    cache = model.new_cache()
    return np.stack([to_host(model.next_logits([token], cache)) for token in tokens])


@pytest.fixture
def without_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token goes through the modules."""
    monkeypatch.setattr(Llama, "fused_limit", lambda model, cache: "this test")


def tell(model: Llama, tokenizer: Llama2cTokenizer, prompt: str, steps: int) -> str:
    """Generate as run.c does at temperature 0."""
    ids = tokenizer.encode(prompt)
    generated = generate(model, ids, max_tokens=steps - len(ids) + 1, stop_ids=model.config.eos_token_id)
    return "".join(decode_stream(tokenizer, islice(chain(ids[1:], generated), steps), previous=ids[0])) + "\n"


def reference_cases(data_dir: Path) -> list[dict[str, Any]]:
    return json.loads((data_dir / "llama2c_reference.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="module")
def stories(data_dir: Path) -> tuple[Llama, Llama2cTokenizer]:
    model = Llama.from_llama2c(data_dir / "stories260K.bin")
    return model, Llama2cTokenizer.load(data_dir / "tok512.bin", vocab_size=model.vocab_size)


def test_stories_equal_run_c(stories: Any, data_dir: Path) -> None:
    for case in reference_cases(data_dir):
        assert tell(*stories, case["prompt"], case["steps"]) == case["text"]


@pytest.mark.usefixtures("without_decoder")
def test_modules_generate_the_same_stories(stories: Any, data_dir: Path) -> None:
    for case in reference_cases(data_dir):
        assert tell(*stories, case["prompt"], case["steps"]) == case["text"]


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16])
def test_half_precision_weights_stay_close(stories: Any, data_dir: Path, dtype: tl.dtype) -> None:
    """Rounding 260,000 weights to 11 or 8 bits changes the logits, which span about 20, by less than this."""
    model = Llama.from_llama2c(data_dir / "stories260K.bin", dtype=dtype)
    assert {p.dtype for p in model.parameters()} == {dtype}
    tolerance = {tl.float16: 0.05, tl.bfloat16: 0.5}[dtype]
    ids = stories[1].encode("Once upon a time, there was a little girl")
    np.testing.assert_allclose(one_by_one(model, ids), one_by_one(stories[0], ids), atol=tolerance)


VARIANTS: dict[str, dict[str, Any]] = {
    "grouped": {},
    "multi-head": {"num_key_value_heads": 6},
    "multi-query": {"num_key_value_heads": 1},
    "interleaved": {"rope_interleaved": True},
    "tied": {"tie_word_embeddings": True},
    "wide heads": {"head_dim": 10},
    "scaled": {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "biased": {"attention_bias": True, "mlp_bias": True},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_cached_and_uncached_logits_agree(changes: dict[str, Any]) -> None:
    model = make(**changes)
    for parameter in model.parameters():
        if parameter.ndim == 1:  # norms start at one and biases at zero: make them affect the output
            parameter.data += tl.tensor(np.random.default_rng(1).standard_normal(parameter.shape) / 4, dtype=tl.float32)
    expected = logits(model, [TOKENS])[0]
    np.testing.assert_allclose(one_by_one(model, TOKENS), expected, atol=ATOL)
    in_parts = model.new_cache()
    np.testing.assert_allclose(to_host(model.next_logits(TOKENS[:3], in_parts)), expected[2], atol=ATOL)
    np.testing.assert_allclose(to_host(model.next_logits(TOKENS[3:5], in_parts)), expected[4], atol=ATOL)
    np.testing.assert_allclose(to_host(model.next_logits(TOKENS[5:6], in_parts)), expected[5], atol=ATOL)
    np.testing.assert_allclose(to_host(model.next_logits(TOKENS[6:], in_parts)), expected[6], atol=ATOL)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float64])
def test_cached_and_uncached_logits_agree_in_other_dtypes(dtype: tl.dtype) -> None:
    model = make().to(dtype)
    tolerance = {tl.float16: 0.02, tl.bfloat16: 0.2, tl.float64: 1e-12}[dtype]  # logits reach 5
    np.testing.assert_allclose(one_by_one(model, TOKENS), logits(model, [TOKENS])[0], atol=tolerance)


def test_attention_is_causal() -> None:
    model = make()
    changed = [*TOKENS[:4], 2, 3, 4]
    before, after = logits(model, [TOKENS])[0], logits(model, [changed])[0]
    np.testing.assert_array_equal(before[:4], after[:4])
    assert np.abs(before[4:] - after[4:]).max() > 0.1


def test_sequences_of_a_batch_do_not_mix() -> None:
    model = make()
    other = TOKENS[::-1]
    batch = logits(model, [TOKENS, other])
    np.testing.assert_allclose(batch, [logits(model, [TOKENS])[0], logits(model, [other])[0]], atol=ATOL)


def test_batch_with_a_cache() -> None:
    model = make()
    tokens = tl.tensor([TOKENS, TOKENS[::-1]])
    cache = model.new_cache(batch=2)
    with tl.no_grad():
        first, second = model(tokens[:, :4], cache), model(tokens[:, 4:], cache)
    expected = logits(model, tokens.tolist())
    np.testing.assert_allclose(np.concatenate([first.numpy(), second.numpy()], axis=1), expected, atol=ATOL)


@pytest.mark.cpu("its fused decoder")
def test_decoder_is_used_only_where_results_agree() -> None:
    def decodes(model: Llama) -> bool:
        return is_fused(model.new_cache())

    def is_fused(cache: Any) -> bool:
        return cache.decoder.step(cache) is not None

    assert decodes(make())
    assert decodes(make(tie_word_embeddings=True))
    assert decodes(make().to(tl.bfloat16))
    assert not decodes(make().to(tl.float64))
    assert not decodes(make(attention_bias=True))
    assert not decodes(make(mlp_bias=True))
    assert is_fused(make().new_cache(batch=2, padding=[1, 0]))
    hooked = make()
    hooked.model.layers[1].mlp.register_forward_hook(lambda module, args, result: result * 0)
    assert not decodes(hooked)
    replaced = make()
    replaced.model.layers[0].self_attn.q_proj = type("LoraLinear", (Linear,), {})(24, 24, False)
    assert not decodes(replaced)
    mixed = make()
    mixed.model.norm.to(tl.float16)
    assert not decodes(mixed)


@pytest.mark.cpu("its fused decoder")
@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16])
def test_fused_batches_agree_with_each_text_alone(dtype: tl.dtype) -> None:
    """Texts of different lengths, fewer from step to step; also in another order, as of a beam search."""
    model = make().to(dtype)
    texts = [TOKENS, TOKENS[3:], TOKENS[1:5], TOKENS[::-1]]
    expected = [one_by_one(model, text) for text in texts]
    longest = max(map(len, texts))
    padding = [longest - len(text) for text in texts]
    cache = model.new_cache(batch=len(texts), padding=padding)
    with kernels.require_fused():
        for position in range(longest):
            column = [[0 if position < pad else text[position - pad]] for text, pad in zip(texts, padding, strict=True)]
            logits = to_host(model.last_logits(column, cache))[:, 0]
            for row, pad in enumerate(padding):
                if position >= pad:
                    np.testing.assert_allclose(logits[row], expected[row][position - pad], atol=ATOL)
        cache.select([3, 1])
        cache.truncate(longest - 2)
        tails = [texts[3][-2:], texts[1][-2:]]
        both = to_host(model.last_logits(tails, cache, last=2))
    np.testing.assert_allclose(both, np.stack([expected[3][-2:], expected[1][-2:]]), atol=ATOL)


@pytest.mark.cpu("its fused decoder")
@pytest.mark.parametrize(("dtype", "epsilon"), [(tl.float16, 2**-11), (tl.bfloat16, 2**-8)])
def test_a_cache_of_halves(dtype: tl.dtype, epsilon: float) -> None:
    """It takes half the memory; fused blocks and modules store the same, and logits differ by the rounding."""
    model = make()
    whole, half = model.new_cache(length=7), model.new_cache(length=7, dtype=dtype)
    sizes = [sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers) for cache in (whole, half)]
    assert sizes == [7 * 3 * 2 * 2 * 4 * 4, 7 * 3 * 2 * 2 * 4 * 2]
    with kernels.require_fused():
        rounded = np.stack([to_host(model.next_logits([token], half)) for token in TOKENS])
    assert all(layer.keys.dtype == dtype.storage for layer in half.layers)
    expected = one_by_one(model, TOKENS)
    assert 0 < abs(rounded - expected).max() < 8 * epsilon * abs(expected).max()
    modules = model.new_cache(length=7, dtype=dtype)
    with tl.no_grad():
        model(tl.tensor([TOKENS]), modules)
    for fused, other in zip(half.layers, modules.layers, strict=True):
        for name in ("keys", "values"):
            ours, theirs = (widen(getattr(each, name)) for each in (fused, other))
            np.testing.assert_allclose(ours, theirs, atol=4 * epsilon * abs(theirs).max())


@pytest.mark.cpu("its fused decoder")
def test_texts_with_a_cache_of_halves() -> None:
    model = make()
    tokens = list(generate(model, TOKENS[:3], max_tokens=6, cache_dtype=tl.float16))
    batch = list(generate_batch(model, [TOKENS[:3]], max_tokens=6, cache_dtype=tl.float16))
    assert tokens == [token for _, token in batch]
    assert tokens == list(PromptCache(model, cache_dtype=tl.float16).generate(TOKENS[:3], max_tokens=6))
    with pytest.raises(ArgumentError, match="a cache of float64"):
        generate(model, TOKENS[:3], max_tokens=6, cache_dtype=tl.float64)
    with pytest.raises(ArgumentError, match="a cache of float64"):
        beam_search(model, TOKENS[:3], num_beams=2, max_tokens=6, cache_dtype=tl.float64)
    with pytest.raises(ArgumentError, match="a cache of float64"):
        list(speculate(model, model, TOKENS[:3], max_tokens=6, cache_dtype=tl.float64))
    with pytest.raises(ArgumentError, match="both a cache and a cache_dtype"):
        generate(model, TOKENS[:3], max_tokens=6, cache=model.new_cache(), cache_dtype=tl.float16)


@pytest.mark.cpu("its fused decoder")
def test_fused_batches_agree_with_the_modules() -> None:
    model = make()
    prompts = [TOKENS[:2], TOKENS[:5], TOKENS]
    with kernels.require_fused():
        fused = list(generate_batch(model, prompts, max_tokens=5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Llama, "fused_limit", lambda model, cache: "this test")
        assert fused == list(generate_batch(model, prompts, max_tokens=5))


@pytest.mark.cpu("elsewhere, looking at tokens would wait for the device")
@pytest.mark.parametrize("token", [29, -1])
def test_tokens_outside_the_vocabulary_are_refused_in_a_batch(token: int) -> None:
    model = make()
    cache = model.new_cache(batch=2)
    with pytest.raises(DimensionError, match=f"token {token} is outside the vocabulary of 29"):
        model.last_logits([[1, 2], [3, token]], cache)
    assert cache.length == 0


def test_decoder_notices_replaced_weights() -> None:
    model = make()
    cache = model.new_cache()
    model.next_logits(TOKENS[:1], cache)
    silent = model.state_dict() | {"lm_head.weight": tl.zeros(29, 24)}
    model.load_state_dict(silent, assign=True)
    assert not to_host(model.next_logits(TOKENS[1:2], cache)).any()


def test_decoder_sees_weights_that_were_written_in_place() -> None:
    model = make()
    cache = model.new_cache()
    model.next_logits(TOKENS[:1], cache)
    model.lm_head.weight.array[...] = 0
    assert not to_host(model.next_logits(TOKENS[1:2], cache)).any()


def test_memory_of_a_text_is_free_without_a_garbage_collection() -> None:
    model = make()
    cache = model.new_cache()
    keys = ref(cache.layers[0].keys)
    gc.disable()
    try:
        assert len([*generate(model, TOKENS, max_tokens=2, cache=cache)]) == 2
        del cache
        assert keys() is None
    finally:
        gc.enable()


def test_full_cache_is_refused() -> None:
    model = make()
    cache = model.new_cache(length=2)
    model.next_logits([1, 2], cache)
    with pytest.raises(ArgumentError, match="does not fit a KVCache of 2"):
        model.next_logits([3], cache)
    with pytest.raises(ArgumentError, match="does not fit a KVCache of 1"):
        model.next_logits([1, 2], model.new_cache(length=1))
    with pytest.raises(ArgumentError, match="the model's context is 16"):
        model.new_cache(length=17)


def test_cache_of_another_batch_is_refused() -> None:
    with pytest.raises(ShapeError, match="batch of 2 does not fit"), tl.no_grad():
        make()(tl.tensor([[1], [2]]), make().new_cache())


def test_cache_is_not_part_of_a_graph() -> None:
    model = make()
    with pytest.raises(GraphError, match="cannot be part of a graph"):
        model(tl.tensor([[1]]), model.new_cache())


@pytest.mark.cpu("elsewhere, looking at tokens would wait for the device")
@pytest.mark.parametrize("token", [-1, 29])
def test_tokens_outside_the_vocabulary_are_refused(token: int) -> None:
    model = make()
    with pytest.raises(DimensionError):
        model.next_logits([token], model.new_cache())
    with pytest.raises(DimensionError):
        model.next_logits([token, 1], model.new_cache())


def test_causal_attention_of_one_head_by_hand() -> None:
    """Two positions, K = 1: the weights are the softmax over visible positions."""
    q = tl.tensor([[[[1.0], [2.0]]]])
    k = tl.tensor([[[[0.5], [-1.0]]]])
    v = tl.tensor([[[[3.0], [5.0]]]])
    e = np.exp([2 * 0.5, 2 * -1.0])
    expected = [3.0, (3 * e[0] + 5 * e[1]) / e.sum()]
    np.testing.assert_allclose(causal_attention(q, k, v).numpy().ravel(), expected, rtol=1e-6)


def test_rotary_angle_is_position_times_frequency() -> None:
    """The first pair rotates by one radian per position, the second by base^(-1/2) radians."""
    x = tl.tensor([[[[1.0, 0.0, 1.0, 0.0]] * 3]])
    y = RotaryEmbedding(4, base=100.0, interleaved=True)(x, start=5).numpy()[0, 0]
    for t, position in enumerate([5, 6, 7]):
        angles = [position, position / 10]
        expected = [np.cos(angles[0]), np.sin(angles[0]), np.cos(angles[1]), np.sin(angles[1])]
        np.testing.assert_allclose(y[t], expected, atol=1e-6)


def test_both_layouts_of_pairs_are_permutations_of_each_other() -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 8)).astype(np.float32)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    neighbours = RotaryEmbedding(8, interleaved=True)(tl.as_tensor(x)).numpy()
    halves = RotaryEmbedding(8)(tl.as_tensor(np.ascontiguousarray(x[..., order]))).numpy()
    # a kernel may fuse multiply-adds of one layout and not of the other
    np.testing.assert_allclose(neighbours[..., order], halves, rtol=0, atol=1e-6)


def test_a_folder_of_an_interleaved_model_with_biases(tmp_path: Path) -> None:
    model = make(rope_interleaved=True, attention_bias=True)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            tl.nn.init.normal_(parameter)
    save_hugging_face(model, tmp_path)
    np.testing.assert_allclose(logits(Llama.from_pretrained(tmp_path), [TOKENS]), logits(model, [TOKENS]), atol=ATOL)


def test_rotary_scalings() -> None:
    plain = frequencies(128, 500000.0)
    np.testing.assert_array_equal(frequencies(128, 500000.0, {"type": "linear", "factor": 4}), plain / np.float32(4))
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaled = frequencies(128, 500000.0, llama3 | {"original_max_position_embeddings": 8192})
    waves = 2 * np.pi / plain
    np.testing.assert_array_equal(scaled[waves < 8192 / 4], plain[waves < 8192 / 4])
    np.testing.assert_allclose(scaled[waves > 8192], plain[waves > 8192] / 8, rtol=1e-6)
    between = (waves > 8192 / 4) & (waves < 8192)
    assert between.any()
    assert (scaled[between] < plain[between]).all()
    assert (scaled[between] > plain[between] / 8).all()
    with pytest.raises(ArgumentError, match="of type 'axial'"):
        frequencies(128, 1e4, {"rope_type": "axial"})
    with pytest.raises(ArgumentError, match="lacks 'original_max_position_embeddings'"):
        frequencies(128, 1e4, llama3)
    with pytest.raises(ArgumentError, match=r"base=1\.0 and head_dim=128: .*division"):
        frequencies(128, 1.0, {"rope_type": "yarn", "factor": 2.0}, 64)
    with pytest.raises(ArgumentError, match="a list of 64 positive numbers"):
        frequencies(128, 1e4, {"type": "longrope", "short_factor": [1.0] * 64, "long_factor": [1.0] * 63}, 64)
    with pytest.raises(ArgumentError, match="even head width"):
        RotaryEmbedding(7)


# ------------------------------------------------------------------------------------------------------------- loading


def config_json(**changes: Any) -> dict[str, Any]:
    entries = {name: value for name, value in vars(CONFIG).items() if name != "rope_interleaved"}
    return entries | {"model_type": "llama", "hidden_act": "silu", "eos_token_id": 2} | changes


def save_pretrained(folder: Path, model: Llama, shards: int = 1, **changes: Any) -> Path:
    """Write a folder as transformers does."""
    (folder / "config.json").write_text(json.dumps(config_json(**changes)), encoding="utf-8")
    state = model.state_dict()
    if shards == 1:
        safetensors.save(state, folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    weight_map = {}
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = dict(islice(state.items(), i, None, shards))
        safetensors.save(part, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


@pytest.mark.parametrize("shards", [1, 3])
def test_folder_loads_back(tmp_path: Path, shards: int) -> None:
    model = make()
    loaded = Llama.from_pretrained(save_pretrained(tmp_path, model, shards))
    assert loaded.config == model.config
    assert not loaded.training
    np.testing.assert_array_equal(logits(loaded, [TOKENS]), logits(model, [TOKENS]))


def test_loading_converts_where_asked(tmp_path: Path) -> None:
    folder = save_pretrained(tmp_path, make().to(tl.bfloat16))
    assert {p.dtype for p in Llama.from_pretrained(folder).parameters()} == {tl.bfloat16}
    assert {p.dtype for p in Llama.from_pretrained(folder, dtype=tl.float32).parameters()} == {tl.float32}


def test_tied_head_may_be_in_the_file_or_not(tmp_path: Path) -> None:
    model = make(tie_word_embeddings=True)
    save_pretrained(tmp_path, model, tie_word_embeddings=True)
    expected = logits(model, [TOKENS])
    np.testing.assert_array_equal(logits(Llama.from_pretrained(tmp_path), [TOKENS]), expected)
    state = model.state_dict() | {"lm_head.weight": model.head_weight.detach()}
    state |= {"model.layers.0.self_attn.rotary_emb.inv_freq": tl.ones(2)}  # as old versions saved it
    safetensors.save(state, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(logits(Llama.from_pretrained(tmp_path), [TOKENS]), expected)


def test_weights_that_do_not_fit_are_listed(tmp_path: Path) -> None:
    model = make()
    save_pretrained(tmp_path, model, vocab_size=31)
    state = model.state_dict()
    del state["model.layers.2.mlp.up_proj.weight"]
    state["score.weight"] = tl.zeros(1)
    safetensors.save(state, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError) as caught:
        Llama.from_pretrained(tmp_path)
    text = str(caught.value)
    assert f"{tmp_path} does not fit Llama(hidden_size=24, num_hidden_layers=3" in text
    assert "  missing      model.layers.2.mlp.up_proj.weight" in text
    assert "  unexpected   score.weight" in text
    assert "  wrong shape  model.embed_tokens.weight: file (29, 24), model (31, 24)" in text
    assert "  wrong shape  lm_head.weight: file (29, 24), model (31, 24)" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2'"),
        ({"hidden_act": "prelu"}, "activation 'prelu'"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, "5 heads do not divide hidden_size=24"),
        ({"num_key_value_heads": 4}, "num_key_value_heads=4 does not divide num_attention_heads=6"),
        ({"hidden_size": 0}, "hidden_size=0"),
        ({"hidden_size": "24"}, "hidden_size='24'"),
        ({"hidden_size": True}, "hidden_size=True"),
        ({"vocab_size": None, "num_hidden_layers": None}, "missing vocab_size, num_hidden_layers\n  hint"),
        ({"head_dim": 5}, "head_dim=5"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps='small'"),
        ({"rope_theta": -1.0}, "rope_theta=-1.0"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "of type 'yarn'"),
        ({"rope_scaling": 3}, "rope_scaling=3"),
        ({"eos_token_id": ["a"]}, "eos_token_id"),
    ],
)
def test_invalid_config_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config_json(**changes)), encoding="utf-8")
    with pytest.raises(CheckpointError) as caught:
        LlamaConfig.from_json(path)
    assert message in str(caught.value)


def test_config_of_transformers_5_keeps_rotary_in_one_place(tmp_path: Path) -> None:
    rope = {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0}
    entries = config_json(rope_parameters=rope, eos_token_id=[7, 8])
    del entries["rope_theta"], entries["rope_scaling"], entries["num_key_value_heads"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    config = LlamaConfig.from_json(path)
    assert config.rope_theta == 5000
    assert config.rope_scaling == {"rope_type": "linear", "factor": 2.0}
    assert config.num_key_value_heads == 6
    assert config.eos_token_id == (7, 8)


def test_config_that_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for text in ("", "[]", "{", '{"a":' * 100):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CheckpointError):
            LlamaConfig.from_json(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 64) | st.floats(allow_nan=False) | st.sampled_from(["llama3", "silu"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["rope_type", "factor"]), inner),
    max_leaves=4,
)
config_names = st.sampled_from([*config_json(), "rope_parameters"])


@given(changes=st.dictionaries(config_names, json_values, max_size=3))
def test_any_config_reads_or_raises(tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "config.json"
    path.write_text(json.dumps(config_json(**changes)), encoding="utf-8")
    try:
        config = LlamaConfig.from_json(path)
    except CheckpointError:
        return
    Llama(config, device="meta")


def break_index(change: Callable[[dict[str, str]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text(encoding="utf-8"))
        change(index["weight_map"])
        path.write_text(json.dumps(index), encoding="utf-8")

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model-00002-of-00002.safetensors").unlink(), "the shard"),
        (lambda folder: (folder / "model.safetensors.index.json").unlink(), "has neither"),
        (lambda folder: (folder / "model.safetensors.index.json").write_text("{}"), "has no weight_map"),
        (break_index(lambda names: names.update(stray="model-00001-of-00002.safetensors")), "has no tensor 'stray'"),
        (break_index(lambda names: names.update(stray="../secret.safetensors")), "is not a file name"),
        (break_index(lambda names: names.update(stray="")), "is not a file name"),
        (break_index(lambda names: names.update(stray=3)), "is not a file name"),  # type: ignore[call-overload]
        (break_index(lambda names: names.popitem()), "missing"),
    ],
)
def test_damaged_folders_are_refused(tmp_path: Path, damage: Any, message: str) -> None:
    save_pretrained(tmp_path, make(), shards=2)
    damage(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        Llama.from_pretrained(tmp_path)
    assert message in str(caught.value)


@pytest.mark.cpu("memory is the file's")
def test_loading_maps_the_file(tmp_path: Path) -> None:
    """The parameters are views of the mapping; writing to them does not change the file."""
    save_pretrained(tmp_path, make())
    before = (tmp_path / "model.safetensors").read_bytes()
    model = Llama.from_pretrained(tmp_path)
    bases = set()
    for parameter in model.parameters():
        array = parameter.array
        while isinstance(array.base, np.ndarray):
            array = array.base
        bases.add(id(array))
    assert len(bases) == 1
    model.lm_head.weight.array[...] = 0
    assert (tmp_path / "model.safetensors").read_bytes() == before


@pytest.mark.cpu("memory is the file's")
def test_checkpoint_in_memory_is_viewed(data_dir: Path) -> None:
    buffer = np.fromfile(data_dir / "stories260K.bin", dtype=np.uint8)
    model = Llama.from_llama2c(buffer)
    assert all(np.shares_memory(parameter.array, buffer) for parameter in model.parameters())


def test_large_model_costs_nothing_on_meta() -> None:
    sizes = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "vocab_size": 128256}
    heads = {"num_attention_heads": 64, "num_key_value_heads": 8}
    # In 16 bits the largest matrix stays below 2 GiB, the limit of an array with 32-bit addresses.
    model = Llama(LlamaConfig(**sizes, **heads), device="meta", dtype=tl.bfloat16)
    assert sum(p.numel() for p in model.parameters()) == 70_553_706_496  # Llama 3 70B


def test_new_model_has_the_initializer_range_of_its_config() -> None:
    model = make(vocab_size=500)
    assert abs(model.model.embed_tokens.weight.array.std() / 0.3 - 1) < 0.05
    assert all((m.weight.array == 1).all() for m in model.modules() if isinstance(m, RMSNorm))


def test_kv_cache_grows_by_what_is_appended() -> None:
    cache = KVCache(1, 1, 2, 4, 3)
    first = tl.ones(1, 2, 2, 3)
    keys, values = cache.append(0, first, first * 2)
    assert keys.tolist() == first.tolist()
    cache.advance(2)
    keys, values = cache.append(0, first * 3, first * 4)
    assert keys.shape == values.shape == (1, 2, 4, 3)
    assert keys[0, 0, :, 0].tolist() == [1, 1, 3, 3]
    assert values[0, 1, :, 2].tolist() == [2, 2, 4, 4]
