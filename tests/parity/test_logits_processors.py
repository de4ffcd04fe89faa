"""Logits processors and filters compared with those of transformers on random logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.generation import logits_process as theirs

from tallow.generation import LogitsProcessor, Sampler
from tallow.generation import rules as ours
from tallow.generation.processors import Text

VOCAB = 40
ATOL = 1e-7  # a repetition penalty rounds to float32
STOPS = [3, 17]
PROMPT = [5, 9, 5, 9, 11, 3, 5]
SOURCE = [9, 11, 2, 9, 30, 5, 9, 12]
IDS = torch.tensor([SOURCE])
WORDS = [[7], [9, 12], [5, 9, 11], [9, 11], [3], [5, 9, 12], [17, 3]]
BIASES = {(4,): 2.5, (9, 11): -3.0, (5, 9, 11): 1.25, (5, 9, 12): float("-inf"), (9, 12): 4.0, (11,): -1.0}
LISTED = [[list(tokens), bias] for tokens, bias in BIASES.items()]
START = len(PROMPT)

PAIRS: dict[str, tuple[LogitsProcessor, Callable[[], Any]]] = {
    "no repeated 2-gram": (ours.NoRepeatedNgram(2), lambda: theirs.NoRepeatNGramLogitsProcessor(2)),
    "no repeated 3-gram": (ours.NoRepeatedNgram(3), lambda: theirs.NoRepeatNGramLogitsProcessor(3)),
    "no 1-gram of the source": (
        ours.NoNgramOfSource(1, SOURCE),
        lambda: theirs.EncoderNoRepeatNGramLogitsProcessor(1, IDS),
    ),
    "no 2-gram of the source": (
        ours.NoNgramOfSource(2, SOURCE),
        lambda: theirs.EncoderNoRepeatNGramLogitsProcessor(2, IDS),
    ),
    "no 2-gram of the prompt": (
        ours.NoNgramOfSource(2),
        lambda: theirs.EncoderNoRepeatNGramLogitsProcessor(2, torch.tensor([PROMPT])),
    ),
    "penalty of the source": (
        ours.SourceRepetitionPenalty(1.7, SOURCE),
        lambda: theirs.EncoderRepetitionPenaltyLogitsProcessor(1.7, IDS),
    ),
    "penalty of the prompt": (
        ours.SourceRepetitionPenalty(0.6),
        lambda: theirs.EncoderRepetitionPenaltyLogitsProcessor(0.6, torch.tensor([PROMPT])),
    ),
    "sequence bias": (ours.SequenceBias(BIASES), lambda: theirs.SequenceBiasLogitsProcessor(LISTED)),
    "bad words": (ours.no_words(WORDS, STOPS), lambda: theirs.NoBadWordsLogitsProcessor(WORDS, STOPS)),
    "min length": (ours.MinLength(9, STOPS), lambda: theirs.MinLengthLogitsProcessor(9, STOPS)),
    "min new tokens": (
        ours.MinNewTokens(2, STOPS),
        lambda: theirs.MinNewTokensLengthLogitsProcessor(START, 2, STOPS),
    ),
    "forced beginning": (ours.ForcedToken(1, [6]), lambda: theirs.ForcedBOSTokenLogitsProcessor(6)),
    "forced end": (ours.ForcedToken(8, STOPS), lambda: theirs.ForcedEOSTokenLogitsProcessor(9, STOPS)),
    "invalid values": (ours.FiniteLogits(), theirs.InfNanRemoveLogitsProcessor),
    "growing end": (
        ours.GrowingEnd(1, 1.4, STOPS),
        lambda: theirs.ExponentialDecayLengthPenalty((1, 1.4), STOPS, START),
    ),
    "shrinking end": (
        ours.GrowingEnd(0, 0.5, STOPS),
        lambda: theirs.ExponentialDecayLengthPenalty((0, 0.5), STOPS, START),
    ),
    "suppressed": (ours.SuppressTokens([2, 9]), lambda: theirs.SuppressTokensLogitsProcessor([2, 9])),
    "suppressed at the beginning": (
        ours.SuppressAtBeginning([2, 9]),
        lambda: theirs.SuppressTokensAtBeginLogitsProcessor([2, 9], START),
    ),
    "suppressed after the beginning": (
        ours.SuppressAtBeginning([2, 9], place=1),
        lambda: theirs.SuppressTokensAtBeginLogitsProcessor([2, 9], START + 1),
    ),
    "renormalized": (ours.Renormalized(), theirs.LogitNormalization),
}
TEXTS = [Text(PROMPT).then(*more) for more in ([], [9], [9, 11], [9, 5, 9, 11], [2, 17])]


def random_logits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3, VOCAB).astype(np.float32)


@pytest.mark.parametrize("name", PAIRS)
def test_processors(name: str) -> None:
    our_processor, make = PAIRS[name]
    their_processor = make()
    changed = 0
    for seed, text in enumerate([Text([9])] if name == "forced beginning" else TEXTS):
        logits = random_logits(seed)
        if seed == 0:
            logits[[0, 3]] = -np.inf  # ruled out by an earlier processor
            logits[[1, 2]] = (np.inf, np.nan) if name == "invalid values" else 0
        before = logits.copy()
        result = our_processor(logits, text)
        expected = their_processor(torch.tensor([list(text)]), torch.tensor(logits[None]))[0].numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(logits, before)
        changed += not np.array_equal(result, logits, equal_nan=True)
    assert changed


FILTERS: dict[str, dict[str, Any]] = {
    "typical_p": {"typical_p": 0.6},
    "a small typical_p": {"typical_p": 0.05},
    "epsilon_cutoff": {"epsilon_cutoff": 0.03},
    "an epsilon_cutoff that keeps one": {"epsilon_cutoff": 0.99},
    "eta_cutoff": {"eta_cutoff": 0.05},
    "top_h": {"top_h": 0.6},
    "a small top_h": {"top_h": 0.01},
    "all": {
        "temperature": 1.7,
        "top_h": 0.9,
        "top_k": 12,
        "top_p": 0.95,
        "min_p": 0.02,
        "typical_p": 0.9,
        "epsilon_cutoff": 0.01,
        "eta_cutoff": 0.02,
        "repetition_penalty": 1.3,
    },
    "two": {"top_p": 0.9, "typical_p": 0.8},
}


@pytest.mark.parametrize("options", FILTERS.values(), ids=list(FILTERS))
def test_filters(options: dict[str, Any]) -> None:
    config = transformers.GenerationConfig(**{"top_k": 0} | options, do_sample=True)
    config._eos_token_tensor = None
    chain = transformers.GenerationMixin._get_logits_processor(
        _Decoder(), config, input_ids_seq_length=START, device="cpu"
    )
    removed = 0
    for seed in range(20):
        logits = random_logits(seed)
        logits[seed] = -np.inf
        scores = chain(torch.tensor([PROMPT]), torch.tensor(logits[None]).double())[0]
        expected = torch.softmax(scores, -1).numpy()
        np.testing.assert_allclose(Sampler(**options).distribution(logits, Text(PROMPT)), expected, atol=ATOL)
        removed += int((expected == 0).sum()) - 1
    assert removed > 0


class _Decoder:
    """The part of a decoder-only model that `_get_logits_processor` reads."""

    class config:
        is_encoder_decoder = False

    @staticmethod
    def _merge_criteria_processor_list(default: Any, custom: Any) -> Any:
        return default
