"""Ops as PyTorch's `__torch_dispatch__` gets them and `torch.ops` lists them: an op with its signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.overrides import answers, ask
from tallow.core.tensor import Tensor
from tallow.core.trees import leaves
from tallow.errors import MissingNameError
from tallow.ops.table import Op

_packets: dict[str, OpOverloadPacket] = {}  # by names such as "aten::add"


class OpOverload:
    """One signature of an op. All signatures call the same function, which tells them apart."""

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self._overloadpacket, self._overloadname = packet, name
        self.__name__ = f"{packet.__name__}.{name}"
        self.namespace = packet._qualified_op_name.partition("::")[0]

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The op."""
        return self._overloadpacket

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _answered(self, self._overloadpacket._function, args, kwargs)

    def __hash__(self) -> int:
        return hash(self._overloadpacket)  # that of a `Call`, which equals each signature of its op

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Call) and other.overloadpacket is self._overloadpacket)

    def __deepcopy__(self, memo: object) -> OpOverload:
        return self

    def __repr__(self) -> str:
        namespace, _, name = self._overloadpacket._qualified_op_name.partition("::")
        return f"<OpOverload(op='{namespace}.{name}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self._overloadpacket}.{self._overloadname}"

    def name(self) -> str:
        """Return its name, such as "aten::add.Tensor"."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._overloadpacket._qualified_op_name}{suffix}"


class OpOverloadPacket:
    """An op: `torch.ops.aten.add`. An attribute is one of its signatures, `torch.ops.aten.add.Tensor`."""

    def __init__(self, qualified_name: str, function: Callable[..., Any]) -> None:
        self._qualified_op_name, self._function = qualified_name, function
        self.__name__ = qualified_name.partition("::")[2]
        self._overloads: dict[str, OpOverload] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _answered(self, self._function, args, kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):  # as of an object that copy has not filled yet
            raise MissingNameError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._overloads.setdefault(name, OpOverload(self, name))

    def __deepcopy__(self, memo: object) -> OpOverloadPacket:
        return self

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified_op_name.replace('::', '.')}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def overloads(self) -> list[str]:
        """Return the names of the signatures that have been asked for."""
        return [*self._overloads] or ["default"]


def _answered(op: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function of an op, unless an argument answers for the op: a proxy records a node that calls it.

    Tensors of subclasses answer for the functions that the op calls.
    """
    proxies = [x for x in leaves((args, kwargs)) if not isinstance(x, Tensor) and answers(type(x))]
    return ask(op, proxies, args, kwargs) if proxies else function(*args, **kwargs)


class Call(OpOverload):
    """An op on its way to `__torch_dispatch__`, and the function that runs it: in place, as an operator, or for others.

    It equals each signature of its op, since a call does not tell which one it is.
    """

    def __init__(self, packet: OpOverloadPacket, function: Callable[..., Any]) -> None:
        super().__init__(packet, "default")
        self._function = function

    def __hash__(self) -> int:
        return hash(self._overloadpacket)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and other.overloadpacket is self._overloadpacket

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def packet_of(name: str, function: Callable[..., Any]) -> OpOverloadPacket:
    """Return the op of a name such as "aten::add", which is one object for all, and calls this function from now on."""
    packet = _packets.setdefault(name, OpOverloadPacket(name, function))
    packet._function = function  # an op may be defined anew
    return packet


def call_of(op: Op, function: Callable[..., Any]) -> Call:
    """Return what `__torch_dispatch__` gets as the function of a call of an op."""
    is_inplace = getattr(function, "__name__", op.name) == f"{op.name}_"
    name = f"aten::{op.name}_" if is_inplace else f"aten::{op.name}"
    return Call(_packets.get(name) or packet_of(name, op.inplace if is_inplace else op.call), function)


def call_of_method(method: Callable[..., Any]) -> Call:
    """Return the same for a method of Tensor that is an op in PyTorch, and none here."""
    name = f"aten::{method.__name__}"
    return Call(_packets.get(name) or packet_of(name, method), method)
