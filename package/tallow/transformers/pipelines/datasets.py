"""One column of a dataset as the inputs of a pipeline, or two as pairs of texts."""

from __future__ import annotations

from typing import Any

from tallow.data import Dataset


class KeyDataset(Dataset[Any]):
    """The values of one key of the items of a dataset."""

    def __init__(self, dataset: Any, key: str) -> None:
        self.dataset = dataset
        self.key = key

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        return self.dataset[i][self.key]


class KeyPairDataset(Dataset[Any]):
    """The values of two keys of the items of a dataset, as pairs of texts for text classification."""

    def __init__(self, dataset: Any, key1: str, key2: str) -> None:
        self.dataset = dataset
        self.key1 = key1
        self.key2 = key2

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"text": self.dataset[i][self.key1], "text_pair": self.dataset[i][self.key2]}
