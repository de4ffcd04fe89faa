"""torch.utils.hooks: the handle of a hook."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import ref

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """A handle that removes a hook from a dict, and from further ones: `handle.remove()`, or the end of a block.

    Args:
        hooks_dict: the hooks by `id` of their handles; the caller puts the hook there.
        extra_dict: dicts, or a list of them, that may have an entry of this id too.
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = ref(hooks_dict) if isinstance(hooks_dict, OrderedDict) else _always(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict_ref: tuple[Callable[[], Any], ...] = ()
        if extra_dict is not None:
            dicts = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self.extra_dict_ref = tuple(ref(d) if isinstance(d, OrderedDict) else _always(d) for d in dicts)

    def remove(self) -> None:
        """Remove the hook."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def _always(value: Any) -> Callable[[], Any]:
    """Return a function that returns the value: plain dicts have no weak references."""
    return lambda: value


def unserializable_hook(f: Any) -> Any:
    """Mark a hook that must not be saved with its tensor. Return the hook."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Do nothing: hooks of a tensor are not saved with it."""
