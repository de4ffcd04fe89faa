"""The base of classes that load an encoder with one of its heads, and the tokenizer, from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from tallow.errors import CheckpointError
from tallow.models import loading
from tallow.models.auto import model_class
from tallow.models.encoders.sentence_folder import PROMPTS, prompts_of, text_config
from tallow.models.pretrained import PretrainedModel
from tallow.models.text_batches import TextBatches, length_limit
from tallow.text.tokenizer import Tokenizer


class HeadedEncoder(TextBatches, loading.FromPretrained):
    """An encoder with a head, and its tokenizer.

    Attributes:
        kinds: the classes of models to take.
        lacks, choose: what another class of model lacks, for an error, and the hint.
    """

    kinds: ClassVar[tuple[type[PretrainedModel], ...]]
    lacks: ClassVar[str]
    choose: ClassVar[str]

    def __init__(
        self, tokenizer: Tokenizer, model: Any, *, max_length: int | None = None, lowercase: bool = False
    ) -> None:
        super().__init__(tokenizer, model, max_length, lowercase=lowercase)

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        kind = model_class(path)
        if not issubclass(kind, cls.kinds):
            raise CheckpointError(f"{path}: {kind.__name__} {cls.lacks}", hint=cls.choose)
        options = cls.options_of(path)
        model = loading.read(kind, path, dtype, device, quant, strict)
        tokenizer = Tokenizer.from_pretrained(path)
        most = int(getattr(model, model.base_model_prefix).context_length)
        _, texts = text_config(path)
        limit = length_limit(texts.get("max_seq_length"), tokenizer, most)
        return cls(tokenizer, model, max_length=limit, lowercase=texts.get("do_lower_case") is True, **options)

    @classmethod
    def options_of(cls, folder: Path) -> dict[str, Any]:
        """Return arguments of the class by the files of sentence-transformers.  Raises: CheckpointError"""
        written = prompts_of(folder)
        if written["prompts"].get(written["default_prompt"]):
            raise CheckpointError(
                f"{folder / PROMPTS}: default_prompt_name is {written['default_prompt']!r:.80}; {cls.__name__} writes "
                "no prompt before texts"
            )
        return {}
