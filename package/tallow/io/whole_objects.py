"""Files of any Python objects, in PyTorch's zip format: whole modules, arrays, objects of a program.

`tallow.io.pytorch_write` writes these pickles where a file is not of tensors and plain containers alone. Loading one
imports what it names and runs what its classes define: `load(weights_only=False)`, for files that one trusts.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tallow import devices
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.dtypes import dtype as Dtype
from tallow.errors import CheckpointError
from tallow.io.pickle_budget import Budget
from tallow.io.pickler import Call, Global, PersistentId
from tallow.io.pytorch_names import NAMES
from tallow.io.source import Bytes
from tallow.io.unpickler import Function
from tallow.nn.parameter import Parameter

ROOT = "torch."
_PythonPickler: Any = pickle._Pickler  # the one in Python, whose `save` can be extended
_CLASSES = {"torch.Tensor": Tensor, "torch.nn.parameter.Parameter": Parameter}


class _ObjectPickler(_PythonPickler):  # type: ignore[misc]
    """Python's pickler, which writes tensors as PyTorch does."""

    def __init__(self, file: io.BytesIO, tensor: Callable[[Tensor], Call]) -> None:
        super().__init__(file, 2)
        self._tensor = tensor

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object."""
        if isinstance(obj, Tensor):
            known = self.memo.get(id(obj))
            if known is None:
                self.save(self._tensor(obj))
                self.memoize(obj)
            else:
                self.write(self.get(known[0]))
        elif type(obj) is Global:
            self.write(pickle.GLOBAL + "{}\n{}\n".format(*obj).encode())
        elif type(obj) is PersistentId:
            super().save(tuple(obj))
            self.write(pickle.BINPERSID)
        elif type(obj) is Call:
            self.save(obj[0])
            super().save(tuple(obj[1:]))
            self.write(pickle.REDUCE)
        elif isinstance(obj, Dtype):
            self.save(Global(("torch", obj.name)))
        elif isinstance(obj, devices.device):
            self.save(Call((Global(("torch", "device")), str(obj))))
        elif type(obj) is Size:
            self.save(Call((Global(("torch", "Size")), tuple(obj))))
        else:
            super().save(obj, save_persistent_id)


def dump(value: Any, tensor: Callable[[Tensor], Call]) -> bytes:
    """Return the pickle of any object. Raises: what pickle raises for an object that has none.

    Args:
        tensor: returns the `Call` to write for a tensor.
    """
    file = io.BytesIO()
    _ObjectPickler(file, tensor).dump(value)
    return file.getvalue()


class _ObjectUnpickler(pickle.Unpickler):
    """Python's unpickler, which reads PyTorch's tensors."""

    def __init__(self, file: io.BytesIO, storage: Callable[[Any], Tensor], budget: Budget) -> None:
        super().__init__(file)
        self._storage, self._budget = storage, budget

    def persistent_load(self, pid: Any) -> Tensor:
        """Return a storage."""
        return self._storage(pid)

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return the object of a name. Names of PyTorch are those of the stand-in."""
        path = f"{module_name}.{global_name}"
        if path in _CLASSES:
            return _CLASSES[path]
        if path == "torch._tensor._rebuild_from_type_v2":
            return _with_class
        known = NAMES.get(path) if path.startswith(ROOT) else None
        if isinstance(known, Function):
            return partial(known.make, self._budget)
        if known is not None:
            return known
        if path.startswith(ROOT) and not any(type(finder).__name__ == "TorchFinder" for finder in sys.meta_path):
            raise CheckpointError(f"the file names {path}", hint="call tallow.compat.install_torch() first")
        if module_name.startswith(ROOT):
            importlib.import_module(module_name)
        return super().find_class(module_name, global_name)


def _with_class(function: Callable[..., Tensor], kind: type, arguments: tuple[Any, ...], state: Any) -> Tensor:
    """Return a tensor of a subclass, or with attributes that were set on it."""
    tensor = function(*arguments)
    if not isinstance(tensor, kind):
        tensor = tensor.as_subclass(kind)
    tensor.__dict__.update(state if isinstance(state, dict) else {})
    return tensor


def load(data: Bytes, name: str, storage: Callable[[Any], Tensor], budget: Budget) -> Any:
    """Load any object, by what its pickle names. Raises: CheckpointError for a malformed pickle."""
    try:
        return _ObjectUnpickler(io.BytesIO(data.tobytes()), storage, budget).load()
    except (pickle.UnpicklingError, EOFError) as error:
        raise CheckpointError(f"{name}: {error}") from error
