"""Language models against transformers: the same weights give the same logits, the same gradients and the same text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow.generation import generate
from tallow.models.falcon import Falcon
from tallow.models.gemma import Gemma
from tallow.models.gemma2 import Gemma2
from tallow.models.gpt2 import GPT2
from tallow.models.llama import Llama
from tallow.models.mistral import Mistral
from tallow.models.phi3 import Phi3
from tallow.models.qwen import Qwen2, Qwen3

transformers = pytest.importorskip("transformers")

# Both compute in float32; sums of up to 128 terms are taken in another order.
ATOL = 1e-4
VOCAB = 97
GPT2_SIZES = {
    "vocab_size": VOCAB,
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
}
LLAMA_SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": None,  # the gradient of a padding's embedding is 0 in transformers
}
FALCON_SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
}
# The caps are so low that most scores and logits come near them.
GEMMA2 = {
    "head_dim": 16,
    "sliding_window": 7,
    "query_pre_attn_scalar": 24,
    "attn_logit_softcapping": 1.0,
    "final_logit_softcapping": 3.0,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.0, 1.5, 2.5, 4.0],
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 100.0,
    "factor": 3.0,
    "beta_fast": 4.0,
    "beta_slow": 0.5,
    "mscale": 0.7,
    "mscale_all_dim": 0.3,
    "truncate": False,
}
SLIDING = {"use_sliding_window": True, "sliding_window": 7}
# What transformers makes and tallow loads, and what is not as in SIZES.
VARIANTS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "gpt2": ("GPT2", GPT2, GPT2_SIZES),
    "gpt2, other scales": (
        "GPT2",
        GPT2,
        GPT2_SIZES | {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True, "n_inner": 48},
    ),
    "gpt2, relu": ("GPT2", GPT2, GPT2_SIZES | {"activation_function": "relu", "layer_norm_epsilon": 1e-3}),
    "mistral": ("Mistral", Mistral, LLAMA_SIZES | {"sliding_window": None}),
    "mistral, sliding": ("Mistral", Mistral, LLAMA_SIZES | {"sliding_window": 7, "head_dim": 12}),
    "qwen2": ("Qwen2", Qwen2, LLAMA_SIZES | {"tie_word_embeddings": True}),
    "qwen2, sliding": ("Qwen2", Qwen2, LLAMA_SIZES | SLIDING | {"max_window_layers": 1}),
    "qwen3": ("Qwen3", Qwen3, LLAMA_SIZES | {"head_dim": 16, "attention_bias": True}),
    "qwen3, by layer": (
        "Qwen3",
        Qwen3,
        LLAMA_SIZES | SLIDING | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    ),
    "gemma": ("Gemma", Gemma, LLAMA_SIZES | {"head_dim": 16, "num_key_value_heads": 1}),
    "gemma2": ("Gemma2", Gemma2, LLAMA_SIZES | GEMMA2),
    "gemma2, by layer": (
        "Gemma2",
        Gemma2,
        LLAMA_SIZES
        | GEMMA2
        | {"layer_types": ["full_attention", "full_attention", "sliding_attention"], "attention_bias": True}
        | {"attn_logit_softcapping": None, "final_logit_softcapping": None},
    ),
    "phi3": ("Phi3", Phi3, LLAMA_SIZES | {"sliding_window": 9}),
    "falcon 7b": ("Falcon", Falcon, FALCON_SIZES),
    "falcon 40b": ("Falcon", Falcon, FALCON_SIZES | {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon 11b": (
        "Falcon",
        Falcon,
        FALCON_SIZES
        | {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}
        | {"tie_word_embeddings": False, "ffn_hidden_size": 48},
    ),
    "falcon rw": (
        "Falcon",
        Falcon,
        FALCON_SIZES
        | {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}
        | {"num_attention_heads": 6, "hidden_size": 36},
    ),
    "llama, dynamic": (
        "Llama",
        Llama,
        LLAMA_SIZES
        | {"max_position_embeddings": 24}
        | {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}},
    ),
    # Texts of more than 24 tokens are long ones.
    "phi3, longrope": (
        "Phi3",
        Phi3,
        LLAMA_SIZES | {"original_max_position_embeddings": 24, "rope_parameters": LONGROPE},
    ),
    "phi3, a part of each head": (
        "Phi3",
        Phi3,
        LLAMA_SIZES
        | {"num_attention_heads": 2, "sliding_window": 9, "original_max_position_embeddings": 24}
        | {"rope_parameters": LONGROPE | {"partial_rotary_factor": 0.5}},
    ),
    "llama, longrope": (
        "Llama",
        Llama,
        LLAMA_SIZES | {"rope_parameters": LONGROPE | {"factor": 3.0, "original_max_position_embeddings": 24}},
    ),
    "qwen2, yarn": (
        "Qwen2",
        Qwen2,
        LLAMA_SIZES | {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
    ),
    "qwen3, yarn": (
        "Qwen3",
        Qwen3,
        LLAMA_SIZES | {"max_position_embeddings": 24, "head_dim": 16} | {"rope_parameters": YARN},
    ),
}


@pytest.fixture(params=VARIANTS.values(), ids=list(VARIANTS))
def models(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """A model of transformers whose weights all count, and tallow's of the folder that it saved."""
    name, cls, sizes = request.param
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes)
    head = {"GPT2": "LMHeadModel"}.get(name, "ForCausalLM")
    reference = getattr(transformers, name + head)(config).eval()
    with torch.no_grad():
        for parameter in reference.parameters():
            if parameter.ndim == 1:  # norms are made of ones, biases of zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    reference.save_pretrained(tmp_path, max_shard_size="20KB")
    return cls.from_pretrained(tmp_path), reference


def tokens(length: int, batch: int = 2) -> list[list[int]]:
    return np.random.default_rng(0).integers(0, VOCAB, (batch, length)).tolist()


def test_logits(models: tuple[Any, Any]) -> None:
    model, reference = models
    batch = tokens(50)
    with torch.no_grad():
        expected = reference(torch.tensor(batch)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor(batch)).numpy(), expected, atol=ATOL)


def test_logits_with_a_cache(models: tuple[Any, Any]) -> None:
    model, reference = models
    (text,) = tokens(24, batch=1)
    with torch.no_grad():
        expected = reference(torch.tensor([text])).logits[0].numpy()
    cache = model.new_cache()
    np.testing.assert_allclose(model.next_logits(text[:10], cache), expected[9], atol=ATOL)
    np.testing.assert_allclose(model.next_logits(text[10:15], cache), expected[14], atol=ATOL)
    one_by_one = [model.next_logits([token], cache) for token in text[15:]]
    np.testing.assert_allclose(one_by_one, expected[15:], atol=ATOL)


def test_greedy_text(models: tuple[Any, Any]) -> None:
    model, reference = models
    (prompt,) = tokens(5, batch=1)
    expected = reference.generate(torch.tensor([prompt]), max_new_tokens=40, do_sample=False)[0, 5:].tolist()
    assert list(generate(model, prompt, max_tokens=40)) == expected


def test_gradients(models: tuple[Any, Any]) -> None:
    model, reference = models
    batch = tokens(30)
    loss = reference(torch.tensor(batch), labels=torch.tensor(batch)).loss
    loss.backward()
    logits = model(tl.tensor(batch))[:, :-1].flatten(0, 1)
    ours = tl.nn.functional.cross_entropy(logits, tl.tensor(batch)[:, 1:].flatten())
    assert ours.item() == pytest.approx(loss.item(), abs=1e-4)
    ours.backward()
    expected = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        theirs = expected[name].grad.numpy()
        np.testing.assert_allclose(parameter.grad.numpy(), theirs, atol=ATOL * max(1, abs(theirs).max()), err_msg=name)
