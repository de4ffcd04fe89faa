"""The base of models that generate text: the tokenizer, the settings of the folder, and constraints."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tallow.errors import TokenizerError
from tallow.models.generation_config import GenerationConfig
from tallow.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # pages and commands that constrain nothing do not import it
    from tallow.generation.constrain import Constraint, Grammar, Vocabulary


class TextGeneration:
    """The files of a model that generates text, read at first use.

    Attributes:
        generation_class: reads `generation_config.json`.
    """

    generation_class: ClassVar[type[GenerationConfig]] = GenerationConfig
    config: Any
    folder: Path | None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the folder that the model was loaded from, read at first use. It can be set.

        Raises:  TokenizerError when there is none; MissingPackageError
        """
        if self.folder is None:
            raise TokenizerError(
                "the model was not loaded from a folder, so it has no tokenizer",
                hint="set one: model.tokenizer = Tokenizer.from_pretrained(folder)",
            )
        return Tokenizer.from_pretrained(self.folder)

    @cached_property
    def generation_config(self) -> GenerationConfig:
        """The generation settings of the folder that the model was loaded from.

        Raises:  CheckpointError when its `generation_config.json` is invalid
        """
        return self.generation_class.from_folder(self.folder)

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a text, from the model's config, its `generation_config.json` and its tokenizer.

        Raises:  CheckpointError, TokenizerError when one of those files is invalid
        """
        ids = [*self.config.eos_token_id, *self.generation_config.eos_token_id, self.tokenizer.eos_token_id]
        return frozenset(token for token in ids if isinstance(token, int))

    def constraint(self, grammar: Grammar) -> Constraint:
        """Return the logits processor that keeps texts within a grammar, for `generate` and its relatives.

        Raises:  TokenizerError as `tokenizer.token_bytes`; ArgumentError for a model without stop ids
        """
        from tallow.generation.constrain import Constraint

        return Constraint(grammar, self._vocabulary, self.stop_ids)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """The bytes of the tokenizer's tokens, for constraints."""
        from tallow.generation.constrain import Vocabulary

        return Vocabulary(self.tokenizer.token_bytes())
