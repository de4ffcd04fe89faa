"""Logits processors return what those of transformers return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise

from tallow.errors import ArgumentError

random = np.random.default_rng(0)
SCORES = random.normal(size=(3, 20)).astype(np.float32) * 2
IDS = np.array([[0, 1, 2, 3, 1, 2], [4, 5, 4, 5, 4, 5], [7, 7, 7, 7, 7, 7]])
TIES = np.log(np.array([[0.3, 0.1, 0.1, 0.5], [0.15, 0.3, 0.3, 0.25]], np.float32))


def tensor(torch: Any, value: Any) -> Any:
    return torch.tensor(np.asarray(value).tolist())


CASES: dict[str, tuple[Any, ...]] = {
    "MinLengthLogitsProcessor": ((8, [2, 3]), (4, 2)),
    "MinNewTokensLengthLogitsProcessor": ((4, 3, 2), (4, 1, [2])),
    "TemperatureLogitsWarper": ((0.7,), (3.0,)),
    "RepetitionPenaltyLogitsProcessor": ((1.7,), (0.5,), (1.3, 4)),
    "TopPLogitsWarper": ((0.8,), (0.5, -1.0), (0.1, -float("inf"), 5), (1.0,), (0.0,)),
    "TopKLogitsWarper": ((3,), (1, -7.0, 4), (50,)),
    "TopHLogitsWarper": ((0.4,), (0.9, -3.0)),
    "MinPLogitsWarper": ((0.1,), (0.9, -float("inf"), 3)),
    "TypicalLogitsWarper": ((0.9,), (0.3, -5.0), (0.1, -float("inf"), 6)),
    "EpsilonLogitsWarper": ((0.05,), (0.3, -1.0, 2)),
    "EtaLogitsWarper": ((0.05,), (0.3, -1.0, 2)),
    "NoRepeatNGramLogitsProcessor": ((2,), (3,), (1,)),
    "ForcedBOSTokenLogitsProcessor": ((3,),),
    "ForcedEOSTokenLogitsProcessor": ((7, 3), (9, [3, 4])),
    "InfNanRemoveLogitsProcessor": ((),),
    "ExponentialDecayLengthPenalty": (((1, 1.3), 2, 3), ((5, 1.5), [2, 4], 3)),
    "LogitNormalization": ((),),
    "SuppressTokensAtBeginLogitsProcessor": (([1, 3], 6), ([1, 3], 5)),
    "SuppressTokensLogitsProcessor": (([1, 3],),),
    "AlternatingCodebooksLogitsProcessor": ((2, 5, 6), (3, 5, 6)),
    "NoBadWordsLogitsProcessor": (([[3], [2, 9], [5, 4, 5, 8]], 3), ([[3], [1, 2, 6]],)),
    "SequenceBiasLogitsProcessor": (({(3,): -2.0, (2, 9): 1.5, (5, 8): float("-inf")},), ([[[4], 3.0]],)),
}


@pytest.mark.parametrize(("name", "args"), [(name, args) for name, each in CASES.items() for args in each])
def test_a_processor(name: str, args: tuple[Any, ...]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        processor = getattr(tf, name)(*args) if hasattr(tf, name) else getattr(tf.generation, name)(*args)
        return [processor(tensor(torch, ids), tensor(torch, SCORES)) for ids in (IDS, IDS[:, :4], IDS[:, :1])]

    both(program)


def test_top_p_of_ties() -> None:
    both(lambda tf, torch: tf.TopPLogitsWarper(0.8)(tensor(torch, IDS[:2]), tensor(torch, TIES)))


def test_processors_of_sources() -> None:
    def program(tf: Any, torch: Any) -> Any:
        sources = tensor(torch, [[1, 2, 9, 2, 8], [4, 5, 6, 5, 7]])
        ids, scores = tensor(torch, IDS[[0, 0, 1, 1]]), tensor(torch, SCORES[[0, 1, 2, 0]])
        return [
            tf.EncoderNoRepeatNGramLogitsProcessor(2, sources)(ids, scores),
            tf.EncoderRepetitionPenaltyLogitsProcessor(1.4, sources)(ids, scores),
            tf.RepetitionPenaltyLogitsProcessor(1.4, tensor(torch, [2, 0, 5, 6]))(ids, scores),
        ]

    both(program)


def test_a_function_allows_tokens() -> None:
    def program(tf: Any, torch: Any) -> Any:
        allowed = {0: [2, 3], 1: [9]}
        processor = tf.PrefixConstrainedLogitsProcessor(lambda batch, ids: allowed[batch], 2)
        scores = tensor(torch, SCORES[[0, 1, 2, 0]])
        scores[2:, 9] = -float("inf")  # what the function allows prevails
        return processor(tensor(torch, IDS[[0, 0, 1, 1]]), scores)

    both(program)
    both_raise(
        lambda tf, torch: tf.PrefixConstrainedLogitsProcessor(lambda *_: [], 1)(
            tensor(torch, IDS), tensor(torch, SCORES)
        ),
        errors=ArgumentError,
    )


def test_guidance_of_two_halves() -> None:
    def program(tf: Any, torch: Any) -> Any:
        scores = tensor(torch, SCORES[[0, 1, 2, 0]])
        return tf.ClassifierFreeGuidanceLogitsProcessor(1.5)(tensor(torch, IDS[:2]), scores)

    both(program)
    both_raise(lambda tf, torch: tf.ClassifierFreeGuidanceLogitsProcessor(1.0), errors=ArgumentError)


def test_a_list_of_processors() -> None:
    def program(tf: Any, torch: Any) -> Any:
        def own(input_ids: Any, scores: Any) -> Any:
            return scores + input_ids[:, :1]

        class Shifted(tf.LogitsProcessor):  # type: ignore[name-defined,misc]
            def __call__(self, input_ids: Any, scores: Any, by: float) -> Any:
                return scores - by

        processors = tf.LogitsProcessorList([tf.TopKLogitsWarper(5), own, Shifted()])
        return processors(tensor(torch, IDS), tensor(torch, SCORES), by=2.0)

    both(program)
    both_raise(lambda tf, torch: _without_an_argument(tf, torch), errors=ArgumentError)


def _without_an_argument(tf: Any, torch: Any) -> Any:
    class Shifted(tf.LogitsProcessor):  # type: ignore[name-defined,misc]
        def __call__(self, input_ids: Any, scores: Any, by: float) -> Any:
            return scores - by

    return tf.LogitsProcessorList([Shifted()])(tensor(torch, IDS), tensor(torch, SCORES))


def test_infinite_scores() -> None:
    def program(tf: Any, torch: Any) -> Any:
        scores = tensor(torch, SCORES)
        scores[0, :3], scores[1, 5] = -float("inf"), float("nan")
        return tf.InfNanRemoveLogitsProcessor()(tensor(torch, IDS), scores)[:, 3:]

    both(program)


WRONG: dict[str, tuple[Any, ...]] = {
    "MinLengthLogitsProcessor": (-1, 2),
    "TemperatureLogitsWarper": (0.0,),
    "RepetitionPenaltyLogitsProcessor": (-1.0,),
    "TopPLogitsWarper": (1.5,),
    "TopKLogitsWarper": (0,),
    "TopHLogitsWarper": (0.0,),
    "MinPLogitsWarper": (2.0,),
    "TypicalLogitsWarper": (1.0,),
    "EpsilonLogitsWarper": (0.0,),
    "EtaLogitsWarper": (1.0,),
    "NoRepeatNGramLogitsProcessor": (0,),
    "NoBadWordsLogitsProcessor": ([],),
    "SequenceBiasLogitsProcessor": ({},),
    "ForcedEOSTokenLogitsProcessor": (5, -3),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    both_raise(lambda tf, torch: getattr(tf.generation, name)(*WRONG[name]), errors=ArgumentError)
