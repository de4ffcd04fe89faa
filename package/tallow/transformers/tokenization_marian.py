"""Marian's tokenizer: SentencePiece splits the texts of each language, and `vocab.json` has the ids.

Source:  transformers 5.23, `MarianTokenizer`, which does not say where tokens are in a text either
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from tallow.compat.packages.tokenizers.models import WordLevel
from tallow.compat.packages.tokenizers.tokenizer import Tokenizer
from tallow.errors import UnsupportedError
from tallow.text.marian_engine import SOURCE, TARGET, TARGET_VOCABULARY, TOKENS, VOCABULARY, MarianEngine
from tallow.text.tokenizer_folder import TokenizerFiles, read_settings
from tallow.transformers.tokenization import TokenizersBackend
from tallow.transformers.tokenization_files import Where, download_of, read_where, settings_of


class MarianTokenizer(TokenizersBackend):
    """The tokenizer of Marian's models for translation: see `TokenizersBackend`.

    Texts to translate may begin with a token for the language, such as ">>fra<<". Texts of `text_target` are of the
    other language.
    """

    is_fast: ClassVar[bool] = False
    _folder: Path

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError("MarianTokenizer of parts", hint="call MarianTokenizer.from_pretrained(folder)")

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        gguf_file: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Load the tokenizer of a folder, with the arguments of `TokenizersBackend.from_pretrained`.

        Raises:  TokenizerError for malformed files; HubError
        """
        where = Where(revision, token, subfolder, gguf_file, download_of(kwargs))
        folder = read_where(pretrained_model_name_or_path, where)
        settings = settings_of(kwargs)
        config = read_settings(folder, TOKENS) | settings
        config["model_max_length"] = config.get("model_max_length") or 512
        return cls._of_files(TokenizerFiles(folder, {}, config), settings, str(pretrained_model_name_or_path))

    def _backend(self, files: TokenizerFiles) -> Any:
        vars(self)["_folder"] = files.path
        return _Backend(files.path, files.config)

    @contextmanager
    def _as_target(self) -> Iterator[None]:
        backend = self._tokenizer
        backend.is_target = True
        try:
            yield
        finally:
            backend.is_target = False

    def _config_to_save(self) -> dict[str, Any]:
        return super()._config_to_save() | {"tokenizer_class": "MarianTokenizer"}

    def _save_backend(self, folder: Path, prefix: str) -> tuple[str, ...]:
        return self.save_vocabulary(folder, prefix.removesuffix("-"))

    def save_vocabulary(self, save_directory: str | Path, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Copy the files of the vocabularies, and return their paths."""
        prefix, paths = f"{filename_prefix}-" if filename_prefix else "", []
        for name in (VOCABULARY, TARGET_VOCABULARY, SOURCE, TARGET):
            if (self._folder / name).is_file():
                paths.append(str(shutil.copyfile(self._folder / name, Path(save_directory) / (prefix + name))))
        return tuple(paths)


class _Backend(Tokenizer):
    """The interface of the package `tokenizers` over Marian's two engines.

    Attributes:
        is_target: texts are of the target's language.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        separate = bool(config.get("separate_vocabs"))
        target = (TARGET, TARGET_VOCABULARY if separate else VOCABULARY)
        self.is_target = False
        self._engines = (MarianEngine(folder, config), MarianEngine(folder, config, *target))
        super().__init__(WordLevel(self._engines[0].vocabulary, config.get("unk_token", TOKENS["unk_token"])))

    def _current_engine(self) -> Any:
        return self._engines[self.is_target]

    def _plan(self) -> Any:
        return self._engines[self.is_target].marks

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        """Return the text of ids of the target."""
        return self._engines[0].decode([int(id) for id in ids], special=not skip_special_tokens)

    def id_to_token(self, id: int) -> str | None:
        """Return the token of an id of the target, or None."""
        return self._engines[0].tokens.get(id)
