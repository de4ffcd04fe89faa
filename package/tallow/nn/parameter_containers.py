"""Containers of parameters: ParameterList and ParameterDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, NoReturn

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, DimensionError
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter


def _as_parameter(value: Any) -> Any:
    """Convert a tensor to a parameter; return other values unchanged, as PyTorch does."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _entry_repr(key: Any, value: Any, dtype: str) -> str:
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    where = f" ({value.device})" if value.device.type == "cuda" else ""
    return f"  ({key}): {kind} containing: [{dtype} of size {'x'.join(map(str, value.shape))}{where}]"


class ParameterList(Module):
    """A list of parameters, registered with the module. It has no forward.

    Args:    as torch.nn.ParameterList
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index: int) -> str:
        index = operator.index(index)
        if not -self._size <= index < self._size:
            raise DimensionError(f"index {index} is out of range of ParameterList of length {self._size}")
        return str(index % self._size)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(self._size)[index])
        return getattr(self, self._key(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._key(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end and return the list."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end and return the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise ArgumentTypeError(f"ParameterList.extend takes an iterable, not {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError("a ParameterList cannot be called", hint="use its parameters in a module's forward")

    def extra_repr(self) -> str:
        return "\n".join(_entry_repr(i, v, str(v.dtype) if isinstance(v, Tensor) else "") for i, v in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters, registered with the module. It has no forward.

    Args:    as torch.nn.ParameterDict
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _check_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _check_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> KeysView[str]:
        """Return a view of the names."""
        return self._keys.keys()

    def values(self) -> Iterator[Any]:
        """Iterate over the parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Iterate over (name, parameter) pairs."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a name, or `default`."""
        return getattr(self, key) if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a name, after setting it to `default` if the name is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a parameter and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last entry and return it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all entries."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return a new dict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dict with `default` under every key."""
        return ParameterDict([(key, default) for key in keys])

    def update(self, parameters: Any) -> None:
        """Add or replace entries from a mapping or from pairs. Keys of a plain dict are sorted, as in PyTorch."""
        if isinstance(parameters, OrderedDict | ParameterDict):
            pairs: Iterable[Any] = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        elif isinstance(parameters, Iterable):
            pairs = parameters
        else:
            raise ArgumentTypeError(f"ParameterDict.update takes a mapping or pairs, not {type(parameters).__name__}")
        for position, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise ArgumentTypeError(
                    f"ParameterDict.update: element {position} is {type(pair).__name__}, not a pair"
                )
            key, value = _as_pair(position, pair)
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError("a ParameterDict cannot be called", hint="use its parameters in a module's forward")

    def extra_repr(self) -> str:
        return "\n".join(_entry_repr(k, v, v.type() if isinstance(v, Tensor) else "") for k, v in self.items())


def _check_key(key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentTypeError(f"ParameterDict: keys must be strings, not {type(key).__name__}")
    return key


def _as_pair(position: int, pair: Iterable[Any]) -> list[Any]:
    items = list(pair)
    if len(items) != 2:
        raise ArgumentError(f"ParameterDict.update: element {position} has length {len(items)}; 2 is required")
    return items
