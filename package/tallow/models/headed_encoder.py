"""The base of classes that load an encoder with one of its heads, and the tokenizer, from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from tallow.errors import CheckpointError
from tallow.hub import local_folder
from tallow.models.auto import model_class
from tallow.models.pretrained import PretrainedModel
from tallow.models.quantize import block_format
from tallow.models.text_batches import TextBatches, length_limit
from tallow.text.tokenizer import Tokenizer


class HeadedEncoder(TextBatches):
    """An encoder with a head, and its tokenizer.

    Attributes:
        kinds: the classes of models to take.
        lacks, choose: what another class of model lacks, for an error, and the hint.
    """

    kinds: ClassVar[tuple[type[PretrainedModel], ...]]
    lacks: ClassVar[str]
    choose: ClassVar[str]

    def __init__(self, tokenizer: Tokenizer, model: Any, *, max_length: int | None = None) -> None:
        super().__init__(tokenizer, model, max_length)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        dtype: Any = None,
        device: Any = None,
        *,
        quant: str | None = None,
        revision: str | None = None,
        token: str | None = None,
    ) -> Self:
        """Load the folder of a model of this kind.

        Args:    as in `SentenceEncoder.from_pretrained`
        Raises:  CheckpointError for a folder of another kind; ArgumentError for an unknown `quant`; TokenizerError,
                 MissingPackageError, HubError
        """
        if quant is not None:
            block_format(quant, device)  # an error here comes before a download
        folder = local_folder(name, revision=revision, token=token)
        kind = model_class(folder)
        if not issubclass(kind, cls.kinds):
            raise CheckpointError(f"{folder}: {kind.__name__} {cls.lacks}", hint=cls.choose)
        model = kind.from_pretrained(folder, dtype, device, quant=quant)
        tokenizer = Tokenizer.from_pretrained(folder)
        most = int(getattr(model, model.base_model_prefix).context_length)
        return cls(tokenizer, model, max_length=length_limit(None, tokenizer, most))
