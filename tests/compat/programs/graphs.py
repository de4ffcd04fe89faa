"""torch.fx at work: fuse batch norms, replace patterns, decompose, profile, insert observers, extract features."""

import argparse
import copy
import operator
import os
import re

import torch
import torch.fx
import torch.nn.functional as F
from torch import fx, nn
from torch.fx import subgraph_rewriter
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node, map_arg
from torch.fx.passes.shape_prop import ShapeProp


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + x)


class Net(nn.Module):
    def __init__(self, width=6, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.scale = nn.Parameter(torch.ones(width, 1, 1))
        self.register_buffer("shift", torch.full((width, 1, 1), 0.1))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x)) * self.scale + self.shift
        x = x * torch.sigmoid(x)
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


def train(module, x, steps):
    labels = torch.arange(len(x)) % 4
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(steps):
        loss = F.cross_entropy(module(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")


def describe(title, module, *inputs):
    out = module(*inputs)
    kinds = [f"{n.op}:{n.name}" for n in module.graph.nodes]
    print(title, len(kinds), " ".join(kinds))
    print(title, f"{out.sum().item():.6f} {out.abs().max().item():.6f}")


def fuse_batch_norms(module):
    traced = fx.symbolic_trace(copy.deepcopy(module))
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        source = node.args[0]
        if source.op != "call_module" or len(source.users) > 1:
            continue
        conv, bn = modules[source.target], modules[node.target]
        gain = bn.weight * torch.rsqrt(bn.running_var + bn.eps)
        bias = torch.zeros_like(bn.running_mean) if conv.bias is None else conv.bias
        conv.weight = nn.Parameter((conv.weight * gain.reshape(-1, 1, 1, 1)).detach())
        conv.bias = nn.Parameter(((bias - bn.running_mean) * gain + bn.bias).detach())
        node.replace_all_uses_with(source)
        traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    traced.delete_all_unused_submodules()
    return traced


def gelu_by_tanh(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))


def decompose(module, rules):
    graph, env = fx.Graph(), {}
    tracer = fx.proxy.GraphAppendingTracer(graph)
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target in rules:
            args = [fx.Proxy(env[x.name], tracer) if isinstance(x, Node) else x for x in node.args]
            env[node.name] = rules[node.target](*args).node
        else:
            env[node.name] = graph.node_copy(node, lambda x: env[x.name])
    return GraphModule(module, graph)


class Profiler(fx.Interpreter):
    def __init__(self, module):
        super().__init__(module)
        self.sizes = {}

    def run_node(self, n):
        value = super().run_node(n)
        if isinstance(value, torch.Tensor):
            self.sizes.setdefault(n.op, []).append(value.numel())
        return value


class Observer(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.high = float("inf"), float("-inf")

    def forward(self, x):
        self.low, self.high = min(self.low, x.min().item()), max(self.high, x.max().item())
        return x


def observe(module):
    for node in list(module.graph.nodes):
        if node.op == "call_module":
            name = f"observer_{node.name}"
            module.add_submodule(name, Observer())
            with module.graph.inserting_after(node):
                seen = module.graph.call_module(name, (node,))
            node.replace_all_uses_with(seen)
            seen.args = (node,)
    module.recompile()
    return module


class Doubled(fx.Transformer):
    def call_function(self, target, args, kwargs):
        if target is operator.add:
            return super().call_function(operator.mul, (super().call_function(target, args, kwargs), 2), {})
        return super().call_function(target, args, kwargs)


@fx.wrap
def largest_row(x):
    return x[x.sum(dim=1).argmax().item()]


class PathTracer(fx.Tracer):
    def __init__(self):
        super().__init__()
        self.paths, self.current = {}, ""

    def call_module(self, m, forward, args, kwargs):
        before, self.current = self.current, self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current = before

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *rest):
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
        self.paths[proxy.node.name] = f"{self.current}.{proxy.node.name}" if self.current else proxy.node.name
        return proxy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(0)
    net = Net()
    if os.path.exists(options.init):
        net.load_state_dict(torch.load(options.init))
    else:
        torch.save(net.state_dict(), options.init)
    x = torch.randn(8, 3, 12, 12)
    train(fx.symbolic_trace(net), x, options.steps)  # the graph has the net's parameters
    net.eval()
    x = x[:2]

    traced = fx.symbolic_trace(net)
    describe("traced", traced, x)
    print("fused", f"{(fuse_batch_norms(net)(x) - net(x)).abs().max().item() < 1e-4}")
    describe("fused", fuse_batch_norms(net), x)

    traced = fx.symbolic_trace(net)
    found = subgraph_rewriter.replace_pattern(traced, lambda x: x * torch.sigmoid(x), lambda x: F.gelu(x))
    print("matches", [{str(k): str(v) for k, v in match.nodes_map.items()} for match in found])
    describe("rewritten", traced, x)
    describe("decomposed", decompose(traced, {F.gelu: gelu_by_tanh}), x)

    profiler = Profiler(traced)
    profiler.run(x)
    print("sizes", profiler.sizes)
    ShapeProp(traced).propagate(x)
    print(
        "shapes", [(n.name, tuple(n.meta["tensor_meta"].shape)) for n in traced.graph.nodes if "tensor_meta" in n.meta]
    )

    observed = observe(fx.symbolic_trace(net))
    describe("observed", observed, x)
    for name, module in observed.named_children():
        if name.startswith("observer"):
            print(name, f"{module.low:.5f} {module.high:.5f}")
    describe("doubled", Doubled(fx.symbolic_trace(net)).transform(), x)

    wrapped = fx.symbolic_trace(lambda x: largest_row(torch.flatten(x, 1)) + 1)
    describe("wrapped", wrapped, x)

    tracer = PathTracer()
    graph = tracer.trace(net)
    print("paths", " ".join(tracer.paths.values()))
    for node in reversed(graph.nodes):
        if tracer.paths.get(node.name) == "blocks.0.relu_1":
            output = next(n for n in graph.nodes if n.op == "output")
            output.args = (map_arg({"feature": node}, lambda n: n),)
    features = GraphModule(net, graph)
    graph.eliminate_dead_code()
    features.recompile()
    print("features", len(list(graph.nodes)), f"{features(x)['feature'].sum().item():.5f}")

    for broken in (lambda x: x if x.sum() > 0 else -x, lambda x: [row + 1 for row in x]):
        try:
            fx.symbolic_trace(broken)
        except fx.proxy.TraceError as error:
            print("refused", re.match(r"\w+", str(error))[0])


if __name__ == "__main__":
    main()
