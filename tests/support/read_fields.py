"""The fields that an endpoint asks for."""

from __future__ import annotations

from typing import Any

from tallow.serving.http.app import POSTS
from tallow.serving.http.fields import Fields


def read_by(path: str, body: dict[str, Any], engine: Any) -> set[str]:
    """Return the names of the fields that the endpoint reads; of objects within, those of `parameters`."""
    fields = Fields({"parameters": {}, **body})
    POSTS[path].read(fields, engine)
    has_parameters = any(name.startswith("parameters.") for name in fields.asked)
    return {name for name in fields.asked if "." not in name or (has_parameters and "parameters." in name)} | {"model"}
