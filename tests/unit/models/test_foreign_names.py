"""transformers' names of arguments: tallow's functions refuse them, and name their own."""

from __future__ import annotations

from typing import Any

import pytest

from tallow.errors import ArgumentTypeError
from tallow.models import AutoModel, stories


@pytest.mark.parametrize(
    ("method", "options", "own"),
    [
        ("generate_text", {"max_new_tokens": 3}, "max_tokens for max_new_tokens"),
        ("generate_text", {"temperature": 0.5}, r"sample=Sampler\(temperature=...\)"),
        ("generate_ids", {"do_sample": True}, r"sample=Sampler\(\) for do_sample"),
        ("chat", {"max_new_tokens": 3}, "max_tokens for max_new_tokens"),
    ],
)
def test_generation_names_its_own(method: str, options: dict[str, Any], own: str) -> None:
    model, model.tokenizer = stories.load()
    with pytest.raises(ArgumentTypeError, match=own):
        getattr(model, method)("Once", **options)


def test_loading_names_its_own() -> None:
    with pytest.raises(ArgumentTypeError, match="write device for device_map; dtype for torch_dtype"):
        AutoModel.from_pretrained("none", torch_dtype="auto", device_map="auto")
    with pytest.raises(ArgumentTypeError, match=r"has no argument colour$"):
        AutoModel.from_pretrained("none", colour="red")
