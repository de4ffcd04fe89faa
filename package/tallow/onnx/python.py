"""Write a loaded model as a Python module, and its tensors to a safetensors file beside it."""

from __future__ import annotations

import builtins
import types
from pathlib import Path
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import UnsupportedError
from tallow.fx.graph_module import GraphModule
from tallow.fx.names import find, qualified_name
from tallow.io import safetensors
from tallow.io.atomic import atomic_write
from tallow.nn.block_layers import BlockLinear

HEADER = '''"""A model that was loaded from an ONNX file.

The tensors are in {weights}. Build the model: {name}().
"""

from pathlib import Path

import tallow
{imports}
{aliases}

def _put(module, path, value):
    """Give a module a tensor or a module at a dotted path, with new modules on the way."""
    *above, name = path.split(".")
    for part in above:
        if not hasattr(module, part):
            module.add_module(part, tallow.nn.Module())
        module = getattr(module, part)
    if isinstance(value, tallow.nn.Module):
        module.add_module(name, value)
    elif isinstance(value, tallow.nn.Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)

'''
BLOCKS = """
def _blocks(shape, format, in_features):
    \"\"\"Return a layer with quantized weights, which the file of tensors has.\"\"\"
    empty = tallow.zeros(shape, dtype=tallow.uint8).numpy()
    return tallow.nn.block_layers.BlockLinear(
        tallow.kernels.quantized.block_matrix.BlockMatrix(empty, format), in_features=in_features
    )

"""
INIT = """
class {name}(tallow.nn.Module):
    BUFFERS = {buffers!r}

    def __init__(self, weights=Path(__file__).with_suffix(".safetensors")):
        super().__init__()
{graphs}        for path, value in tallow.load(weights).items():
            _put(self, path, value if path in self.BUFFERS else tallow.nn.Parameter(value))
        self.eval()

"""


def write_python(module: GraphModule, path: Path, name: str = "Model") -> None:
    """Write the source of a module to `path`, and its tensors to the file of the same name with `.safetensors`.

    Raises:  UnsupportedError if the graph holds a value that has no form in source, such as an array of strings
    """
    graphs = {each: child for each, child in module.named_modules() if each and isinstance(child, GraphModule)}
    names = {each: f"Graph{number}" for number, each in enumerate(graphs)}
    code = {each: child.graph.python_code("self") for each, child in {"": module, **graphs}.items()}
    known: dict[str, Any] = {}
    for written in code.values():
        for alias, value in written.globals.items():
            if known.setdefault(alias, value) is not value:
                raise UnsupportedError(f"to_python: two values have the name {alias}", hint="load the model again")
    imports, aliases = _sources(known)
    weights = path.with_suffix(".safetensors")
    lines = "".join(f"import {each}\n" for each in sorted(imports))
    parts = [HEADER.format(weights=weights.name, name=name, imports=lines, aliases=aliases)]
    for each in graphs:
        parts.append(f"\nclass {names[each]}(tallow.nn.Module):\n{_indented(code[each].src)}\n")
    held = "".join(f"        _put(self, {each!r}, {names[each]}())\n" for each in graphs)
    layers = {each: child for each, child in module.named_modules() if isinstance(child, BlockLinear)}
    held += "".join(f"        _put(self, {each!r}, {_blocks_source(child)})\n" for each, child in layers.items())
    if layers:
        parts.insert(1, BLOCKS)
    buffers = tuple(each for each, _ in module.named_buffers(remove_duplicate=False))
    parts.append(INIT.format(name=name, graphs=held, buffers=buffers) + _indented(code[""].src))
    tensors = {each: value for each, value in module.state_dict(keep_vars=False).items() if isinstance(value, Tensor)}
    safetensors.save(tensors, weights)
    with atomic_write(path) as file:
        file.write("".join(parts).encode())


def _blocks_source(layer: BlockLinear) -> str:
    """Return the expression of a layer whose blocks are in the file of tensors."""
    stored = layer.stored
    return f"_blocks({tuple(stored.blocks.shape)}, {stored.format!r}, {layer.in_features})"


def _indented(source: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in source.splitlines())


def _sources(known: dict[str, Any]) -> tuple[set[str], str]:
    """Return the modules to import, and the lines that give functions the names that the code uses."""
    imports: set[str] = set()
    lines: list[str] = []
    for alias, value in known.items():
        if isinstance(value, types.ModuleType) or getattr(builtins, alias, None) is value:
            continue
        source = qualified_name(value)
        home = getattr(value, "__module__", None)
        if home is None or not callable(value) or find(source) is not value:
            raise UnsupportedError(f"to_python: {alias} is a {type(value).__name__}, which has no form in source")
        imports.add(home)
        lines.append(f"{alias} = {source}\n")
    return imports, "".join(lines)
