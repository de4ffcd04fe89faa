"""Vectors for each token of a text, for late interaction (ColBERT): a document's score is the sum over the query's
tokens of the greatest product with one of the document's.

Letters: N texts, T tokens, D width.

Source:  Khattab and Zaharia 2020, arXiv:2004.12832; files as in `multi_vector_folder`
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, NumericError
from tallow.io.model_folder import load_folder
from tallow.models import loading
from tallow.models.encoders.bert import BertModel
from tallow.models.encoders.multi_vector_folder import Expansion, Side, read_folder
from tallow.models.text_batches import TextBatches, Vectors, buckets, length_limit
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.text.marks import Encoded
from tallow.text.tokenizer import Tokenizer

QUERY, DOCUMENT = "query", "document"
TOKENS = 1 << 15  # of documents whose products with a query are in memory at once
PROJECTION = "linear.weight"  # of the original code, in the file of the encoder


class MultiVectorEncoder(TextBatches, loading.FromPretrained):
    """Maps the tokens of a text to vectors of length 1; loads folders of ColBERT, PyLate,
    sentence-transformers and BGE-M3.

    Args:
        tokenizer, model: an encoder, such as a BERT, or a decoder without a head.
        heads: modules for the vector of each token, in order.
        sides: how queries and documents are encoded, by name: "query" and "document".
        max_length: the most tokens of a text whose side has no limit.
        lowercase: convert texts to lower case first.

    Example:
        encoder = MultiVectorEncoder.from_pretrained("colbert-ir/colbertv2.0")
        queries = encoder.encode(["Where do cats sleep?"], side="query")
        max_sim(queries, encoder.encode(["Cats sleep on sofas.", "The bank is closed."]))
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Module,
        heads: Sequence[Module],
        sides: dict[str, Side],
        *,
        max_length: int | None = None,
        lowercase: bool = False,
    ) -> None:
        super().__init__(tokenizer, model, max_length, lowercase=lowercase)
        self.heads = tuple(heads)
        self.sides = sides

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        files = read_folder(path, load_folder)
        tensors = dict(load_folder(files.place))
        projection = tensors.pop(PROJECTION, None) if files.is_original else None
        unused: dict[str, Any] = {"add_pooling_layer": False} if issubclass(files.kind, BertModel) else {}
        model = loading.read(files.kind, files.place, dtype, device, quant, strict, tensors, **unused)
        head_dtype = dtype or (next(model.parameters()).dtype if quant is None else dtypes.float32)
        heads = files.heads(projection)
        heads = [head.to(devices.chosen(device), dtype=head_dtype).eval() for head in heads]
        tokenizer = Tokenizer.from_pretrained(files.place)
        positions = getattr(model, "context_length", None)
        limit = length_limit(files.texts.get("max_seq_length"), tokenizer, positions)
        lowercase = files.texts.get("do_lower_case") is True
        return cls(tokenizer, model, heads, files.sides(tokenizer, positions), max_length=limit, lowercase=lowercase)

    def encode(
        self, texts: str | Sequence[str], *, side: str = DOCUMENT, batch_size: int = 32, prompt: str | None = None
    ) -> list[Vectors]:
        """Return the vectors of each text, without those of tokens that are left out, such as punctuation.

        Args:
            side: "query" or "document".
            batch_size: how many texts, of about the same length, to compute at once.
            prompt: what to write before texts in place of the side's prompt.

        Shapes:  N arrays (T, D)
        Raises:  ArgumentError for a batch_size below 1 and an unknown side; TokenizerError; NumericError when a vector
                 holds NaN or infinities
        """
        if side not in self.sides:
            raise ArgumentError(f"side={side!r:.80}", hint=f'pass "{QUERY}" or "{DOCUMENT}"')
        if batch_size < 1:
            raise ArgumentError(f"batch_size={batch_size}", hint="pass 1 or more")
        how = self.sides[side]
        plain = self._encoded([texts] if isinstance(texts, str) else texts, how, prompt)
        rows = [row if how.expansion is None else how.expansion.expand(row) for row in plain]
        arrays: dict[int, Vectors] = {}
        for members in buckets(rows, batch_size, None):
            for i, vectors in zip(members, self._embed(members, plain, rows, how.expansion), strict=True):
                ids = np.array(rows[i].ids)
                arrays[i] = vectors[: len(ids)][~np.isin(ids, how.skipped)]
        return [arrays[i] for i in range(len(rows))]

    def _encoded(self, texts: Sequence[str], how: Side, prompt: str | None) -> list[Encoded]:
        """Return the tokens of texts after a prompt, with the marker of their side."""
        before = how.prompt if prompt is None else prompt
        limit = how.length or self.max_length
        marks = [] if how.marker is None or prompt is not None else [how.marker]
        room = None if limit is None else limit - len(marks)
        rows = self.tokenizer.encode_each(self.prepare([before + text for text in texts]), max_length=room)
        first = how.first
        return [
            Encoded([*row.ids[:first], *marks, *row.ids[first:]], [*row.segments[:1] * len(marks), *row.segments])
            for row in rows
        ]

    def _embed(
        self, members: Sequence[int], plain: Sequence[Encoded], rows: Sequence[Encoded], expansion: Expansion | None
    ) -> Vectors:
        """Return the vectors (N, T, D) of a batch."""
        batch = self.tokenizer.pad([rows[i] for i in members], side="right")
        if expansion is not None and not expansion.attend:
            for row, i in enumerate(members):
                batch.attention_mask[row, len(plain[i].ids) :] = 0
        hidden, _ = self.run(batch)
        x_NTD: Any = hidden if isinstance(hidden, Tensor) else hidden.last_hidden_state
        with no_grad():
            for head in self.heads:
                x_NTD = head(x_NTD)
            vectors = F.normalize(x_NTD.float(), dim=-1).cpu().numpy()
        if not np.isfinite(vectors).all():
            raise NumericError(
                "a vector holds NaN or infinities", hint="check the weights: tallow inspect --check FILE"
            )
        return vectors


def max_sim(queries: Sequence[Vectors], documents: Sequence[Vectors]) -> npt.NDArray[np.float32]:
    """Return the scores of documents for queries: the sum over a query's tokens of the greatest product with a token of
    the document; 0 for a document without tokens.

    Shapes:  N arrays (T, D), M arrays (T, D) -> (N, M)
    """
    scores = np.zeros((len(queries), len(documents)), np.float32)
    group: list[int] = []
    size = 0
    for i, document in enumerate(documents):
        if group and size + len(document) > TOKENS:
            _score(scores, queries, documents, group)
            group, size = [], 0
        if len(document):
            group.append(i)
            size += len(document)
    if group:
        _score(scores, queries, documents, group)
    return scores


def _score(
    scores: npt.NDArray[np.float32], queries: Sequence[Vectors], documents: Sequence[Vectors], group: Sequence[int]
) -> None:
    """Write the scores of a group of documents."""
    starts = np.cumsum([0, *(len(documents[i]) for i in group[:-1])])
    tokens = np.concatenate([documents[i] for i in group])
    for row, query in zip(scores, queries, strict=True):
        row[group] = np.maximum.reduceat(query @ tokens.T, starts, axis=1).sum(0)
