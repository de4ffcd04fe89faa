"""torch.utils._pytree: nested containers as a list of leaves and a description of the structure.

tuple, list, dict, OrderedDict, defaultdict, deque and named tuples are nodes, and so are classes that a program
registers. Everything else is a leaf, None too.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tallow.compat import tree_nodes
from tallow.compat.tree_nodes import (
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    Context,
    KeyEntry,
    _get_node_type,
)
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.lazy_names import names_of

IsLeaf: TypeAlias = Callable[[Any], bool] | None
PyTree: TypeAlias = Any
KeyPath: TypeAlias = tuple[KeyEntry, ...]
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1

# PyTorch has those in this module, too, and programs use the private ones.
__getattr__, __dir__ = names_of(__name__, registry=vars(tree_nodes))


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether an object is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


class TreeSpec:
    """The structure of a tree: the kind of its root, what the kind needs to be put together, and its children."""

    def __init__(self, type: Any, context: Context = None, children_specs: Iterable[TreeSpec] = ()) -> None:
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_children = len(self.children_specs)
        self.num_leaves: int = 1 if type is None else sum(child.num_leaves for child in self.children_specs)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in self.children_specs)

    def children(self) -> list[TreeSpec]:
        """Return the structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """Return the structure of one child."""
        return self.children_specs[index]

    def is_leaf(self) -> bool:
        """Return whether the tree is a leaf."""
        return self.type is None

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return the parts of a tree that stand where this structure has leaves.

        Raises: ValueError if the tree differs above its leaves.
        """
        if self.is_leaf():
            return [tree]
        kind = _get_node_type(tree)
        if kind is not self.type and not {kind, self.type} <= {dict, OrderedDict, defaultdict}:
            raise ArgumentError(f"Type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ArgumentError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if self.type in (dict, OrderedDict, defaultdict):
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ArgumentError(f"Node keys mismatch; expected {list(keys)}, but got {list(tree)}.")
            children = [tree[key] for key in keys]
        elif self.type is not deque and context != self.context:
            raise ArgumentError(f"Node context mismatch for {self.type!r}: {self.context!r} and {context!r}.")
        return [
            part
            for spec, child in zip(self.children_specs, children, strict=True)
            for part in spec.flatten_up_to(child)
        ]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Return the tree of this structure with these leaves. Raises: ValueError unless their number is right."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ArgumentError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._built(iter(leaves))

    def _built(self, leaves: Any) -> PyTree:
        if self.is_leaf():
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn(
            [spec._built(leaves) for spec in self.children_specs], self.context
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)

    def __hash__(self) -> int:
        context = tuple(self.context) if isinstance(self.context, list) else self.context
        try:
            return hash((self.type, context, tuple(self.children_specs)))
        except TypeError:  # a context that has no hash
            return hash((self.type, tuple(self.children_specs)))

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        name = getattr(self.type, "__name__", repr(self.type))
        return f"TreeSpec({name}, {self.context!r}, [{', '.join(map(repr, self.children_specs))}])"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None)


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> TreeSpec:
    """Return the structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple of trees."""
    return TreeSpec(tuple, None, iterable)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """Return the structure of a dict of trees."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), specs.values())


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, and its structure.

    Args:
        is_leaf: a function; what it returns True for is a leaf, whatever its class.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return the tree of a structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise ArgumentTypeError(f"tree_unflatten: expected a TreeSpec, got {type(treespec).__name__}")
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """Return an iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return a tree with func(leaf, ...) in place of each leaf; `rests` may be deeper than `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(map(func, *columns))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call func(leaf, ...) for each leaf. Return the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _test_of(kinds: Any) -> Callable[[Any], bool]:
    if isinstance(kinds, type | tuple) or hasattr(kinds, "__args__"):
        return lambda leaf: isinstance(leaf, kinds)
    if callable(kinds):
        test: Callable[[Any], bool] = kinds
        return test
    raise ArgumentTypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(kinds: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorate a function of a leaf: leaves of other classes are returned as they are."""
    test = _test_of(kinds)
    return lambda func: lambda leaf: func(leaf) if test(leaf) else leaf


def tree_map_only(kinds: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return a tree with func(leaf) in place of each leaf of some classes, or for which a function returns True."""
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call func(leaf) for each leaf of some classes. Return the tree."""
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a function returns True for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a function returns True for any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a function returns True for all leaves of some classes."""
    return all(pred(leaf) for leaf in filter(_test_of(kinds), tree_leaves(tree, is_leaf)))


def tree_any_only(kinds: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether a function returns True for any leaf of some classes."""
    return any(pred(leaf) for leaf in filter(_test_of(kinds), tree_leaves(tree, is_leaf)))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return a leaf for each leaf of a structure, whose leaves a prefix `tree` repeats; None if it does not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(c, s, is_leaf) for c, s in zip(children, treespec.children(), strict=True)]
    return None if None in parts else [leaf for part in parts if part is not None for leaf in part]


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return pairs of the path to a leaf and the leaf, and the structure."""
    return list(_with_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def _with_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterable[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ArgumentError(f"Did not find a flatten_with_keys_fn for type: {node.type}", hint="register it with one")
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return pairs of the path to a leaf and the leaf."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return a tree with func(path, leaf, ...) in place of each leaf."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*pair, *rest) for pair, *rest in zip(pairs, *columns, strict=True))


def keystr(kp: KeyPath) -> str:
    """Return a path as text, such as "['a'][0].x"."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what is at a path of an object."""
    for key in kp:
        obj = key.get(obj)
    return obj


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a structure as JSON."""
    if protocol not in (None, DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL):
        raise ArgumentError(f"Unknown protocol {protocol}.")
    return json.dumps((DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL, _dumped(treespec)))


def _dumped(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    how = SUPPORTED_SERIALIZED_TYPES[spec.type]
    context: Any = spec.context
    if how.to_dumpable_context is not None:
        context = how.to_dumpable_context(context)
    elif spec.type is defaultdict:
        context = [getattr(context[0], "__name__", None), context[1]]
    elif spec.type is namedtuple:
        context = f"{context.__module__}.{context.__qualname__}"
    children = [_dumped(child) for child in spec.children()]
    return {"type": how.serialized_type_name, "context": json.dumps(context), "children_spec": children}


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure of a text of `treespec_dumps`."""
    protocol, spec = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ArgumentError(f"Unknown protocol {protocol}.")
    return _loaded(spec)


def _loaded(spec: dict[str, Any]) -> TreeSpec:
    if spec["type"] is None:
        return _LEAF_SPEC
    if spec["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise ArgumentError(f"Deserializing {spec['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[spec["type"]]
    context, how = json.loads(spec["context"]), SUPPORTED_SERIALIZED_TYPES[kind]
    if how.from_dumpable_context is not None:
        context = how.from_dumpable_context(context)
    return TreeSpec(kind, context, map(_loaded, spec["children_spec"]))


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a structure as text, with * in the place of leaves."""
    return repr(treespec)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_leaves(tree)]
