"""Retrieval on the test set, compared with TF-IDF: find the one text of a pair among all others by the other one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .corpus import Corpus

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Task:
    """Queries, and the answer of each."""

    name: str
    queries: list[str]
    answers: list[str]


@dataclass(frozen=True)
class Score:
    """Shares of queries whose answer is first, or among the first ten; and the mean of 1 / rank."""

    first: float
    among_ten: float
    reciprocal_rank: float


def tasks(corpus: Corpus) -> list[Task]:
    """Return the tasks; no text of them is in a training pair."""
    tests = [corpus.synsets[key] for key in corpus.held_out]
    several = [synset for synset in tests if len(synset.examples) > 1]
    known = [(s, corpus.synsets[s.broader[0]]) for s in tests if s.broader and s.broader[0] not in corpus.held_out]
    return [
        Task("gloss of an example", [s.examples[0] for s in tests], [s.gloss for s in tests]),
        Task("other example of a word", [s.examples[0] for s in several], [s.examples[1] for s in several]),
        Task("gloss of words", [", ".join(s.names) for s in tests], [s.gloss for s in tests]),
        Task("gloss of a broader word", [s.gloss for s, _ in known], [broader.gloss for _, broader in known]),
    ]


def score(task: Task, encode: Encode) -> Score:
    """Rank all answers of a task by cosine. A text that occurs twice is one answer; ties count half."""
    answers = list(dict.fromkeys(task.answers))
    at = {answer: i for i, answer in enumerate(answers)}
    scores = encode(task.queries) @ encode(answers).T
    right = scores[np.arange(len(task.queries)), [at[answer] for answer in task.answers]][:, None]
    ranks = 1 + (scores > right).sum(1) + ((scores == right).sum(1) - 1) / 2
    return Score(float((ranks <= 1).mean()), float((ranks <= 10).mean()), float((1 / ranks).mean()))


class TfIdf:
    """Vectors with a dimension for each word: (1 + ln count) ln(N / texts with the word), of length 1."""

    def __init__(self, texts: Iterable[str]) -> None:
        documents = [set(_words(text)) for text in texts]
        self._count = len(documents)
        self._containing = Counter(word for words in documents for word in words)
        self._at: dict[str, int] = {}

    def encode_pair(self, task: Task) -> Encode:
        """Return an encoder for the words of a task."""
        words = sorted({word for text in (*task.queries, *task.answers) for word in _words(text)})
        self._at = {word: i for i, word in enumerate(words)}
        return self._encode

    def _encode(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), len(self._at)), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word, count in Counter(_words(text)).items():
                rarity = math.log((1 + self._count) / (1 + self._containing[word]))
                row[self._at[word]] = (1 + math.log(count)) * rarity
        return vectors / np.maximum(1e-9, np.linalg.norm(vectors, axis=1, keepdims=True))


def table(corpus: Corpus, encode: Encode) -> str:
    """Return the scores of the model and of TF-IDF as a Markdown table."""
    tf_idf = TfIdf(corpus.pairs.texts)
    lines = ["| find the ... | among | model | TF-IDF | model, first ten | TF-IDF, first ten |", "| --- " * 6 + "|"]
    for task in tasks(corpus):
        mine, other = score(task, encode), score(task, tf_idf.encode_pair(task))
        shares = (mine.first, other.first, mine.among_ten, other.among_ten)
        cells = (task.name, f"{len(set(task.answers)):,}", *(f"{share:.1%}" for share in shares))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _words(text: str) -> list[str]:
    return WORD.findall(text.lower())
