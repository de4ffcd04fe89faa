"""Embedding layers: look up vectors by index."""

from __future__ import annotations

from typing import Any

from tallow.autograd import no_grad
from tallow.core.tensor import Tensor
from tallow.errors import FailedAssertionError, ShapeError
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter, empty_parameter
from tallow.ops.dims import as_int


class _EmbeddingTable(Module):
    """Base of embedding layers: the table of vectors and its options."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        weight: Tensor | None,
        freeze: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        num_embeddings, embedding_dim = as_int(num_embeddings, name), as_int(embedding_dim, name)
        padding_idx = None if padding_idx is None else as_int(padding_idx, name)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise FailedAssertionError(f"padding_idx={padding_idx} is out of range for {num_embeddings} embeddings")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if weight is None:
            self.weight = empty_parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.weight.requires_grad_(not freeze)
            self.reset_parameters()
        elif tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise ShapeError(f"weight has shape {tuple(weight.shape)}, expected {(num_embeddings, embedding_dim)}")
        else:
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw from N(0, 1) and set the padding row to zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None and self.weight.device.type != "meta":
            with no_grad():
                self.weight[self.padding_idx] = 0.0


class Embedding(_EmbeddingTable):
    """A table of vectors, looked up by index.

    Args:
        padding_idx: a row that starts at zero and gets no gradient.
        max_norm: scale the rows of a lookup down to this norm first, in place.
        scale_grad_by_freq: divide the gradient of a row by its count in the batch.

    Shapes:  input (*) of integers -> (*, embedding_dim);  weight (num_embeddings, embedding_dim)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight, _freeze, device, dtype,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Create an embedding that shares memory with `embeddings`; it is trained only with freeze=False.

        Shapes:  embeddings (num_embeddings, embedding_dim)
        """
        return cls(
            *_size_of(embeddings), padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [
            f"{self.num_embeddings}, {self.embedding_dim}",
            f"padding_idx={self.padding_idx}" if self.padding_idx is not None else "",
            f"max_norm={self.max_norm}" if self.max_norm is not None else "",
            f"norm_type={self.norm_type}" if self.norm_type != 2 else "",
            f"scale_grad_by_freq={self.scale_grad_by_freq}" if self.scale_grad_by_freq else "",
        ]
        return ", ".join(filter(None, parts))


class EmbeddingBag(_EmbeddingTable):
    """The sum, mean or maximum of the embeddings in each bag of indices, without materializing the embeddings.

    Args:    as torch.nn.EmbeddingBag; mode: "sum", "mean" or "max"; the rest as Embedding. Indices equal to
             padding_idx are ignored.
    Shapes:  input (B, N), one bag per row; or (N) with offsets (B), the start of each bag -> (B, embedding_dim);
             per_sample_weights as input, for mode "sum"
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight, False, device, dtype,
        )  # fmt: skip
        self.mode = mode
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Create an embedding bag that shares memory with `embeddings`; it is trained only with freeze=False."""
        bag = cls(
            *_size_of(embeddings), max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
            include_last_offset, padding_idx,
        )  # fmt: skip
        bag.weight.requires_grad_(not freeze)
        return bag

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [
            f"{self.num_embeddings}, {self.embedding_dim}",
            f"max_norm={self.max_norm}" if self.max_norm is not None else "",
            f"norm_type={self.norm_type}" if self.norm_type != 2 else "",
            f"scale_grad_by_freq={self.scale_grad_by_freq}" if self.scale_grad_by_freq else "",
            f"mode={self.mode!r}",
            f"padding_idx={self.padding_idx}" if self.padding_idx is not None else "",
        ]
        return ", ".join(filter(None, parts))


def _size_of(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        raise ShapeError(f"from_pretrained: expected (num_embeddings, embedding_dim), got {tuple(embeddings.shape)}")
    rows, columns = embeddings.shape
    return rows, columns
