"""Fold batch normalization into the convolution before it, whose weights change."""

from __future__ import annotations

from tallow.autograd import no_grad
from tallow.fx.graph import at_path
from tallow.fx.graph_module import GraphModule, _assign_attr
from tallow.fx.node import Node
from tallow.nn.parameter import Parameter
from tallow.nn.utils.fusion import fuse_conv_bn_weights
from tallow.onnx.passes.matching import arguments, is_own, name_of

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
OPERANDS = 5  # of batch_norm: the input, mean, variance, weight, bias


def convolution(module: GraphModule) -> int:
    """Fold each batch normalization whose input is a convolution that nothing else uses; return how many."""
    count = 0
    for node in module.graph.nodes:
        if name_of(node) == "batch_norm" and _fold(module, node):
            count += 1
    if count:
        module.graph.eliminate_dead_code()
    return count


def _fold(module: GraphModule, norm: Node) -> bool:
    args = arguments(norm)
    if len(args) != 8 or args[5]:  # in training
        return False
    conv = args[0]
    if name_of(conv) not in CONVOLUTIONS or len(conv.users) > 1 or len(conv.args) < 2:
        return False
    readers = [conv.args[1], *args[1:OPERANDS]]
    bias = conv.args[2] if len(conv.args) > 2 else conv.kwargs.get("bias")
    if any(each is not None and (not isinstance(each, Node) or each.op != "get_attr") for each in [*readers, bias]):
        return False
    if len(readers[0].users) > 1 or readers[0] is None:
        return False
    weight, mean, variance, scale, shift = (at_path(module, str(each.target)) for each in readers)
    held = None if bias is None else at_path(module, str(bias.target))
    if not is_own(module, weight):
        return False
    with no_grad():
        folded = fuse_conv_bn_weights(weight, held, mean, variance, args[7], scale, shift)
    path = str(readers[0].target)
    own = f"{path}_folded_bias"
    _assign_attr(Parameter(folded[0].detach()), module, path)
    _assign_attr(Parameter(folded[1].detach()), module, own)
    with module.graph.inserting_before(conv):
        conv.args = (conv.args[0], readers[0], module.graph.get_attr(own), *conv.args[3:])
    norm.replace_all_uses_with(conv)
    return True
