"""Samples as people write them, to token ids: texts, prompts with answers, conversations.

A sample is a mapping. Conversations are lists of messages, as {"role": "user", "content": "Hello"}, or as
{"from": "human", "value": "Hello"}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from tallow.errors import ArgumentError, TallowWarning, warn

PARTS = ("prompt", "completion", "chosen", "rejected", "messages", "conversations")
Sample = dict[str, Any]


def samples_of(dataset: Iterable[Any]) -> Iterator[Sample]:
    """Yield the samples of a dataset, each as a new dictionary, without parts that are None.

    Raises:  ArgumentError for a sample that is not a mapping
    """
    for number, each in enumerate(dataset):
        if not isinstance(each, Mapping):
            raise ArgumentError(
                f"sample {number} is a {type(each).__name__}",
                hint='pass mappings, such as {"text": "..."} or {"messages": [...]}',
            )
        yield maybe_convert_to_chatml(
            {name: value for name, value in each.items() if value is not None or name not in PARTS}
        )


def is_conversational(example: Mapping[str, Any]) -> bool:
    """Return whether the parts of a sample are messages."""
    part = next((example[name] for name in PARTS if name in example), None)
    return bool(part) and isinstance(part, list) and isinstance(part[0], Mapping) and "role" in part[0]


def maybe_convert_to_chatml(example: Sample) -> Sample:
    """Return a sample whose messages have `role` and `content` in place of `from` and `value`."""
    renamed = {"from": "role", "value": "content"}
    made = dict(example)
    for name in PARTS:
        if isinstance(made.get(name), list):
            made[name] = [
                {renamed.get(key, key): value for key, value in each.items()} if isinstance(each, Mapping) else each
                for each in made[name]
            ]
    if "conversations" in made:
        made["messages"] = made.pop("conversations")
    return made


def extract_prompt(example: Sample) -> Sample:
    """Return a sample of two answers with their common beginning as its prompt.

    Raises:  ArgumentError for a sample without `chosen` or `rejected`, and for answers that are the same
    """
    if "prompt" in example:
        return example
    chosen, rejected = (_part(example, name) for name in ("chosen", "rejected"))
    start = common_length(chosen, rejected)
    if start == len(chosen) == len(rejected):
        raise ArgumentError("chosen and rejected are the same", hint="remove the sample")
    # A space before the words that differ belongs to them: tokens begin with it.
    if start and isinstance(chosen, str) and chosen[start - 1] == " ":
        start -= 1
    return {**example, "prompt": chosen[:start], "chosen": chosen[start:], "rejected": rejected[start:]}


def common_length(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return how many elements at the start of two sequences are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _part(example: Mapping[str, Any], name: str) -> Any:
    if name not in example:
        raise ArgumentError(f"a sample has no {name!r}, only {', '.join(example)}")
    return example[name]


def after(prompt: Any, answer: Any) -> Any:
    """Return an answer after its prompt.  Raises: ArgumentError unless both are texts, or both messages"""
    if isinstance(prompt, str) and isinstance(answer, str):
        return prompt + answer
    if isinstance(prompt, list) and isinstance(answer, list):
        return prompt + answer
    raise ArgumentError(
        f"a prompt is a {type(prompt).__name__}, and its answer a {type(answer).__name__}",
        hint="pass texts for both, or lists of messages",
    )


class Answer(NamedTuple):
    """The ids of a prompt, and of an answer with its end."""

    prompt: list[int]
    completion: list[int]


class Encoder:
    """Encodes samples with a tokenizer.

    Args:    tokenizer: with the ids of an end token; conversations need its chat template
    Raises:  ArgumentError without an end token
    """

    def __init__(self, tokenizer: Any) -> None:
        if tokenizer.eos_token is None:
            raise ArgumentError("the tokenizer has no eos_token", hint="set processing_class.eos_token")
        self.tokenizer = tokenizer
        self._warned = False

    def text(self, text: str) -> list[int]:
        """Return the ids of a text, special tokens included."""
        return list(self.tokenizer(text)["input_ids"])

    def with_end(self, text: Any) -> str:
        """Return a text that ends with the end token.  Raises: ArgumentError for what is no text"""
        if not isinstance(text, str):
            raise ArgumentError(f"a text of a sample is a {type(text).__name__}", hint="pass a string")
        end: str = self.tokenizer.eos_token
        return text if text.endswith(end) else text + end

    def chat(self, messages: list[Any], sample: Mapping[str, Any], **options: Any) -> Mapping[str, list[int]]:
        """Return the ids of a conversation, with the tools and the template's variables of its sample.

        Raises:  ArgumentError for tools that are no JSON; TokenizerError for what the template cannot write
        """
        tools = sample.get("tools")
        try:
            variables = {"tools": json.loads(tools) if isinstance(tools, str) else tools}
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"tools={tools!r:.80} is not JSON", hint="pass a list of tools, or its JSON") from error
        variables |= sample.get("chat_template_kwargs") or {}
        found: Mapping[str, list[int]] = self.tokenizer.apply_chat_template(
            messages, tokenize=True, return_dict=True, **variables, **options
        )
        return found

    def answers(self, sample: Sample, names: Sequence[str]) -> list[Answer]:
        """Return the prompt with each answer of a sample, as the parts `names`.

        The prompt is as long as its ids agree with those of prompt and answer, for all answers.
        """
        prompt = _part(sample, "prompt")
        given = [_part(sample, name) for name in names]
        if is_conversational(sample):
            start = list(self.chat(prompt, sample, add_generation_prompt=True)["input_ids"])
            whole = [list(self.chat(after(prompt, each), sample)["input_ids"]) for each in given]
        else:
            start = self.text(prompt)
            whole = [self.text(self.with_end(after(prompt, each))) for each in given]
        length = min(common_length(start, each) for each in whole)
        if length < len(start) and not self._warned:
            self._warned = True
            warn(
                "the ids of a prompt are not the beginning of those of prompt and answer; the answer begins where they "
                f"differ, and {self.tokenizer.decode(start[length:])!r:.80} is no part of the sample",
                TallowWarning,
            )
        return [Answer(each[:length], each[length:]) for each in whole]
