"""Rewards of answers: by functions and by models, and the advantages that follow from them.

Letters: B answers, G answers of a prompt, F reward functions.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, UnsupportedError, warn
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.transformers.auto import AutoModelForSequenceClassification
from tallow.transformers.auto_tokenizer import AutoTokenizer
from tallow.trl.samples import is_conversational

Floats: TypeAlias = npt.NDArray[np.float64]
TINY = 1e-4  # added to a deviation


class ModelReward:
    """The logit of a classifier with one label for prompt and answer.

    Args:    tokenizer: None means that of the model's folder
    """

    def __init__(self, model: Any, tokenizer: Any, device: Any) -> None:
        if isinstance(model, str | Path):
            model = AutoModelForSequenceClassification.from_pretrained(model, num_labels=1)
        self.model = model.to(device).eval()
        name = getattr(model.config, "_name_or_path", "")
        self.__name__ = Path(name).name or type(model).__name__
        self.tokenizer = AutoTokenizer.from_pretrained(name) if tokenizer is None else tokenizer
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        model.config.pad_token_id = self.tokenizer.pad_token_id
        self.device = device

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float]:
        texts = [prompt + completion for prompt, completion in zip(prompts, completions, strict=True)]
        if isinstance(texts[0], list):
            texts = [self.tokenizer.apply_chat_template(each, tokenize=False) for each in texts]
        inputs = self.tokenizer(
            texts, padding=True, padding_side="right", add_special_tokens=False, return_tensors="pt"
        ).to(self.device)
        with no_grad():
            rewards: list[float] = self.model(**inputs).logits[:, 0].tolist()
        return rewards


def reward_functions(given: Any, tokenizers: Any, device: Any) -> list[Any]:
    """Return functions for what a trainer gets: functions, models, or names of models, one or several.

    Raises:  ArgumentError for none, and for another number of tokenizers; UnsupportedError for asynchronous functions
    """
    several = list(given) if isinstance(given, list | tuple) else [given]
    tokens = list(tokenizers) if isinstance(tokenizers, list | tuple) else [tokenizers] * len(several)
    if not several or len(tokens) != len(several):
        raise ArgumentError(f"{len(several)} reward functions, {len(tokens)} reward_processing_classes")
    made = []
    for each, tokenizer in zip(several, tokens, strict=True):
        if inspect.iscoroutinefunction(each):
            raise UnsupportedError(f"{each.__name__} is asynchronous", hint="pass a function that returns the rewards")
        made.append(ModelReward(each, tokenizer, device) if isinstance(each, str | Path | Module) else each)
    return made


def name_of(function: Any) -> str:
    """Return the name of a reward function, for metrics."""
    return str(getattr(function, "__name__", type(function).__name__))


def rewards_of(functions: Sequence[Any], arguments: Mapping[str, Any], count: int) -> Floats:
    """Return the rewards (B, F); NaN where a function says None.

    Raises:  ArgumentError for a function that returns another number of rewards
    """
    found = np.full((count, len(functions)), np.nan)
    for column, function in enumerate(functions):
        rewards = function(**arguments)
        if len(rewards) != count:
            raise ArgumentError(
                f"{name_of(function)} returned {len(rewards)} rewards for {count} answers", hint="return one for each"
            )
        found[:, column] = [math.nan if each is None else float(each) for each in rewards]
    if np.isnan(found).all(axis=1).any():
        warn("no reward function gave a reward for some answers; nothing is learned from them")
    return found


def deviation(values: Floats, axis: int | None = None) -> Any:
    """Return the standard deviation of what is not NaN, by n - 1; NaN of fewer than two values."""
    count = (~np.isnan(values)).sum(axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.nansum((values - np.nanmean(values, axis=axis, keepdims=True)) ** 2, axis=axis)
        return np.where(count > 1, np.sqrt(total / np.maximum(count - 1, 1)), np.nan)


def total_of(rewards: Floats, weights: Floats) -> Floats:
    """Return the weighted sums (B,) of rewards (B, F); NaN where there are none."""
    total = np.nansum(rewards * weights, axis=1)
    return np.where(np.isnan(rewards).all(axis=1), np.nan, total)


def advantages_of(rewards: Floats, weights: Floats, group: int, scale: str) -> tuple[Floats, Floats]:
    """Return how much better than the mean of its prompt each answer is, (B,), and the deviations it is divided by.

    Args:
        rewards: (B, F), the answers of a prompt one after another.
        weights: (F,).
        group: G.
        scale: by the deviation of the "group" or "batch"; "none" leaves it.

    Source:  arXiv:2402.03300, section 4.1.2
    """
    total = total_of(rewards, weights)
    grouped = total.reshape(-1, group)
    mean = np.repeat(np.nanmean(grouped, axis=1), group)
    if scale == "batch":
        spread = np.broadcast_to(deviation(total), total.shape) if len(total) > 1 else np.zeros_like(total)
    else:
        spread = np.repeat(deviation(grouped, axis=1), group) if group > 1 else np.zeros_like(total)
    advantages = total - mean
    if scale != "none":
        advantages = advantages / (spread + TINY)
    return np.nan_to_num(advantages, nan=0.0), spread


def as_answers(prompts: Sequence[Any], texts: Sequence[str]) -> list[Any]:
    """Return answers in the form of their prompts: texts, or lists of one message."""
    if prompts and is_conversational({"prompt": prompts[0]}):
        return [[{"role": "assistant", "content": text}] for text in texts]
    return list(texts)
