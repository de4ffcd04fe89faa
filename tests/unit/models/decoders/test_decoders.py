"""Decoders without heads, and heads over them: padding, pooling, and which weights load into which class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.small_models import ENTRIES

import tallow as tl
from tallow import models
from tallow.devices import to_host
from tallow.errors import ArgumentError, CheckpointError
from tallow.models.causal_lm import CausalLM
from tallow.models.decoders import falcon, gpt2, llama
from tallow.models.decoders.decoder_heads import last_tokens
from tallow.models.decoders.llama_formats import hugging_face_form

LLAMA = {
    "vocab_size": 20,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 16,
    "initializer_range": 0.5,
}
GPT2 = {"vocab_size": 20, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2, "initializer_range": 0.5}
FALCON = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.5,
}
TOKENS = tl.tensor([[3, 4, 5, 6, 7, 8], [9, 10, 11, 12, 13, 14]])


INTERLEAVED = [name for name in ENTRIES if getattr(getattr(models, name).config_class, "files_interleave", False)]


def base_model(name: str) -> Any:
    tl.manual_seed(0)
    configs: dict[str, Any] = {
        "llama": lambda: llama.LlamaModel(llama.LlamaConfig(**LLAMA)),
        "gpt2": lambda: gpt2.GPT2Model(gpt2.GPT2Config(**GPT2)),
        "falcon": lambda: falcon.FalconModel(falcon.FalconConfig(**FALCON)),
        "falcon, linear biases": lambda: falcon.FalconModel(falcon.FalconConfig(**FALCON, alibi=True)),
    }
    return configs[name]().eval()


@pytest.mark.parametrize("name", ["llama", "gpt2", "falcon", "falcon, linear biases"])
@pytest.mark.parametrize("side", [slice(0, 2), slice(4, 6)], ids=["left", "right"])
def test_padding_does_not_change_a_text(name: str, side: slice) -> None:
    model = base_model(name)
    mask = tl.ones(2, 6, dtype=tl.int64)
    mask[1, side] = 0
    padded, unpadded = model(TOKENS, mask), model(TOKENS)
    np.testing.assert_allclose(padded[0].detach().numpy(), unpadded[0].detach().numpy(), atol=1e-5)
    text = mask[1].bool()
    alone = model(TOKENS[1][text].unsqueeze(0))[0]
    np.testing.assert_allclose(padded[1][text].detach().numpy(), alone.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ENTRIES if issubclass(getattr(models, name), CausalLM)])
def test_a_padded_cache_continues_each_text(name: str) -> None:
    """The modules read the beginnings, fused blocks the rest where a model has them; alone the modules read all."""
    kind: Any = getattr(models, name)
    tl.manual_seed(0)
    model = kind(kind.config_class.from_entries(ENTRIES[name], "entries")).eval()
    with tl.no_grad():
        for parameter in model.parameters():
            parameter.add_(tl.randn(*parameter.shape) / parameter.shape[-1] ** 0.5)
    numbers, vocabulary = np.random.default_rng(0), model.base_model.token_embedding.num_embeddings
    length = min(10, model.context_length - 2)
    padding = [0, length - 2, length // 2]
    tokens = numbers.integers(0, vocabulary, (3, length + 2))
    cache = model.new_cache(length=length + 2, batch=3, padding=padding)
    got = [to_host(model.last_logits(tokens[:, :length].tolist(), cache))[:, 0]]
    got += [to_host(model.last_logits(tokens[:, i : i + 1].tolist(), cache))[:, 0] for i in (length, length + 1)]
    with tl.no_grad():
        alone = [model(tl.tensor(text[None, start:]))[0, -3:] for text, start in zip(tokens, padding, strict=True)]
    np.testing.assert_allclose(np.stack(got, 1), np.stack([each.numpy() for each in alone]), rtol=1e-3, atol=1e-4)


def test_gradients_go_through_padded_texts() -> None:
    model = base_model("llama")
    mask = tl.tensor([[1] * 6, [0, 0, 1, 1, 1, 1]])
    model(TOKENS, mask)[1, -1].sum().backward()
    assert model.embed_tokens.weight.grad[11:15].abs().sum(1).min().item() > 0
    assert model.embed_tokens.weight.grad[:11].abs().max().item() == 0  # another text, and padding


def test_padding_within_a_text_is_refused() -> None:
    with pytest.raises(ArgumentError, match="row 1 has padding between tokens"):
        base_model("llama")(TOKENS, tl.tensor([[1, 1, 1, 1, 0, 0], [1, 0, 1, 1, 1, 1]]))


def test_a_cache_stores_its_padding() -> None:
    model = llama.Llama(llama.LlamaConfig(**LLAMA))
    with pytest.raises(ArgumentError, match="both an attention_mask and a cache"):
        model.model(TOKENS, tl.ones(2, 6), cache=model.new_cache(batch=2))


def test_last_tokens_are_those_before_the_padding() -> None:
    tokens = tl.tensor([[5, 6, 0, 0], [0, 0, 7, 8], [5, 0, 6, 0], [0, 0, 0, 0]])
    assert last_tokens(tokens, 0).tolist() == [1, 3, 2, 0]
    assert last_tokens(tokens[:1], None).tolist() == [3]
    with pytest.raises(ArgumentError, match="4 texts, but the config has no pad_token_id"):
        last_tokens(tokens, None)


def test_a_head_takes_the_weights_of_bare_and_language_models() -> None:
    tl.manual_seed(0)
    config = llama.LlamaConfig(**LLAMA, labels=("a", "b", "c"), pad_token_id=0)
    head = models.LlamaForSequenceClassification(config).eval()
    score = {"score.weight": head.score.weight}
    bare_state, text_state = head.model.state_dict(), llama.Llama(config).state_dict()
    loaded = models.LlamaForSequenceClassification.assemble(config, {**bare_state, **score})
    assert tl.equal(loaded(TOKENS), head(TOKENS))
    assert head(TOKENS).shape == (2, 3)
    models.LlamaForSequenceClassification.assemble(config, {**text_state, **score})
    assert tl.equal(llama.LlamaModel.assemble(config, head.state_dict())(TOKENS), head.model(TOKENS))
    with pytest.raises(CheckpointError, match=r"missing      score\.weight"):
        models.LlamaForSequenceClassification.assemble(config, text_state)


@pytest.mark.parametrize(("family", "heads"), models.DECODER_HEADS.items())
def test_every_class_exists_and_reads_its_familys_config(family: str, heads: tuple[str, ...]) -> None:
    for head in heads:
        assert getattr(models, family + head).config_class is getattr(models, f"{family}Config")


@pytest.mark.parametrize(
    ("family", "entries", "message"),
    [
        ("falcon", {"num_ln_in_parallel_attn": 2}, "num_ln_in_parallel_attn=2"),
        ("falcon", {"new_decoder_architecture": True, "parallel_attn": False}, "parallel_attn=False"),
        ("falcon", {"multi_query": False, "num_kv_heads": 1}, "num_kv_heads=1"),
        ("llama", {"hidden_act": "xielu"}, "activation 'xielu'"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}}, "is 0.5"),
        (
            "llama",
            {"rope_scaling": {"type": "proportional", "partial_rotary_factor": 1.5}},
            "partial_rotary_factor=1.5",
        ),
        ("qwen2", {"max_window_layers": -1}, "max_window_layers=-1"),
    ],
)
def test_entries_that_are_not_computed_are_refused_by_name(family: str, entries: dict[str, Any], message: str) -> None:
    reader = {"falcon": models.FalconConfig, "llama": models.LlamaConfig, "qwen2": models.Qwen2Config}[family]
    with pytest.raises(CheckpointError) as caught:
        reader.from_entries((FALCON if family == "falcon" else LLAMA) | entries, "the file")
    assert message in str(caught.value)


@pytest.mark.parametrize("name", INTERLEAVED)
def test_rows_of_rotary_pairs_that_are_neighbours_in_files_stay(name: str) -> None:
    kind: Any = getattr(models, name)
    tl.manual_seed(0)
    model = kind(kind.config_class.from_entries(ENTRIES[name], "entries")).eval()
    entries, state = hugging_face_form(model)
    loaded = kind.assemble(kind.config_class.from_entries(entries, "entries"), state, None, None, "state")
    with tl.no_grad():
        np.testing.assert_array_equal(to_host(loaded(TOKENS).array), to_host(model(TOKENS).array))


def test_names_with_long_numbers_are_of_no_further_layer() -> None:
    config = models.DeepseekV3.config_class.from_entries(ENTRIES["DeepseekV3"], "entries")
    assert config.is_of_others(f"model.layers.{config.num_hidden_layers}.x")
    assert not config.is_of_others(f"model.layers.{'9' * 9999}.x")
