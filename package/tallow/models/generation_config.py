"""How a model's folder wants its texts made: `generation_config.json`."""

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
    """What of the file counts here; the numbers are a Sampler's, and the defaults transformers'.

    Attributes:
        do_sample: draw tokens at random, or take the likeliest; None where the file does not say.
        top_k: None keeps all, which is 0 in the file.
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
        """That of a model's folder, or the defaults where there is none.

        Raises:  CheckpointError when it is not JSON, or what counts of it makes no sense
        """
        path = None if folder is None else folder / GENERATION
        return cls() if path is None or not path.exists() else cls.from_entries(read_entries(path), str(path))

    @classmethod
    def from_entries(cls, entries: Mapping[str, Any], source: str) -> Self:
        entries = dict(entries)
        end_ids(entries)
        names = {field.name for field in fields(cls)}
        given = {name: value for name, value in entries.items() if name in names and value is not None}
        if given.get("top_k") == 0:
            given["top_k"] = None
        try:
            return cls(**given)
        except ArgumentError as error:
            raise CheckpointError(f"{source}: {error}") from error

    @property
    def sampling(self) -> dict[str, Any]:
        """The arguments of a Sampler that chooses as transformers: the likeliest token unless do_sample is True."""
        drawn = ("temperature", "top_k", "top_p", "min_p") if self.do_sample else ()
        chosen = {name: getattr(self, name) for name in (*drawn, "repetition_penalty")}
        return chosen if self.do_sample else chosen | {"temperature": 0.0}
