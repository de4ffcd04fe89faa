"""Generation compared with transformers: equal weights give equal batches, beams, penalties and truncation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import model_pairs

from tallow.generation import (
    RepetitionPenalty,
    Sampler,
    beam_search,
    generate,
    generate_batch,
    generate_with_logprobs,
    speculate,
)
from tallow.models import AutoModel

transformers = pytest.importorskip("transformers")

LLAMA_SIZES = model_pairs.LLAMA_SIZES | {"pad_token_id": 0}
FALCON_SIZES = model_pairs.FALCON_SIZES | {"pad_token_id": 0}
GPT2_SIZES = model_pairs.GPT2_SIZES | {"pad_token_id": 0}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", LLAMA_SIZES),
    "gpt2": ("GPT2LMHeadModel", GPT2_SIZES),
    "falcon, rotary": ("FalconForCausalLM", FALCON_SIZES),
    "falcon, alibi": (
        "FalconForCausalLM",
        FALCON_SIZES | {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True},
    ),
    "mistral, sliding": ("MistralForCausalLM", LLAMA_SIZES | {"sliding_window": 7}),
    "qwen3": ("Qwen3ForCausalLM", LLAMA_SIZES | {"head_dim": 16}),
}


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=list(VARIANTS))
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return load(*request.param, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return load(*VARIANTS["llama"], tmp_path_factory.mktemp("model"))


def load(name: str, sizes: dict[str, Any], folder: Path) -> tuple[Any, Any]:
    """Return tallow's model, and the transformers model whose folder it was loaded from."""
    torch.manual_seed(0)
    cls = getattr(transformers, name)
    reference = cls(cls.config_class(**sizes)).eval()
    with torch.no_grad():
        for parameter in reference.parameters():
            if parameter.ndim == 1:  # norms are initialized to ones, biases to zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    reference.save_pretrained(folder)
    return AutoModel.from_pretrained(folder), reference


def prompts(*lengths: int) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(1, model_pairs.VOCAB, length).tolist() for length in lengths]


def theirs(reference: Any, texts: list[list[int]], **options: Any) -> Any:
    """Return transformers' continuations of texts padded on the left."""
    longest = max(map(len, texts))
    ids = torch.tensor([[0] * (longest - len(text)) + text for text in texts])
    mask = torch.tensor([[0] * (longest - len(text)) + [1] * len(text) for text in texts])
    options = {"do_sample": False, "pad_token_id": 0, "return_dict_in_generate": True} | options
    return longest, reference.generate(ids, attention_mask=mask, **options)


def cut_at_stop(ids: Any, start: int, stops: list[int]) -> list[int]:
    """Return the generated tokens up to the first stop id."""
    generated = ids[start:].tolist()
    return generated[: next((i for i, token in enumerate(generated) if token in stops), len(generated))]


def our_generations(model: Any, texts: list[list[int]], **options: Any) -> list[list[int]]:
    generated: list[list[int]] = [[] for _ in texts]
    for row, token in generate_batch(model, texts, **options):
        generated[row].append(token)
    return generated


def test_batches_of_prompts_of_different_lengths(models: tuple[Any, Any]) -> None:
    model, reference = models
    texts = prompts(3, 11, 7, 1)
    start, expected = theirs(reference, texts, max_new_tokens=30)
    assert our_generations(model, texts, max_tokens=30) == expected.sequences[:, start:].tolist()


def test_rows_end_independently(models: tuple[Any, Any]) -> None:
    model, reference = models
    texts = prompts(4, 9, 6, 2, 5)
    generated = our_generations(model, texts, max_tokens=30)
    stops = [generated[0][3], generated[1][7]]
    start, expected = theirs(reference, texts, max_new_tokens=30, eos_token_id=stops)
    texts_cut = [cut_at_stop(row, start, stops) for row in expected.sequences]
    assert len({len(row) for row in texts_cut}) > 1  # some end before others
    assert our_generations(model, texts, max_tokens=30, stop_ids=stops) == texts_cut


def check_beams(models: tuple[Any, Any], stop_places: list[int], **options: Any) -> None:
    """Check that both give the same beams if the tokens at these positions of the greedy text are stop ids."""
    model, reference = models
    (text,) = prompts(6)
    plain = list(generate(model, text, max_tokens=18))
    stops = [plain[place] for place in stop_places]
    start, expected = theirs(
        reference, [text], max_new_tokens=18, output_scores=True, eos_token_id=stops or None, **options
    )
    penalty = options.pop("repetition_penalty", None)
    result = beam_search(
        model,
        text,
        max_tokens=18,
        stop_ids=stops,
        processors=[RepetitionPenalty(penalty)] if penalty else (),
        **options,
    )
    assert [beam.tokens for beam in result] == [cut_at_stop(row, start, stops) for row in expected.sequences]
    if options["num_beams"] > 1:  # transformers has no score for one beam, which is the greedy text
        np.testing.assert_allclose([beam.score for beam in result], expected.sequences_scores, atol=1e-4)


@pytest.mark.parametrize("stop_places", [[], [2], [0, 5, 9]], ids=["endless", "one stop id", "three stop ids"])
@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 1},
        {"num_beams": 4},
        {"num_beams": 4, "num_return_sequences": 4},
        {"num_beams": 3, "length_penalty": 0.0},
        {"num_beams": 3, "length_penalty": 2.5, "num_return_sequences": 2},
        {"num_beams": 3, "length_penalty": -1.0, "num_return_sequences": 3},
        {"num_beams": 4, "early_stopping": True, "num_return_sequences": 4},
        {"num_beams": 4, "early_stopping": "never", "num_return_sequences": 4},
        {"num_beams": 4, "repetition_penalty": 1.3, "num_return_sequences": 4},
    ],
    ids=str,
)
def test_beams(llama: tuple[Any, Any], options: dict[str, Any], stop_places: list[int]) -> None:
    check_beams(llama, stop_places, **options)


def test_beams_of_every_model(models: tuple[Any, Any]) -> None:
    check_beams(models, [2, 7], num_beams=3, num_return_sequences=3)


def test_repetition_penalty(models: tuple[Any, Any]) -> None:
    model, reference = models
    (text,) = prompts(6)
    start, expected = theirs(reference, [text], max_new_tokens=40, repetition_penalty=1.4)
    generated = generate(model, text, max_tokens=40, sample=Sampler(temperature=0, repetition_penalty=1.4))
    assert list(generated) == expected.sequences[0, start:].tolist()


def test_logprobs(models: tuple[Any, Any]) -> None:
    model, reference = models
    (text,) = prompts(6)
    start, expected = theirs(reference, [text], max_new_tokens=10, output_logits=True)
    logprobs = torch.stack(expected.logits)[:, 0].log_softmax(-1)
    likeliest = logprobs.topk(3)
    choices = list(generate_with_logprobs(model, text, max_tokens=10, top_logprobs=3))
    assert [choice.token for choice in choices] == expected.sequences[0, start:].tolist()
    np.testing.assert_allclose([choice.logprob for choice in choices], likeliest.values[:, 0], atol=1e-4)
    for choice, ids, values in zip(choices, likeliest.indices, likeliest.values, strict=True):
        assert [token for token, _ in choice.top_logprobs] == ids.tolist()
        np.testing.assert_allclose([value for _, value in choice.top_logprobs], values, atol=1e-4)


def test_speculating_gives_the_greedy_text(models: tuple[Any, Any]) -> None:
    model, reference = models
    (text,) = prompts(6)
    start, expected = theirs(reference, [text], max_new_tokens=40)
    # With itself as draft all predictions are right; a model with another first layer is right sometimes.
    near = type(model)(model.config).eval()
    near.load_state_dict(model.state_dict())
    first = next(name for name, _ in near.named_parameters() if ".0." in name)
    dict(near.named_parameters())[first].data.mul_(1.02)
    for draft in (model, near):
        assert list(speculate(model, draft, text, max_tokens=40)) == expected.sequences[0, start:].tolist()


@pytest.mark.parametrize(
    ("options", "warpers"),
    [
        ({"top_k": 7}, [transformers.TopKLogitsWarper(7)]),
        ({"top_p": 0.6}, [transformers.TopPLogitsWarper(0.6)]),
        ({"min_p": 0.2}, [transformers.MinPLogitsWarper(0.2)]),
        (
            {"temperature": 0.7, "top_k": 20, "top_p": 0.8, "min_p": 0.1},
            [
                transformers.TemperatureLogitsWarper(0.7),
                transformers.TopKLogitsWarper(20),
                transformers.TopPLogitsWarper(0.8),
                transformers.MinPLogitsWarper(0.1),
            ],
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_samplers_draw_from_the_tokens_that_warpers_keep(options: dict[str, Any], warpers: list[Any]) -> None:
    for seed in range(20):
        logits = np.random.default_rng(seed).standard_normal(50).astype(np.float32) * 3
        scores = torch.from_numpy(logits)[None]
        for warper in warpers:
            scores = warper(None, scores)
        expected = scores.softmax(-1)[0].numpy()
        np.testing.assert_allclose(Sampler(**options).distribution(logits), expected, atol=1e-6)
