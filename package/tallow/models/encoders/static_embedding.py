"""Static embeddings: a table with a vector for each token. The vector of a text is the mean of its tokens' vectors.

Loads the module `StaticEmbedding` of sentence-transformers folders, with the tensor names of sentence-transformers and
of model2vec. Matrices of integers, as model2vec quantises them, become floats: their common scale does not change
cosines.

Letters: B batch, T positions, D width, V vocabulary.

Source:  sentence-transformers' `StaticEmbedding`; https://github.com/MinishLab/model2vec
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.models import loading
from tallow.nn.embedding import Embedding
from tallow.nn.module import Module

WEIGHT, MODEL2VEC = "embedding.weight", "embeddings"


class StaticEmbedding(Module):
    """The vectors of tokens; a `Pooling` takes their mean.

    Args:    as Embedding
    Shapes:  tokens (B, T) -> (B, T, D)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.embedding = Embedding(num_embeddings, embedding_dim, device=device, dtype=dtype)

    @classmethod
    def assemble(
        cls, state: Mapping[str, Tensor], dtype: Any = None, device: Any = None, source: str = "state dict"
    ) -> StaticEmbedding:
        """Build a table from the tensors of a checkpoint.

        Args:
            dtype: None means as in the file, and float32 for integers.
            source: the origin of the state, for error messages.

        Raises:  CheckpointError for other tensors than one matrix
        """
        old = MODEL2VEC if WEIGHT not in state else WEIGHT  # with both, one is unexpected
        names = {WEIGHT if name == old else name: tensor for name, tensor in state.items()}
        table = names.get(WEIGHT)
        if table is None or table.ndim != 2:
            raise CheckpointError(f"{source}: there is no matrix {WEIGHT}, as static embeddings have")
        if dtype is None and not table.is_floating_point():
            dtype = dtypes.float32
        rows, width = table.shape
        model = cls(rows, width, device="meta")
        converted = names if dtype is None else names | {WEIGHT: table.to(dtypes.as_dtype(dtype))}
        return loading.take(model, converted, None, device, source)

    def forward(self, tokens_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        return self.embedding(tokens_BT)

    def quantize(self, quant: str, dtype: Any = None) -> StaticEmbedding:
        """Raise ArgumentError: there are no products to quantise."""
        raise ArgumentError(
            f"quant={quant!r}: a StaticEmbedding has no Linear layers to quantise", hint="load it without quant"
        )

    def num_parameters(self) -> int:
        """Return the number of weights."""
        return self.embedding.weight.numel()

    def explain(self) -> None:
        """Print that the model looks up rows of a table."""
        print(f"StaticEmbedding on {self.embedding.weight.device}: rows of a table, nothing to fuse")
