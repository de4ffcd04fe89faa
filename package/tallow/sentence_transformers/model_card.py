"""The data of a model's card on the Hub, which programs pass. tallow writes no cards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class SentenceTransformerModelCardData:
    """The header of a card: attributes as in sentence-transformers. Nothing here reads it."""

    language: str | list[str] | None = None
    license: str | None = None
    model_name: str | None = None
    model_id: str | None = None
    train_datasets: list[dict[str, str]] = field(default_factory=list)
    eval_datasets: list[dict[str, str]] = field(default_factory=list)
    task_name: str | None = None
    tags: list[str] | None = None
    local_files_only: bool = False
    generate_widget_examples: Any = True
