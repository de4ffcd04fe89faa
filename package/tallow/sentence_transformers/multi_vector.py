"""MultiVectorEncoder: vectors for each token of a text, for late interaction (ColBERT)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tallow.core.creation import from_numpy
from tallow.core.tensor import Tensor
from tallow.models.encoders.multi_vector import DOCUMENT, QUERY, max_sim
from tallow.models.encoders.multi_vector import MultiVectorEncoder as Encoder
from tallow.sentence_transformers.encoder_module import EncoderModule


class MultiVectorEncoder(EncoderModule):
    """Maps the tokens of a text to vectors.

    Args:
        model_name_or_path: the folder, or the `owner/repository` of the Hub, of a ColBERT.
        device, revision, token: as for SentenceTransformer.
        model_kwargs: {"dtype": ...}, {"quant": ...}.

    Raises:  as SentenceTransformer

    Example:
        model = MultiVectorEncoder("lightonai/GTE-ModernColBERT-v1")
        model.similarity(model.encode_query(["Where do cats sleep?"]), model.encode_document(["On sofas."]))
    """

    encoder_class = Encoder
    encoder: Encoder

    def __init__(
        self,
        model_name_or_path: str | Path,
        *,
        device: Any = None,
        revision: str | None = None,
        token: str | None = None,
        model_kwargs: dict[str, Any] | None = None,
        backend: str = "torch",
        **others: Any,
    ) -> None:
        super().__init__(
            model_name_or_path,
            device=device,
            revision=revision,
            token=token,
            model_kwargs=model_kwargs,
            backend=backend,
            others=others,
        )

    def encode(
        self,
        inputs: str | Sequence[str],
        prompt: str | None = None,
        batch_size: int = 32,
        convert_to_numpy: bool = False,
        task: str | None = None,
    ) -> Any:
        """Return the vectors of each text.

        Args:
            prompt: what to write before each text in place of the model's prompt.
            batch_size: how many texts, of about the same length, to compute at once.
            convert_to_numpy: arrays in place of tensors.
            task: "query" or "document"; None means "document".

        Shapes:  a list of (T, D) for a list of texts, (T, D) for a single string
        Raises:  ArgumentError for a batch_size below 1 and another task; TokenizerError; NumericError
        """
        self.encoder.model.eval()
        arrays = self.encoder.encode(inputs, side=task or DOCUMENT, batch_size=batch_size, prompt=prompt)
        found: list[Any] = [*arrays] if convert_to_numpy else [from_numpy(array) for array in arrays]
        return found[0] if isinstance(inputs, str) else found

    def encode_query(
        self,
        inputs: str | Sequence[str],
        prompt: str | None = None,
        batch_size: int = 32,
        convert_to_numpy: bool = False,
    ) -> Any:
        """Return the vectors of queries; as `encode`."""
        return self.encode(inputs, prompt, batch_size, convert_to_numpy, QUERY)

    def encode_document(
        self,
        inputs: str | Sequence[str],
        prompt: str | None = None,
        batch_size: int = 32,
        convert_to_numpy: bool = False,
    ) -> Any:
        """Return the vectors of documents; as `encode`."""
        return self.encode(inputs, prompt, batch_size, convert_to_numpy, DOCUMENT)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Return the score of each document for each query.

        Args:    embeddings1, embeddings2: the vectors of queries and of documents; of one text, or a list
        Shapes:  lists of N and M (T, D) -> (N, M)
        """
        return from_numpy(max_sim(_arrays(embeddings1), _arrays(embeddings2)))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Return the score of each document for the query in its place.

        Shapes:  lists of N (T, D) -> (N,)
        """
        pairs = zip(_arrays(embeddings1), _arrays(embeddings2), strict=True)
        return from_numpy(np.array([max_sim([query], [document])[0, 0] for query, document in pairs], np.float32))


def _arrays(vectors: Any) -> list[Any]:
    """Return the array of each text."""
    rows = vectors if isinstance(vectors, list | tuple) or vectors.ndim == 3 else [vectors]
    return [row.cpu().numpy() if isinstance(row, Tensor) else np.asarray(row, np.float32) for row in rows]
