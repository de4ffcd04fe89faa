"""The place in a text that answers a question. Version 5 of transformers took this task out; arguments and results are
those of version 4.

Letters: T positions.

Source:  Devlin et al. 2019, arXiv:1810.04805, section 4.2; Chen et al. 2017, arXiv:1704.00051 (the longest answer)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError
from tallow.transformers.pipelines.base import ChunkPipeline
from tallow.transformers.pipelines.scores import Floats, floats, softmax

MASKED = -10000.0
LONGEST = 384  # tokens of the question and a part of the context


class QuestionAnsweringPipeline(ChunkPipeline):
    """Answers questions by a part of a context: {"score", "start", "end", "answer"}.

    Args of the constructor and of calls:
        top_k (or topk): how many answers; with more than one, a list.
        doc_stride: how many tokens the parts of a long context have in common; at most 128 by default.
        max_answer_len: the most tokens of an answer; 15 by default.
        max_seq_len: the most tokens of a question with a part of its context; 384 by default.
        max_question_len: cut questions to so many tokens; by default they are not cut.
        handle_impossible_answer: the empty answer may be the best.
        align_to_words: answers are whole words; True by default.
        padding: as in the tokenizer.
    """

    def __call__(self, inputs: Any = None, *, question: Any = None, context: Any = None, **arguments: Any) -> Any:
        """Return the answer to a question, or a list for several.

        Args:    inputs: a dict with `question` and `context`, or a list of them; or else pass both by name
        Raises:  ArgumentError for an example without both, and lists of different lengths; as `Pipeline`
        """
        examples = examples_of(inputs, question, context)
        return super().__call__(examples[0] if len(examples) == 1 else examples, **arguments)

    def _sanitize_parameters(self, topk: int | None = None, **arguments: Any) -> Any:
        if topk is not None:
            arguments.setdefault("top_k", topk)
        for name in ("top_k", "max_answer_len"):
            if arguments.get(name, 1) < 1:
                raise ArgumentError(f"{name}={arguments[name]}", hint="pass 1 or more")
        return super()._sanitize_parameters(**arguments)

    def preprocess(
        self,
        example: Mapping[str, str],
        padding: Any = "do_not_pad",
        doc_stride: int | None = None,
        max_question_len: int | None = None,
        max_seq_len: int | None = None,
    ) -> Iterator[Any]:
        limit = min(self.tokenizer.model_max_length, LONGEST) if max_seq_len is None else max_seq_len
        question_first = self.tokenizer.padding_side == "right"
        order = (self._cut(example["question"], max_question_len), example["context"])
        # What a question leaves of the limit is for a part of the context.
        twice = len(self.tokenizer(order[0], order[0], verbose=False)["input_ids"])
        room = limit - twice + len(self.tokenizer(order[0], add_special_tokens=False)["input_ids"])
        stride = max(min(limit // 2, 128, room - 1), 0) if doc_stride is None else doc_stride
        encoded = self.tokenizer(
            *(order if question_first else order[::-1]),
            padding=padding,
            truncation="only_second" if question_first else "only_first",
            max_length=limit,
            stride=stride,
            return_token_type_ids=True,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        inputs = [name for name in self.tokenizer.model_input_names if name in encoded]
        which = 1 if question_first else 0
        for i in range(len(encoded["input_ids"])):
            in_context = np.array([sequence == which for sequence in encoded.sequence_ids(i)])
            in_context |= np.array(encoded["input_ids"][i]) == self.tokenizer.cls_token_id
            row = {name: tl.tensor([encoded[name][i]]) for name in inputs}
            yield {**row, "answers": [example["context"], in_context, encoded, i, which]}

    def _cut(self, question: str, most: int | None) -> str:
        """Return the first tokens of a question."""
        if most is None:
            return question
        encoded = self.tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)
        return question[: max((end for _, end in encoded["offset_mapping"][:most]), default=0)]

    def _forward(self, model_inputs: Any) -> Any:
        logits = self.run(model_inputs)
        return {"start": logits.start_logits, "end": logits.end_logits, "mask": model_inputs.get("attention_mask")}

    def postprocess(
        self,
        model_outputs: list[Any],
        top_k: int = 1,
        max_answer_len: int = 15,
        handle_impossible_answer: bool = False,
        align_to_words: bool = True,
    ) -> Any:
        found: dict[str, dict[str, Any]] = {}
        impossible = 1000000.0
        for part in model_outputs:
            context, allowed, encoded, i, which = part["answers"]
            length = len(allowed)
            if part["mask"] is not None:
                allowed = allowed & (part["mask"][0].numpy()[:length] == 1)
            start, end = (
                softmax(np.where(allowed, floats(part[name][0])[:length], np.float32(MASKED)))
                for name in ("start", "end")
            )
            impossible = min(impossible, float(start[0] * end[0]))
            start[0] = end[0] = 0.0
            for first, last, score in spans(start, end, top_k, max_answer_len, allowed):
                begin, stop = _place(encoded, i, first, last, which, align_to_words)
                answer = {"score": score, "start": begin, "end": stop, "answer": context[begin:stop]}
                known = found.setdefault(answer["answer"].lower(), answer)
                if known is not answer:  # the same words elsewhere, or in the next part
                    known["score"] += score
        answers = list(found.values())
        if handle_impossible_answer:
            answers.append({"score": impossible, "start": 0, "end": 0, "answer": ""})
        answers = sorted(answers, key=lambda each: -each["score"])[:top_k]
        return answers[0] if len(answers) == 1 else answers


def spans(start_T: Floats, end_T: Floats, count: int, longest: int, allowed_T: Any) -> Iterator[tuple[int, int, float]]:
    """Yield the first and last token of the likeliest answers, and the probability of each."""
    both = np.tril(np.triu(np.outer(start_T, end_T)), longest - 1)
    order = np.argsort(-both.reshape(-1), kind="stable")[:count]
    for first, last in zip(*np.unravel_index(order, both.shape), strict=True):
        if allowed_T[first] and allowed_T[last]:
            yield int(first), int(last), float(both[first, last])


def _place(encoded: Any, i: int, first: int, last: int, which: int, by_words: bool) -> tuple[int, int]:
    """Return where an answer starts and ends in its context: with the words of its first and last token."""
    if by_words:
        words = encoded.token_to_word(i, first), encoded.token_to_word(i, last)
        if None not in words:
            places = [encoded.word_to_chars(i, word, sequence_index=which) for word in words]
            if None not in places:
                return int(places[0][0]), int(places[1][1])
    offsets = encoded["offset_mapping"][i]
    return offsets[first][0], offsets[last][1]


def examples_of(inputs: Any, question: Any, context: Any) -> list[dict[str, str]]:
    """Return the examples of a call as a list.  Raises: ArgumentError"""
    if inputs is None:
        if question is None or context is None:
            raise ArgumentError("question answering needs a question and a context", hint="pass both by name")
        questions = question if isinstance(question, list) else [question]
        contexts = context if isinstance(context, list) else [context] * len(questions)
        if len(questions) != len(contexts):
            raise ArgumentError(f"{len(questions)} questions and {len(contexts)} contexts", hint="pass as many of both")
        inputs = [{"question": q, "context": c} for q, c in zip(questions, contexts, strict=True)]
    examples: list[Any] = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    for each in examples:
        for name in ("question", "context"):
            if not isinstance(each.get(name), str) or not each[name]:
                raise ArgumentError(
                    f"an example has no {name}: {each!r:.200}", hint="its question and context are texts"
                )
    return examples
