"""The base of modules around an encoder of `tallow.models`, whose weights and tokenizer they offer."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from tallow import devices, transformers
from tallow.nn.module import Module
from tallow.sentence_transformers.model import check_options, weights_of


class EncoderModule(Module):
    """Loads an encoder.

    Args:
        name: a folder, or an `owner/repository` of the Hub.
        model_kwargs: {"dtype": ...}, {"quant": ...}.
        others: arguments of the constructor that sentence-transformers has; see `check_options`.

    Attributes:
        encoder_class: its class in `tallow.models`.
        encoder, auto_model: the encoder, and the model in it.

    Raises:  as SentenceTransformer
    """

    encoder_class: ClassVar[Any]

    def __init__(
        self,
        name: str | Path,
        *,
        device: Any,
        revision: str | None,
        token: str | None,
        model_kwargs: dict[str, Any] | None,
        backend: str,
        others: dict[str, Any],
    ) -> None:
        check_options(backend, others)
        super().__init__()
        dtype, quant = weights_of(model_kwargs)
        self.encoder = self.encoder_class.from_pretrained(
            name, dtype, device, quant=quant, revision=revision, token=token
        )
        self.auto_model = self.encoder.model

    @property
    def device(self) -> devices.device:
        """The device of the weights."""
        return next(self.encoder.model.parameters()).device

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer, with transformers' methods."""
        return transformers.AutoTokenizer.from_pretrained(self.encoder.model.folder)
