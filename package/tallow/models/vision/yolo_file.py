"""Files `.pt` of YOLO models: a pickle of a whole model, read as inert objects that hold the attributes of its modules.

No code of the file or of another package runs: the classes that a file may name are those of `CLASSES`, and each
becomes a `Part` that only holds what was saved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.io import files
from tallow.io.safe_globals import safe_globals

_OWN = {
    "nn.tasks": "DetectionModel SegmentationModel",
    "nn.modules.conv": "Conv DWConv Concat",
    "nn.modules.block": "Attention Bottleneck C2f C2PSA C3 C3k C3k2 DFL Proto PSABlock SPPF",
    "nn.modules.head": "Detect Segment",
    "utils": "IterableSimpleNamespace",
}
_TORCH = {
    "activation": "SiLU ReLU",
    "batchnorm": "BatchNorm2d",
    "container": "ModuleList Sequential",
    "conv": "Conv2d ConvTranspose2d",
    "linear": "Identity",
    "pooling": "MaxPool2d",
    "upsampling": "Upsample",
}
CLASSES = (
    *(f"ultralytics.{module}.{name}" for module, names in _OWN.items() for name in names.split()),
    *(f"torch.nn.modules.{module}.{name}" for module, names in _TORCH.items() for name in names.split()),
    "types.SimpleNamespace",
)
MODELS = ("DetectionModel", "SegmentationModel")
MOST_LEVELS = 32  # of modules inside of modules; YOLO11 has 9


class Part:
    """A module of a file.

    Attributes:
        kind: the name of its class, without the module.
    """

    kind = ""

    def __setstate__(self, state: Any) -> None:
        self.saved = state if isinstance(state, dict) else {}

    def part(self, name: str) -> Part:
        """Return a module inside of it.  Raises: CheckpointError if it has none of that name"""
        found = self._held("_modules").get(name)
        if not isinstance(found, Part):
            raise CheckpointError(f"a {self.kind} without a module {name!r:.80}", hint="the file is damaged")
        return found

    def parts(self) -> list[Part]:
        """Return the modules inside of it."""
        return [each for each in self._held("_modules").values() if isinstance(each, Part)]

    def has(self, name: str) -> bool:
        """Return whether it has a module of a name."""
        return isinstance(self._held("_modules").get(name), Part)

    def tensor(self, name: str) -> Tensor | None:
        """Return a parameter or buffer in float32; None if it has none."""
        value = self._held("_parameters").get(name)
        value = self._held("_buffers").get(name) if value is None else value
        return value.detach().float() if isinstance(value, Tensor) else None

    def weight(self, name: str) -> Tensor:
        """Return a parameter or buffer.  Raises: CheckpointError if it has none"""
        value = self.tensor(name)
        if value is None:
            raise CheckpointError(f"a {self.kind} without {name}", hint="the file is damaged")
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """Return another attribute."""
        return self._attributes().get(name, default)

    def number(self, name: str, default: Any, most: float, least: float = 0) -> Any:
        """Return an attribute that is a number, or several.  Raises: CheckpointError for others, and out of a range"""
        found = self.get(name)
        found = default if found is None else found
        for each in found if isinstance(found, list | tuple) else (found,):
            if type(each) not in (int, float) or not least <= each <= most:
                what = f"a {self.kind} with {name}={found!r:.80}"
                raise CheckpointError(f"{what}; expected {least} to {most}", hint="the file is damaged")
        return found

    def _held(self, name: str) -> dict[str, Any]:
        held = self._attributes().get(name)
        return held if isinstance(held, dict) else {}

    def _attributes(self) -> dict[str, Any]:
        saved: dict[str, Any] = vars(self).get("saved", {})  # an object is made without a call of its class
        return saved


def read_model(path: Path) -> Part:
    """Return the model of a file.

    Raises:  CheckpointError for a file that holds no model of boxes or masks, and for modules that tallow does not have
    """
    kinds = [(type(name.rpartition(".")[2], (Part,), {"kind": name.rpartition(".")[2]}), name) for name in CLASSES]
    with safe_globals(kinds):
        saved = files.load(path)
    for name in ("ema", "model"):
        model = saved.get(name) if isinstance(saved, dict) else None
        if isinstance(model, Part):
            if model.kind not in MODELS:
                break
            _require_tree(model)
            return model
    raise CheckpointError(f"{path} holds no YOLO model that finds objects", hint="pass a file such as yolov8n.pt")


def _require_tree(model: Part) -> None:
    """Raise CheckpointError for modules inside of themselves, or in two places, which could become endless."""
    seen: set[int] = set()
    level = [model]
    for _ in range(MOST_LEVELS):
        level = [each for each in level if each.parts()]  # modules without others, such as activations, are shared
        for each in level:
            if id(each) in seen:
                raise CheckpointError(f"a {each.kind:.80} is in two places", hint="the file is damaged")
            seen.add(id(each))
        level = [inner for each in level for inner in each.parts()]
    if level:
        raise CheckpointError(f"modules in more than {MOST_LEVELS} levels", hint="the file is damaged")
