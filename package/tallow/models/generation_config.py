"""The generation settings of a model folder: `generation_config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from tallow.errors import ArgumentError, CheckpointError
from tallow.models.config import Config, end_ids, read_entries

GENERATION = "generation_config.json"


@dataclass(frozen=True, kw_only=True)
class GenerationConfig(Config):
    """The entries of the file that tallow uses: arguments of a Sampler, with the defaults of transformers.

    Attributes:
        do_sample: whether to draw tokens at random or take the likeliest; None if the file does not say.
        top_k: None keeps all tokens; the file has 0 for that.
        eos_token_id: the ids that end a text.
    """

    do_sample: bool | None = None
    temperature: float = 1.0
    top_k: int | None = 50
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    eos_token_id: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("top_p", "more than 0 and at most 1", lambda p: 0 < p <= 1)
        self.require("min_p", "0 to 1", lambda p: p <= 1)
        self.require("repetition_penalty", "more than 0", lambda penalty: penalty > 0)

    @classmethod
    def from_folder(cls, folder: Path | None) -> Self:
        """Return the settings of a model folder, or the defaults if it has no such file.

        Raises:  CheckpointError when the file is not JSON, or an entry is invalid
        """
        path = None if folder is None else folder / GENERATION
        return cls() if path is None or not path.exists() else cls.from_entries(read_entries(path), str(path))

    @classmethod
    def from_entries(cls, entries: Mapping[str, Any], source: str) -> Self:
        entries = dict(entries)
        end_ids(entries)
        names = {field.name for field in fields(cls)}
        values = {name: value for name, value in entries.items() if name in names and value is not None}
        if values.get("top_k") == 0:
            values["top_k"] = None
        try:
            return cls(**values)
        except ArgumentError as error:
            raise CheckpointError(f"{source}: {error}") from error

    @property
    def sampling(self) -> dict[str, Any]:
        """Arguments of a Sampler that chooses as transformers does: the likeliest token unless do_sample is True."""
        names = ("temperature", "top_k", "top_p", "min_p") if self.do_sample else ()
        arguments = {name: getattr(self, name) for name in (*names, "repetition_penalty")}
        return arguments if self.do_sample else arguments | {"temperature": 0.0}
