"""The kinds of containers of `torch.utils._pytree`: how each is taken apart and put together."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

from tallow.errors import ArgumentError
from tallow.fx.immutable_collections import immutable_dict, immutable_list

Context: TypeAlias = Any
FlattenFunc: TypeAlias = Callable[[Any], tuple[list[Any], Context]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Context], Any]
FlattenWithKeysFunc: TypeAlias = Callable[[Any], tuple[list[tuple[Any, Any]], Context]]
DumpableContext: TypeAlias = Any
BUILTIN_TYPES: frozenset[type] = frozenset((tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque))  # type: ignore[arg-type]


@dataclass(frozen=True)
class SequenceKey:
    """A position in a path to a leaf."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence[Any]) -> Any:
        """Return the entry of a sequence."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key in a path to a leaf."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[Any, Any]) -> Any:
        """Return the entry of a mapping."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute in a path to a leaf."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the attribute of an object."""
        return getattr(obj, self.name)


KeyEntry: TypeAlias = SequenceKey | MappingKey | GetAttrKey


class NodeDef(NamedTuple):
    """How to take a node apart and put it together."""

    type: Any
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None


class _SerializeNodeDef(NamedTuple):
    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None,
) -> None:
    """Let a class be a node.

    Args:
        flatten_fn: of an object; returns the list of its children, and a context, compared by ==.
        unflatten_fn: of children and a context; returns the object.
        serialized_type_name, to_dumpable_context, from_dumpable_context: for `treespec_dumps`.
        flatten_with_keys_fn: as `flatten_fn`, with pairs of a key and a child.

    Raises: ValueError if the class is registered.
    """
    if cls in SUPPORTED_NODES:
        raise ArgumentError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_register_pytree_node = _private_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Let a class be a leaf again."""
    del SUPPORTED_NODES[cls]
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name]


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Let a dataclass be a node, whose children are its fields.

    Args:
        field_names: the fields that are children; by default, all that `__init__` takes.
        drop_field_names: fields that are left out.
    """
    dropped = drop_field_names or []
    names = field_names or [f.name for f in fields(cls) if f.init and f.name not in dropped]

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        present = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if name not in present]
        return [(GetAttrKey(name), getattr(obj, name)) for name in present], [present, absent]

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        children, context = flatten_with_keys(obj)
        return [child for _, child in children], context

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys
    )


def register_constant(cls: type) -> None:
    """Let a class be a node without leaves; the object itself is the context."""
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, context: context, flatten_with_keys_fn=lambda o: ([], o))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Return whether `register_constant` has registered a class."""
    return cls in CONSTANT_NODES


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Context]:
    return list(d), None


def _tuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> tuple[Any, ...]:
    return tuple(values)


def _list_flatten(d: list[Any]) -> tuple[list[Any], Context]:
    return list(d), None


_list_flatten_with_keys = _tuple_flatten_with_keys


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _dict_flatten(d: Mapping[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Mapping[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d: defaultdict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> defaultdict[Any, Any]:
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


def _deque_flatten(d: deque[Any]) -> tuple[list[Any], Context]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return _tuple_flatten_with_keys(d)[0], d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> deque[Any]:
    return deque(values, maxlen=context)


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    return [(GetAttrKey(name), getattr(d, name)) for name in d._fields], type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


for _node in (
    NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    NodeDef(OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys),
    NodeDef(deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    NodeDef(immutable_list, _list_flatten, lambda values, _: immutable_list(values), _list_flatten_with_keys),
    NodeDef(
        immutable_dict,
        _dict_flatten,
        lambda values, context: immutable_dict(_dict_unflatten(values, context)),
        _dict_flatten_with_keys,
    ),
):
    register_pytree_node(
        _node.type, _node.flatten_fn, _node.unflatten_fn, flatten_with_keys_fn=_node.flatten_with_keys_fn
    )


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class is that of a named tuple."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple(obj: Any) -> bool:
    """Return whether an object is a named tuple, or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


is_namedtuple_instance = _is_namedtuple_instance = is_namedtuple


def is_structseq_class(cls: Any) -> bool:
    """Return whether a class is a structure of `torch.return_types`."""
    return is_namedtuple_class(cls) and cls.__module__.endswith("return_types")


def is_structseq(obj: Any) -> bool:
    """Return whether an object is a structure of `torch.return_types`, or its class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


is_structseq_instance = is_structseq


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    return namedtuple if kind not in SUPPORTED_NODES and is_namedtuple_class(kind) else kind
