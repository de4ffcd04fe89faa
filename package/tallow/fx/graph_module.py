"""GraphModule: a module whose forward is the code of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import weakref
from collections.abc import Callable
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, GraphError
from tallow.fx.code import PythonCode
from tallow.fx.graph import Graph, at_path, has_path
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer, Parameter

_numbers = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # of `meta`: attributes that passes keep


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module what another one has at a dotted path, with new modules on the way; buffers stay buffers."""
    *prefix, name = target.split(".")
    for part in prefix:
        source, below = getattr(from_module, part), getattr(to_module, part, None)
        if below is source:
            return  # the whole module is there already
        if below is None:
            below = Module()
            setattr(to_module, part, below)
        from_module, to_module = source, below
    _assign_attr(getattr(from_module, name), to_module, name)


def _assign_attr(value: Any, to_module: Module, target: str) -> None:
    """Set what a module has at a dotted path, with new modules on the way; a tensor becomes a buffer."""
    *prefix, name = target.split(".")
    for part in prefix:
        below = getattr(to_module, part, None)
        if below is None:
            below = Module()
            setattr(to_module, part, below)
        to_module = below
    if isinstance(value, Tensor) and not isinstance(value, Parameter | Buffer):
        if name in to_module._buffers:
            to_module._buffers[name] = value
        else:
            to_module.__dict__.pop(name, None)
            to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)


def _get_attr(module: Module, target: str) -> Any:
    """Return what a module has at a dotted path."""
    return at_path(module, target)


class GraphModule(Module):
    """A module whose forward is the code of a graph.

    After a change of the graph call `recompile`. Each object has a class of its own, because its forward is its own.

    Args:
        root: the module that has what the nodes refer to; or a dict of it, path -> module or tensor. Only what nodes
            refer to is taken.
        graph: it belongs to this module from then on.
        class_name: the name of the class, which is printed.

    Attributes:
        code: the source of forward.
        meta: a dict for passes to write to.

    Raises: GraphError, InvalidKeyError if `root` lacks what a node refers to.
    """

    code: str
    meta: dict[str, Any]
    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # A subclass of a subclass that is already an object's own would grow with each copy.
        own = next(base for base in cls.__mro__ if "_is_of_one_object" not in vars(base))
        return super().__new__(type(own.__name__, (own,), {"_is_of_one_object": True, "__module__": own.__module__}))

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        self.meta = {}
        if isinstance(root, Module):
            self.training = root.training
            self.meta.update(getattr(root, "meta", None) or {})
        elif not isinstance(root, dict):
            raise ArgumentTypeError(f"GraphModule: root must be a Module or a dict, not {type(root).__name__}")
        # Parents first, so that a module brings what is below it.
        targets = dict.fromkeys(str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module"))
        for target in sorted(targets, key=lambda path: path.count(".")):
            if isinstance(root, Module):
                at_path(root, target)  # raises an error that names the path
                _copy_attr(root, self, target)
            elif target not in root:
                raise GraphError(f"GraphModule: the graph refers to {target!r}, which root lacks")
            else:
                _assign_attr(root[target], self, target)
        self.graph = graph
        self._tracer_cls = graph._tracer_cls

    @property
    def graph(self) -> Graph:
        """The graph. Assign another one to replace it; the code is generated anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise ArgumentTypeError(f"GraphModule.graph: expected a Graph, got {type(g).__name__}")
        object.__setattr__(self, "_graph", g)
        g.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Generate the code of the graph, and let forward run it. Call it after each change of the graph."""
        code = self.graph.python_code("self")
        cls = type(self)
        filename = f"<tallow.fx {cls.__name__} {next(_numbers)}>"
        _compile_forward(cls, code, filename)
        object.__setattr__(self, "code", code.src)
        return code

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "graph":  # a property; Module would store it
            GraphModule.graph.fset(self, value)  # type: ignore[attr-defined]
        else:
            super().__setattr__(name, value)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module at a dotted path, with new modules on the way. Return False if something else is on the way."""
        *prefix, name = target.split(".")
        module: Module = self
        for part in prefix:
            below = getattr(module, part, None)
            if below is None:
                below = Module()
                setattr(module, part, below)
            if not isinstance(below, Module):
                return False
            module = below
        module.add_module(name, m) if not hasattr(module, name) else setattr(module, name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a dotted path. Return False if there is none."""
        path, _, name = target.rpartition(".")
        if not has_path(self, target) or not isinstance(at_path(self, target), Module):
            return False
        delattr(self.get_submodule(path), name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node refers to, nor to anything in them or above them."""
        used = {str(n.target) for n in self.graph.nodes if n.op in ("get_attr", "call_module")}
        above = {".".join(path.split(".")[:i]) for path in used for i in range(1, path.count(".") + 1)}
        for path, _ in list(self.named_modules()):
            is_below = any(path == target or path.startswith(f"{target}.") for target in used)
            if path and not is_below and path not in above and has_path(self, path):
                self.delete_submodule(path)

    def print_readable(self, print_output: bool = True) -> str:
        """Return the code as that of a class, with the graph modules below; print it unless told otherwise."""
        lines = [f"class {type(self).__name__}(torch.nn.Module):".replace("torch.", "tallow.")]
        lines += [f"    {line}" for line in self.code.rstrip().split("\n")]
        for child in self.children():
            if isinstance(child, GraphModule):
                lines += ["", *(f"    {line}" for line in child.print_readable(print_output=False).split("\n"))]
        text = "\n".join(lines)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__repr__()}\n\n\n\n{self.code}\n{hint}"

    # --------------------------------------------------------------------------------------------------------- copying

    def __copy__(self) -> GraphModule:
        return self._with(self.__dict__, copy.deepcopy(self.graph))

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        graph = copy.deepcopy(self.graph, memo)
        state = {key: value for key, value in self.__dict__.items() if key not in ("_graph", "code")}
        result = self._with({}, graph)
        memo[id(self)] = result
        result.__dict__.update(copy.deepcopy(state, memo))
        return result

    def _deepcopy_init(self) -> Callable[..., None]:
        """Return the function that subclasses with arguments of their own call in `__deepcopy__`."""
        return type(self).__init__

    def _with(self, state: dict[str, Any], graph: Graph) -> GraphModule:
        """Return a module of the same class with a copy of the state, and a graph."""
        result = type(self).__new__(type(self))
        Module.__init__(result)
        type(result).__name__ = type(self).__name__
        for key, value in state.items():
            result.__dict__[key] = dict(value) if key in ("_parameters", "_buffers", "_modules") else value
        result.graph = graph
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph and the state; the code is generated anew."""
        own = next(base for base in type(self).__mro__ if "_is_of_one_object" not in vars(base))
        state = {key: value for key, value in self.__dict__.items() if key not in ("_graph", "code", "_tracer_cls")}
        return _restored, (own, type(self).__name__, state, self.graph)


def _restored(cls: type[GraphModule], name: str, state: dict[str, Any], graph: Graph) -> GraphModule:
    """Return a pickled GraphModule."""
    module = cls.__new__(cls)
    Module.__init__(module)
    type(module).__name__ = name
    module.__dict__.update(state)
    module.__dict__["_tracer_cls"] = graph._tracer_cls
    module.graph = graph
    return module


class _CodeOnlyModule(Module):
    """A module with the attributes of another one, from which subclasses of GraphModule make copies."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _compile_forward(cls: type, code: PythonCode, filename: str) -> None:
    """Give a class the forward of a graph's code; a debugger and tracebacks show its lines."""
    before = vars(cls).get("forward")
    if before is not None:
        linecache.cache.pop(before.__code__.co_filename, None)
    linecache.cache[filename] = len(code.src), None, code.src.splitlines(keepends=True), filename
    made: dict[str, Any] = {}
    exec(compile(code.src, filename, "exec"), dict(code.globals), made)
    forward = made["forward"]
    cls.forward = forward  # type: ignore[attr-defined]
    weakref.finalize(forward, linecache.cache.pop, filename, None)
