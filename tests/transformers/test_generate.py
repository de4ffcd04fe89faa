"""`generate` writes what transformers writes: tokens, scores, hidden states and caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.folders import Folders

import tallow
import tallow.transformers
from tallow.errors import ArgumentError, TallowWarning

pytestmark = pytest.mark.filterwarnings("ignore")

random = np.random.default_rng(0)
IDS = random.integers(5, 590, (2, 6))
MASK = np.ones_like(IDS)
MASK[1, :2] = 0
PADDED = np.where(MASK == 0, 600, IDS)
SOURCES = random.integers(5, 40, (2, 7))
SOURCE_MASK = np.ones_like(SOURCES)
SOURCE_MASK[1, 5:] = 0

NEW: dict[str, Any] = {"max_new_tokens": 5}
SCORES = NEW | {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}
STATES = SCORES | {"output_hidden_states": True, "output_attentions": True}
ENDS = {"eos_token_id": list(range(0, 601, 9)), "pad_token_id": 1, "max_new_tokens": 9}
Case = dict[str, Any] | Callable[[Any, Any, Any], dict[str, Any]]

DECODER: dict[str, Case] = {
    "greedy": SCORES,
    "padded": SCORES | {"input_ids": PADDED, "attention_mask": MASK},
    "states": STATES,
    "without a cache": SCORES | {"use_cache": False},
    "no prompt": NEW | {"input_ids": None},
    "ends": SCORES | ENDS,
    "ends, ids only": ENDS,
    "several fewest tokens": SCORES | ENDS | {"min_new_tokens": 4},
    "repetition": SCORES
    | {"input_ids": PADDED, "attention_mask": MASK, "repetition_penalty": 1.7, "no_repeat_ngram_size": 2},
    "of the prompt": SCORES | {"encoder_no_repeat_ngram_size": 2, "encoder_repetition_penalty": 1.5},
    "biases": SCORES | {"sequence_bias": [[[5], 3.0], [[6, 7], -1.0]], "bad_words_ids": [[9], [10, 11]]},
    "forced": SCORES | {"forced_eos_token_id": 5, "suppress_tokens": [8, 9], "begin_suppress_tokens": [20, 21]},
    "a growing end": SCORES | {"exponential_decay_length_penalty": (2, 1.5), "renormalize_logits": True},
    "drawn from one": SCORES | {"do_sample": True, "top_k": 1, "num_return_sequences": 2},
    "guidance": SCORES | {"guidance_scale": 1.5},
    "static cache": SCORES | {"cache_implementation": "static"},
    "beams": SCORES | {"num_beams": 3},
    "beams, ids only": NEW | {"num_beams": 3, "num_return_sequences": 2},
    "beams that end": SCORES | ENDS | {"num_beams": 3, "num_return_sequences": 3},
    "beams by length": SCORES | ENDS | {"num_beams": 4, "length_penalty": 2.0, "pad_token_id": 0},
    "beams that stop early": SCORES | ENDS | {"num_beams": 4, "early_stopping": True, "num_return_sequences": 4},
    "beams that never stop early": SCORES | ENDS | {"num_beams": 2, "early_stopping": "never"},
    "padded beams": SCORES | {"input_ids": PADDED, "attention_mask": MASK, "num_beams": 3, "repetition_penalty": 1.3},
    "beams with states": STATES | {"num_beams": 2},
    "prompt lookup": {"input_ids": np.array([[5, 6, 7, 8, 5, 6, 7]]), "prompt_lookup_num_tokens": 3} | NEW,
    "a watermark": lambda tf, torch, model: {**SCORES, "watermarking_config": tf.WatermarkingConfig(bias=5.0)},
    "embeddings": lambda tf, torch, model: {
        **SCORES,
        "input_ids": None,
        "inputs_embeds": model.get_input_embeddings()(torch.tensor(IDS.tolist())),
    },
    "no end": SCORES | {"eos_token_id": -1},
    "an assistant": lambda tf, torch, model: {**NEW, "input_ids": IDS[:1], "assistant_model": model},
    "a function of tokens": lambda tf, torch, model: {
        **SCORES,
        "num_beams": 2,
        "prefix_allowed_tokens_fn": lambda batch, ids: [batch + 5, int(ids[-1]) % 7 + 20],
    },
    "criteria and processors of one's own": lambda tf, torch, model: {**SCORES, **own_lists(tf, torch)},
    "a conversation": lambda tf, torch, model: {**SCORES, **conversation(torch, model)},
    "a cache": lambda tf, torch, model: {**SCORES, **beginning(tf, torch, model)},
}


def own_lists(tf: Any, torch: Any) -> dict[str, Any]:
    class Long(tf.StoppingCriteria):  # type: ignore[name-defined,misc]
        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            return torch.tensor([len(row) >= 9 for row in input_ids.tolist()])

    class Shifted(tf.LogitsProcessor):  # type: ignore[name-defined,misc]
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            return scores + input_ids[:, -1:] * 0.001

    return {
        "stopping_criteria": tf.StoppingCriteriaList([Long()]),
        "logits_processor": tf.LogitsProcessorList([Shifted(), tf.TopKLogitsWarper(9)]),
    }


def conversation(torch: Any, model: Any) -> dict[str, Any]:
    first = model.generate(torch.tensor(IDS[:1].tolist()), max_new_tokens=4, return_dict_in_generate=True)
    ids = torch.cat([first.sequences, torch.tensor([[7, 8]])], 1)
    return {"input_ids": ids, "past_key_values": first.past_key_values}


def beginning(tf: Any, torch: Any, model: Any) -> dict[str, Any]:
    cache = tf.DynamicCache()
    model.generate(torch.tensor(IDS[:, :4].tolist()), past_key_values=cache, max_new_tokens=2)
    cache.crop(-1)
    return {"past_key_values": cache}


SEQ2SEQ: dict[str, Case] = {
    "greedy": SCORES | {"attention_mask": SOURCE_MASK},
    "ids only": NEW,
    "states": STATES | {"attention_mask": SOURCE_MASK},
    "beams": SCORES | {"attention_mask": SOURCE_MASK, "num_beams": 3, "num_return_sequences": 2},
    "beams with states": STATES | {"num_beams": 2},
    "a beginning": SCORES | {"decoder_input_ids": np.array([[5, 6], [7, 8]])},
    "repetition": SCORES
    | {"encoder_no_repeat_ngram_size": 1, "encoder_repetition_penalty": 2.0, "repetition_penalty": 1.4},
    "forced": SCORES | {"forced_bos_token_id": 9, "forced_eos_token_id": 1, "begin_suppress_tokens": [5]},
    "several": SCORES | {"num_return_sequences": 2, "do_sample": True, "top_k": 1},
    "without a cache": SCORES | {"use_cache": False},
    "an encoded source": lambda tf, torch, model: {
        **SCORES,
        "input_ids": None,
        "encoder_outputs": model.get_encoder()(input_ids=torch.tensor(SOURCES.tolist()), return_dict=True),
    },
}

CASES = [
    *(("LlamaForCausalLM", name) for name in DECODER),
    *(("GPT2LMHeadModel", name) for name in ("greedy", "padded", "states", "beams with states", "embeddings")),
    *(("T5ForConditionalGeneration", name) for name in SEQ2SEQ),
    *(("BartForConditionalGeneration", name) for name in ("greedy", "states", "beams", "a beginning")),
]


def loaded(tf: Any, kind: str, folder: str) -> Any:
    options = {} if tf.__name__.startswith("tallow") else {"attn_implementation": "eager"}  # sdpa has no attentions
    return getattr(tf, kind).from_pretrained(folder, **options).eval()


def tensors(torch: Any, values: dict[str, Any]) -> dict[str, Any]:
    return {k: torch.tensor(v.tolist()) if isinstance(v, np.ndarray) else v for k, v in values.items()}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_call(kind: str, name: str, folders: Folders) -> None:
    is_decoder = kind in ("LlamaForCausalLM", "GPT2LMHeadModel")

    def program(tf: Any, torch: Any) -> Any:
        model = loaded(tf, kind, folders(kind))
        case = (DECODER if is_decoder else SEQ2SEQ)[name]
        arguments = case(tf, torch, model) if callable(case) else case
        result = model.generate(**tensors(torch, {"input_ids": IDS if is_decoder else SOURCES} | arguments))
        if not hasattr(result, "keys"):
            return result
        scores = model.compute_transition_scores(
            result.sequences, result.scores, result.get("beam_indices"), normalize_logits=True
        )
        kept = {key: value for key, value in result.items() if key != "past_key_values"}
        return kept, "past_key_values" in result, scores

    both(program)


@pytest.mark.parametrize(
    "arguments",
    [
        {"unknown_argument": 3},
        {"max_length": 3},
        {"penalty_alpha": 0.6, "top_k": 4, "max_new_tokens": 3},
        {"stop_strings": ["a"], "max_new_tokens": 3},
        {"num_beam_groups": 2, "num_beams": 4, "diversity_penalty": 1.0, "max_new_tokens": 3},
        {"prompt_lookup_num_tokens": 2, "num_return_sequences": 2, "do_sample": True, "max_new_tokens": 3},
    ],
)
def test_wrong_calls(arguments: dict[str, Any], folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = loaded(tf, "LlamaForCausalLM", folders("LlamaForCausalLM"))
        return model.generate(torch.tensor(IDS.tolist()), **arguments)

    both_raise(program, errors=ArgumentError)


@pytest.mark.parametrize(
    "arguments",
    [{"token_healing": True}, {"prefill_chunk_size": 2}, {"cache_config": {"nbits": 4}}, {"low_memory": True}],
)
def test_unused_entries_say_so(arguments: dict[str, Any], folders: Folders) -> None:
    model = loaded(tallow.transformers, "LlamaForCausalLM", folders("LlamaForCausalLM"))
    plain = model.generate(tallow.tensor(IDS.tolist()), max_new_tokens=2)
    with pytest.warns(TallowWarning, match=f"{next(iter(arguments))}: no effect"):
        warned = model.generate(tallow.tensor(IDS.tolist()), max_new_tokens=2, **arguments)
    assert warned.tolist() == plain.tolist()


def test_draws_follow_the_seed_and_the_distribution(folders: Folders) -> None:
    import tallow
    import tallow.transformers as tf

    model = loaded(tf, "LlamaForCausalLM", folders("LlamaForCausalLM"))
    options = {"do_sample": True, "top_k": 3, "max_new_tokens": 1, "return_dict_in_generate": True}
    ids = tallow.tensor(IDS[:1].tolist())
    tallow.manual_seed(0)
    first = model.generate(ids, num_return_sequences=2000, output_scores=True, **options)
    tallow.manual_seed(0)
    again = model.generate(ids, num_return_sequences=2000, **options | {"return_dict_in_generate": False})
    assert first.sequences[:, -1].tolist() == again[:, -1].tolist()
    shares = np.bincount(first.sequences[:, -1].numpy(), minlength=601) / 2000
    expected = tallow.softmax(first.scores[0][0], -1).numpy()
    assert (expected > 0).sum() == 3
    np.testing.assert_allclose(shares, expected, atol=4 / np.sqrt(4 * 2000))  # four standard deviations at most


def test_texts_end_with_the_context(folders: Folders) -> None:
    import tallow
    import tallow.transformers as tf

    model = loaded(tf, "LlamaForCausalLM", folders("LlamaForCausalLM"))
    length = model.context_length
    with pytest.warns(TallowWarning, match="context"):
        ids = model.generate(tallow.tensor(IDS[:1].tolist()), max_new_tokens=length, eos_token_id=None)
    assert ids.shape[1] == length + 1  # the last token is not read


def test_streams(folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        folder = folders("LlamaForCausalLM")
        model, tokenizer = loaded(tf, "LlamaForCausalLM", folder), tf.AutoTokenizer.from_pretrained(folder)
        ids = torch.tensor(IDS[:1].tolist())
        model.generate(ids, streamer=tf.TextStreamer(tokenizer, skip_prompt=True), max_new_tokens=8)
        ended = model.generate(ids, max_new_tokens=8, tokenizer=tokenizer, stop_strings=["e", "a", "o"])
        return capsys.readouterr().out, ended

    both(program)


# ---------------------------------------------------------------------------------------------------------------- sound

SOUNDS = random.normal(size=(2, 80, 100)).astype(np.float32)
LONG = random.normal(size=(1, 80, 250)).astype(np.float32)
SPEECH: dict[str, dict[str, Any]] = {
    "detected": {},
    "a language and a task": {"language": "german", "task": "translate"},
    "two languages": {"language": ["en", "de"]},
    "times": {"language": "en", "return_timestamps": True},
    "beams": {"language": "en", "num_beams": 2},
    "several": {"language": ["en", "de"], "num_beams": 2, "num_return_sequences": 2},
    "scores": SCORES | {"language": "en", "max_new_tokens": 7},
    "states": {"language": "en", "return_dict_in_generate": True, "output_hidden_states": True},
    "long": {"input_features": LONG, "language": "en", "return_timestamps": True},
    "suppressed": {"language": "en", "suppress_tokens": [36490, 15411], "begin_suppress_tokens": [13708]},
}


@pytest.mark.parametrize("name", SPEECH)
def test_speech(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = loaded(tf, "WhisperForConditionalGeneration", folders("WhisperForConditionalGeneration"))
        config = model.generation_config
        config.lang_to_id = {"<|en|>": 50259, "<|de|>": 50261}
        config.task_to_id = {"transcribe": 50359, "translate": 50358}
        config.no_timestamps_token_id, config.is_multilingual, config.max_initial_timestamp_index = 50363, True, 10
        config.eos_token_id, config.pad_token_id, config.decoder_start_token_id = 50257, 50257, 50258
        result = model.generate(**tensors(torch, {"input_features": SOUNDS, "max_new_tokens": 8} | SPEECH[name]))
        if hasattr(result, "keys"):
            return {key: value for key, value in result.items() if key != "past_key_values"}
        return result

    both(program)
