"""Data collators equal those of transformers, masks included."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise

import tallow.transformers as mine
from tallow.errors import ArgumentError


class Padder:
    """The part of a tokenizer that collators use, for either library."""

    mask_token, mask_token_id, pad_token, pad_token_id, is_fast = "[MASK]", 3, "[PAD]", 0, True

    def __init__(self, torch: Any, padding_side: str = "right") -> None:
        self.torch, self.padding_side = torch, padding_side
        self.deprecation_warnings: dict[str, bool] = {}

    def __len__(self) -> int:
        return 40

    def convert_tokens_to_ids(self, token: str) -> int:
        return self.mask_token_id

    def get_special_tokens_mask(self, ids: list[int], already_has_special_tokens: bool) -> list[int]:
        return [int(each < 3) for each in ids]

    def pad(self, features: Any, return_tensors: str = "pt", pad_to_multiple_of: Any = None, **options: Any) -> Any:
        rows = [dict(each) for each in features]
        longest = max(len(row["input_ids"]) for row in rows)
        length = options["max_length"] if options.get("padding") == "max_length" else longest
        length += -length % (pad_to_multiple_of or 1)
        batch: dict[str, list[Any]] = {name: [] for name in rows[0]}
        fills = {"attention_mask": 0, "special_tokens_mask": 1, "offset_mapping": (0, 0)}
        for row in rows:
            for name, value in row.items():
                values = value
                if isinstance(value, list):
                    fill = [fills.get(name, 0)] * (length - len(value))
                    values = value + fill if self.padding_side == "right" else fill + value
                batch[name].append(values)
        make = np.array if return_tensors == "np" else self.torch.tensor
        return {name: make(values) for name, values in batch.items()}


def samples(seed: int = 0, sizes: tuple[int, ...] = (5, 9, 3, 7)) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {"input_ids": [1, *rng.integers(4, 40, size - 2).tolist(), 2], "attention_mask": [1] * size} for size in sizes
    ]


@pytest.mark.parametrize("kind", ["pt", "np"])
@pytest.mark.parametrize(
    "features",
    [
        [{"x": [1.0, 2.0], "label": 1}, {"x": [3.0, 4.0], "label": 0}],
        [{"x": [1, 2], "label": 0.5, "name": "a"}, {"x": [3, 4], "label": 1.5, "name": "b"}],
        [{"input_ids": [1, 2], "label_ids": [1, 2]}, {"input_ids": [3, 4], "label_ids": [0, 1]}],
        [{"x": np.ones((2, 2), np.float32), "y": None, "label": None}] * 2,
        [SimpleNamespace(x=[1, 2], label=3), SimpleNamespace(x=[5, 6], label=4)],
    ],
)
def test_default_collator(features: Any, kind: str) -> None:
    both(lambda tf, torch: tf.default_data_collator(features, return_tensors=kind))
    both(lambda tf, torch: tf.DefaultDataCollator(return_tensors=kind)(features))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("options", [{}, {"pad_to_multiple_of": 8}, {"padding": "max_length", "max_length": 12}])
def test_padding_collators(side: str, options: dict[str, Any]) -> None:
    rows = [{**each, "label": i} for i, each in enumerate(samples())]
    tags = [{**each, "labels": [i] * len(each["input_ids"])} for i, each in enumerate(samples())]
    targets = [{**each, "labels": list(range(2 + 2 * i))} for i, each in enumerate(samples())]
    arrays = [{**each, "labels": np.arange(2 + 2 * i)} for i, each in enumerate(samples())]

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = Padder(torch, side)
        tag = tf.DataCollatorForTokenClassification(tokenizer, label_pad_token_id=-7, **options)
        seq2seq = tf.DataCollatorForSeq2Seq(tokenizer, **options)
        return [
            tf.DataCollatorWithPadding(tokenizer, **options)(rows),
            tag(tags),
            tag(tags, return_tensors="np"),
            tag(samples()),
            seq2seq(targets),
            seq2seq(arrays, return_tensors="np"),
            seq2seq(samples()),
        ]

    both(program)


def test_seq2seq_collator_asks_the_model_for_its_inputs() -> None:
    targets = [{**each, "labels": list(range(2 + 2 * i))} for i, each in enumerate(samples())]

    def program(tf: Any, torch: Any) -> Any:
        model = SimpleNamespace(prepare_decoder_input_ids_from_labels=lambda labels: labels + 1)
        return tf.DataCollatorForSeq2Seq(Padder(torch), model=model)(targets)

    both(program)


def test_multiple_choice_collator() -> None:
    first, second = samples(1), samples(2)
    rows = [
        {name: [a[name], b[name]] for name in a} | {"label": i}
        for i, (a, b) in enumerate(zip(first, second, strict=True))
    ]
    both(lambda tf, torch: tf.DataCollatorForMultipleChoice(Padder(torch))(rows))


@pytest.mark.parametrize("kind", ["pt", "np"])
def test_causal_language_modelling_collator(kind: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        collator = tf.DataCollatorForLanguageModeling(Padder(torch), mlm=False, return_tensors=kind)
        return [collator(samples()), collator([each["input_ids"] for each in samples(sizes=(4, 4))])]

    both(program)


@pytest.mark.parametrize("kind", ["pt", "np"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mlm_probability": 0.5},
        {"mask_replace_prob": 0.5, "random_replace_prob": 0.5},
        {"mask_replace_prob": 1.0, "random_replace_prob": 0.0},
    ],
)
def test_masks_of_a_seed_are_those_of_transformers(options: dict[str, Any], kind: str) -> None:
    rows = samples(sizes=(40, 31, 60, 55))

    def program(tf: Any, torch: Any) -> Any:
        collator = tf.DataCollatorForLanguageModeling(Padder(torch), seed=7, return_tensors=kind, **options)
        with_special = [{**each, "special_tokens_mask": [1] * 5 + [0] * (len(each["input_ids"]) - 5)} for each in rows]
        return [collator([dict(each) for each in rows]), collator(with_special)]

    both(program)


@pytest.mark.parametrize("kind", ["pt", "np"])
@pytest.mark.filterwarnings("ignore")
def test_masks_of_whole_words(kind: str) -> None:
    rows = []
    for each in samples(sizes=(20, 31)):
        size = len(each["input_ids"])
        starts = np.cumsum(np.random.default_rng(size).integers(3, 5, size))
        offsets = [(0, 0), *((int(start), int(start) + 3) for start in starts[1:-1]), (0, 0)]
        rows.append({**each, "offset_mapping": offsets})

    def program(tf: Any, torch: Any) -> Any:
        collator = tf.DataCollatorForLanguageModeling(
            Padder(torch), whole_word_mask=True, mlm_probability=0.4, seed=3, return_tensors=kind
        )
        return collator([dict(each) for each in rows])

    both(program)


def test_masks_without_a_seed_follow_tallows_generator() -> None:
    import tallow as tl

    collator = mine.DataCollatorForLanguageModeling(Padder(tl), mlm_probability=0.3)
    rows = samples(sizes=(400, 400))
    tl.manual_seed(1)
    first = collator(rows)
    tl.manual_seed(1)
    assert (collator(rows)["labels"] == first["labels"]).all()
    assert (collator(rows)["labels"] != first["labels"]).any()
    share = (first["labels"] != -100).float().mean().item()
    assert 0.22 < share < 0.38  # 5 standard deviations of 800 draws


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_flash_attn_kwargs": True, "return_seq_idx": True},
        {"return_position_ids": False},
        {"position_ids_start": 2, "separator_id": -1},
    ],
)
@pytest.mark.parametrize("kind", ["pt", "np"])
def test_flattening_collator(options: dict[str, Any], kind: str) -> None:
    rows = [{"input_ids": each["input_ids"], "labels": each["input_ids"][::-1]} for each in samples()]

    def program(tf: Any, torch: Any) -> Any:
        collator = tf.DataCollatorWithFlattening(return_tensors=kind, **options)
        return [collator(rows), collator([{"input_ids": each["input_ids"]} for each in rows])]

    both(program)


@pytest.mark.parametrize(
    "options",
    [
        {"mlm": False, "whole_word_mask": True},
        {"mlm_probability": 1.5},
        {"mlm_probability": None},
        {"mask_replace_prob": 0.9, "random_replace_prob": 0.2},
        {"mask_replace_prob": -0.1},
    ],
)
def test_masking_collator_refuses(options: dict[str, Any]) -> None:
    both_raise(lambda tf, torch: tf.DataCollatorForLanguageModeling(Padder(torch), **options), errors=ArgumentError)
