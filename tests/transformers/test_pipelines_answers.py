"""Question answering, which version 5 of transformers took out: the spans of its document pipeline, and the documented
results of version 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both
from tests.transformers.folders import Folders

from tallow.errors import ArgumentError

pytestmark = pytest.mark.filterwarnings("ignore:the text has")
CONTEXT = "The cat sat on the mat. A dog ran in the rain."
LONG = {"max_position_embeddings": 128, "num_labels": 2}
QUESTION = "where did the cat sit?"


def expected(tf: Any, torch: Any, folder: str, top_k: int = 1, longest: int = 15, question: str = QUESTION) -> Any:
    """Return the answers by the model and the functions of transformers' pipeline for documents."""
    from transformers.pipelines.document_question_answering import select_starts_ends

    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    model = tf.AutoModelForQuestionAnswering.from_pretrained(folder)
    encoded = tokenizer(question, CONTEXT, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        logits = model(**encoded)
    mask = np.array([[which != 1 for which in encoded.sequence_ids(0)]])
    mask[encoded["input_ids"].numpy() == tokenizer.cls_token_id] = False
    starts, ends, scores, null = select_starts_ends(
        logits.start_logits.numpy(),
        logits.end_logits.numpy(),
        mask,
        np.ones_like(mask, int),
        1000000,
        top_k,
        True,
        longest,
    )
    found: dict[str, Any] = {}
    for first, last, score in zip(starts, ends, scores, strict=True):
        words = encoded.token_to_word(0, int(first)), encoded.token_to_word(0, int(last))
        begin = encoded.word_to_chars(0, words[0], sequence_index=1)[0] if None not in words else offsets[first][0]
        end = encoded.word_to_chars(0, words[1], sequence_index=1)[1] if None not in words else offsets[last][1]
        answer = {"score": float(score), "start": begin, "end": end, "answer": CONTEXT[begin:end]}
        known = found.setdefault(answer["answer"].lower(), answer)
        if known is not answer:
            known["score"] += float(score)
    return sorted(found.values(), key=lambda each: -each["score"]), float(null)


def answering(folder: str, **options: Any) -> Any:
    import tallow as tl

    return tl.pipeline("question-answering", model=folder, device=-1, **options)


@pytest.mark.parametrize("name", ["BertForQuestionAnswering", "RobertaForQuestionAnswering"])
@pytest.mark.parametrize(("top_k", "longest"), [(1, 15), (3, 15), (2, 1)])
def test_answers_by_transformers_spans(folders: Folders, name: str, top_k: int, longest: int) -> None:
    folder = folders(name, **LONG)

    def program(tf: Any, torch: Any) -> Any:
        if tf.__name__ == "transformers":
            answers, _ = expected(tf, torch, folder, top_k, longest)
            return answers[0] if len(answers) == 1 else answers
        pipe = answering(folder)
        return pipe(question=QUESTION, context=CONTEXT, top_k=top_k, max_answer_len=longest, max_seq_len=64)

    both(program)


def test_no_answer_may_be_the_best(folders: Folders) -> None:
    folder = folders("BertForQuestionAnswering", **LONG)

    def program(tf: Any, torch: Any) -> Any:
        if tf.__name__ == "transformers":
            answers, null = expected(tf, torch, folder, 2)
            return sorted([*answers, {"score": null, "start": 0, "end": 0, "answer": ""}], key=lambda a: -a["score"])[
                :2
            ]
        pipe = answering(folder)
        return pipe(question=QUESTION, context=CONTEXT, handle_impossible_answer=True, top_k=2, max_seq_len=64)

    both(program)


def test_forms_of_calls_agree(folders: Folders) -> None:
    pipe = answering(folders("BertForQuestionAnswering", **LONG))
    one = pipe(question=QUESTION, context=CONTEXT)
    assert list(one) == ["score", "start", "end", "answer"]
    assert CONTEXT[one["start"] : one["end"]] == one["answer"]
    assert pipe({"question": QUESTION, "context": CONTEXT}) == one
    assert pipe([{"question": QUESTION, "context": CONTEXT}]) == one
    several = pipe(question=[QUESTION, "who ran?"], context=CONTEXT)
    assert several[0] == one
    assert several[1] == pipe(question="who ran?", context=[CONTEXT])


def test_long_context_is_read_in_parts(folders: Folders) -> None:
    """The answer of a context that fits is found in a longer one, whose parts overlap."""
    pipe = answering(folders("BertForQuestionAnswering", **LONG))
    found = pipe(question="who?", context=CONTEXT * 3, max_seq_len=20, doc_stride=4, top_k=4)
    assert len(found) == 4
    assert all((CONTEXT * 3)[each["start"] : each["end"]] == each["answer"] for each in found)
    assert any(each["start"] > len(CONTEXT) for each in found)


@pytest.mark.parametrize("example", [{"question": "a"}, {"question": "", "context": "b"}, {}])
def test_example_without_both_is_refused(folders: Folders, example: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match=r"an example has no (question|context)"):
        answering(folders("BertForQuestionAnswering", **LONG))(example)
