"""Errors, with a hint, for what models, generate, pipelines and tokenizers cannot take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.transformers.folders import Folders

import tallow as tl
import tallow.transformers as mine
from tallow.errors import TallowError

IDS = tl.tensor([[5, 6, 7]])
FORWARD: dict[str, dict[str, Any]] = {
    "ids of one dimension": {"input_ids": tl.tensor([5, 6])},
    "ids of three dimensions": {"input_ids": tl.tensor([[[5, 6]]])},
    "ids in a list": {"input_ids": [[5, 6]]},
    "an id out of range": {"input_ids": tl.tensor([[10**6]])},
    "a mask of another length": {"input_ids": IDS, "attention_mask": tl.ones((1, 5), dtype=tl.int64)},
    "a mask of another batch": {"input_ids": IDS, "attention_mask": tl.ones((2, 3), dtype=tl.int64)},
    "a mask in a list": {"input_ids": IDS, "attention_mask": [[1, 1, 1]]},
    "no input": {},
}
GENERATE: dict[str, dict[str, Any]] = {
    "an empty batch": {"inputs": tl.zeros((0, 3), dtype=tl.int64)},
    "an empty prompt": {"inputs": tl.zeros((1, 0), dtype=tl.int64)},
    "ids that are floats": {"inputs": tl.tensor([[1.5]])},
    "a mask of another shape": {"inputs": IDS, "attention_mask": tl.ones((2, 3), dtype=tl.int64)},
    "a length in words": {"inputs": IDS, "max_new_tokens": "3"},
    "no beams": {"inputs": IDS, "num_beams": 0},
    "no texts": {"inputs": IDS, "num_return_sequences": 0},
    "a streamer that is none": {"inputs": IDS, "streamer": 5},
    "processors that are none": {"inputs": IDS, "logits_processor": 5},
    "an assistant that is none": {"inputs": IDS, "assistant_model": 5},
    "a config that is a dictionary": {"inputs": IDS, "generation_config": {"top_k": 1}},
}
TOKENIZER: dict[str, Callable[[Any], Any]] = {
    "texts and numbers": lambda tokenizer: tokenizer(["a", 5]),
    "no text": lambda tokenizer: tokenizer(None),
    "a negative id": lambda tokenizer: tokenizer.decode([-1]),
    "an id of 100 bits": lambda tokenizer: tokenizer.decode([2**100]),
    "a text to decode": lambda tokenizer: tokenizer.decode("abc"),
    "a token that is a number": lambda tokenizer: tokenizer.convert_tokens_to_ids(5),
    "tokens of a negative id": lambda tokenizer: tokenizer.convert_ids_to_tokens([-1]),
}


@pytest.fixture(scope="module")
def model(folders: Folders) -> Any:
    return mine.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM"))


@pytest.fixture(scope="module")
def tokenizer(folders: Folders) -> Any:
    return mine.AutoTokenizer.from_pretrained(folders("LlamaForCausalLM"))


@pytest.mark.parametrize("name", FORWARD)
def test_forward(name: str, model: Any) -> None:
    with pytest.raises(TallowError), tl.no_grad():
        model(**FORWARD[name])


@pytest.mark.parametrize("name", GENERATE)
def test_generate(name: str, model: Any) -> None:
    with pytest.raises(TallowError):
        model.generate(**({"max_new_tokens": 2} | GENERATE[name]))


@pytest.mark.parametrize("name", TOKENIZER)
def test_tokenizer(name: str, tokenizer: Any) -> None:
    with pytest.raises(TallowError):
        TOKENIZER[name](tokenizer)


@pytest.mark.parametrize("prompt", [None, 5, [1], {"a": 1}])
def test_pipeline(prompt: Any, model: Any, tokenizer: Any) -> None:
    with pytest.raises(TallowError):
        mine.pipeline("text-generation", model, tokenizer=tokenizer)(prompt, max_new_tokens=2)


@pytest.mark.parametrize("name", [None, 5, ""])
def test_names_of_models(name: Any) -> None:
    with pytest.raises(TallowError):
        mine.AutoModel.from_pretrained(name)


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": "x"},
        {"per_device_train_batch_size": 0},
        {"gradient_accumulation_steps": 0},
        {"warmup_steps": "x"},
        {"lr_scheduler_kwargs": "{bad"},
        {"output_dir": 5},
    ],
)
def test_training_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(TallowError):
        mine.TrainingArguments(**({"output_dir": "out"} | options))


@pytest.mark.parametrize(
    "mask",
    [tl.ones((1, 1, 2, 3)), tl.full((1, 1, 3, 3), -0.5), tl.ones((1, 2, 3, 3), dtype=tl.bool)],
    ids=["another length", "scores", "heads"],
)
def test_masks_of_four_dimensions(mask: Any, model: Any) -> None:
    with pytest.raises(TallowError, match="attention_mask"):
        model(IDS, attention_mask=mask)
