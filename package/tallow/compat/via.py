"""Models and pipelines of the installed package `transformers`, computed by tallow in the place of PyTorch.

They run architectures that tallow has no file for: as slow as their Python, in floats, and with all of their names.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tallow.compat.stand_in import install_torch
from tallow.errors import ArgumentError, CheckpointError, UnsupportedError
from tallow.hub import local_folder
from tallow.models.config import CONFIG, read_entries

PACKAGE = "transformers"


def installed(via: str) -> Any:
    """Return the installed package `transformers`. From then on, `import torch` gives tallow in this process.

    Args:    via: its name
    Raises:  ArgumentError for another name; UnsupportedError if it is not installed; GraphError if PyTorch is
             imported already
    """
    if via != PACKAGE:
        raise ArgumentError(f"via={via!r:.80}", hint=f"the one package that models run by is {PACKAGE!r}")
    if find_spec(PACKAGE) is None:
        raise UnsupportedError(f"via={via!r} needs the package {PACKAGE}", hint=f"pip install {PACKAGE}")
    install_torch()
    return importlib.import_module(PACKAGE)


def load_model(
    name: str | Path, via: str, dtype: Any = None, device: Any = None, *, revision: Any = None, token: Any = None
) -> Any:
    """Load a folder or a repository of the Hub as the class of `transformers` that its config names.

    Args:
        name, dtype, device, revision, token: as `AutoModel.from_pretrained`.
        via: "transformers".

    Returns: a model of `transformers`, which is a Module of tallow, in evaluation mode
    Raises:  CheckpointError for a class that is no model of `transformers`; as `installed`, `local_folder`, and the
             `from_pretrained` of `transformers`
    """
    transformers = installed(via)
    folder = local_folder(name, revision=revision, token=token)
    architectures = read_entries(folder / CONFIG).get("architectures")
    names = architectures if isinstance(architectures, list) else []
    found = (getattr(transformers, each, None) for each in names if isinstance(each, str) and each.isidentifier())
    kinds: list[Any] = [
        each for each in found if isinstance(each, type) and issubclass(each, transformers.PreTrainedModel)
    ]
    if names and not kinds:  # the model without a head would not be what the config names
        raise CheckpointError(
            f"{folder / CONFIG}: transformers has no model {', '.join(map(str, names)):.200}",
            hint="name one of its classes in architectures",
        )
    kind = kinds[0] if kinds else transformers.AutoModel
    model = kind.from_pretrained(str(folder), **({} if dtype is None else {"dtype": dtype}))
    return model.eval() if device is None else model.eval().to(device)


def load_pipeline(via: str, **options: Any) -> Any:
    """Return a pipeline of `transformers`.

    Args:
        via: "transformers".
        options: its arguments

    Raises:  as `installed`, and as `transformers.pipeline`
    """
    given = {name: value for name, value in options.items() if value is not None}
    given.setdefault("device", "cpu")
    return installed(via).pipeline(**given)
