"""Compute constants once, and write results to memory that nothing reads any more.

Both look at the memory of the recorded run: which values share it, and who else gets to see it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tallow.core.apply import inplace_generally
from tallow.core.tensor import Tensor, wrap
from tallow.fx.compile.recorder import CallRecorder, switch_modes
from tallow.fx.node import Node
from tallow.kernels.table import KERNELS
from tallow.ops.table import OPS
from tallow.tape.writes import owner_of

MOST_BYTES = 1 << 24  # of the constants of a plan
LEAST_BYTES = 1 << 16  # below, a result of its own costs less than the general way to write in place
COMMUTATIVE = frozenset(("add", "mul"))


class Memory:
    """The memory of a recorded run.

    Attributes:
        shared: id of the array that owns memory -> the nodes whose values lie there.
        escapes: the ids of those that something else than an op without an effect gets to see: the caller, a write.
    """

    def __init__(self, recorder: CallRecorder) -> None:
        self.recorder = recorder
        self.shared: dict[int, list[Node]] = defaultdict(list)
        for node in recorder.made:
            self.shared[self.owner(node)].append(node)
        self.escapes = {
            owner
            for owner, nodes in self.shared.items()
            if any(user not in recorder.pure for node in nodes for user in node.users)
        }

    def owner(self, node: Node) -> int:
        """Return the id of the array that owns the memory of a node's value."""
        return id(owner_of(self.recorder.made[node][0]))

    def is_free(self, x: Any) -> bool:
        """Return whether only ops without a history read an operand, which an op has put into memory of its own."""
        if not isinstance(x, Node) or x not in self.recorder.pure or not self._is_plain(x):
            return False
        owner = self.owner(x)
        return owner not in self.escapes and self.shared[owner] == [x] and all(map(self._is_plain, x.users))

    def _is_plain(self, node: Node) -> bool:
        return self.recorder.made.get(node, (None, False))[1]


def fold(recorder: CallRecorder) -> dict[Node, Tensor]:
    """Replace what is the same in each call by its value, such as a mask made by `arange`, if only ops read it.

    Returns: placeholder -> the value, which cannot be written to
    """
    memory, graph = Memory(recorder), recorder.graph
    tensors = {node: value for value, node in recorder.known.values()}
    folded: dict[Node, None] = {}
    held: dict[int, int] = {}  # id of the array that owns memory -> its bytes
    for node in graph.nodes:
        tensor = tensors.get(node)
        if node not in recorder.pure or type(tensor) is not Tensor or tensor.requires_grad:
            continue
        owner = owner_of(tensor.array)
        if id(owner) in memory.escapes or not all(x in folded for x in node.all_input_nodes):
            continue
        if sum(held.values()) + (0 if id(owner) in held else owner.nbytes) <= MOST_BYTES:
            held[id(owner)], folded[node] = owner.nbytes, None
    constants = {}
    for node in reversed(folded):
        if node.users:
            value = wrap(tensors[node].array.view())  # by the strides, later ops make the views that they made before
            value.array.flags.writeable, value._inference = False, tensors[node]._inference
            with graph.inserting_before(next(iter(graph.nodes))):
                place = graph.placeholder("constant")
            place.target = place.name
            node.replace_all_uses_with(place)
            recorder.made[place] = value.array, True
            constants[place] = value
        recorder.calls.pop(node, None)
        graph.erase_node(node)
    return constants


def reuse(recorder: CallRecorder) -> None:
    """Let an op write to the memory of an operand that nothing reads after it, if its kernel can."""
    into = {op.call: op for op in OPS.values() if (kernel := KERNELS.get((op.name, "array"))) and kernel.into}
    _, inference, autocast, _ = recorder.modes_before
    switches = [node.args for node in recorder.graph.nodes if node.target is switch_modes]
    if autocast is not None or any(args[1] is not inference or args[2] is not None for args in switches):
        return  # under autocast an op reads copies of its operands; and what is made in inference mode stays apart
    memory = Memory(recorder)
    order = {node: i for i, node in enumerate(recorder.graph.nodes)}
    for node in recorder.graph.nodes:
        op = into.get(node.target)
        result, is_plain = recorder.made.get(node, (None, False))
        if op is None or node not in recorder.pure or not is_plain or result.nbytes < LEAST_BYTES:
            continue
        is_symmetric = op.name in COMMUTATIVE and len(node.args) == 2 and not node.kwargs
        for x in node.args[: 2 if is_symmetric else 1]:
            if not memory.is_free(x) or node.args.count(x) > 1 or any(order[user] > order[node] for user in x.users):
                continue
            array = recorder.made[x][0]
            if (array.shape, array.dtype, array.strides) == (result.shape, result.dtype, result.strides):
                node.args = (x, *(y for y in node.args if y is not x))
                node.target = op.inplace or inplace_generally.__get__(op)
                break
