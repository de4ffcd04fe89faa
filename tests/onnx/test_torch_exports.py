"""Files that PyTorch's exporter writes, loaded and run: onnxruntime computes the same, and so does PyTorch's backward.

Weights are random; sizes of open dims differ from those of the export.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime is the reference")]
CLOSE = 2e-5  # float32; sums in another order
Axes = dict[str, dict[int, str]]


class Only(torch.nn.Module):
    """A model whose forward takes tensors by position and returns one."""

    def __init__(self, model: Any, names: list[str], result: str) -> None:
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *inputs: Any) -> Any:
        outputs = self.model(**dict(zip(self.names, inputs, strict=True)), return_dict=True)
        return getattr(outputs, self.result)


class Tagger(torch.nn.Module):
    """A bidirectional LSTM of two layers and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0])


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def bert() -> tuple[Any, Axes, Callable[[int], list[Any]]]:
    model = transformers.BertModel(transformers.BertConfig(**SIZES, vocab_size=50))
    axes = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"}}

    def inputs(size: int) -> list[Any]:
        mask = torch.ones(size, size + 3, dtype=torch.int64)
        mask[0, 2:] = 0
        return [torch.randint(0, 50, (size, size + 3)), mask]

    return Only(model, list(axes), "last_hidden_state"), axes, inputs


def vit() -> tuple[Any, Axes, Callable[[int], list[Any]]]:
    config = transformers.ViTConfig(**SIZES, image_size=16, patch_size=8)
    model = transformers.ViTModel(config, add_pooling_layer=False)
    axes = {"pixel_values": {0: "batch"}}
    return Only(model, list(axes), "last_hidden_state"), axes, lambda size: [torch.randn(size, 3, 16, 16)]


def resnet() -> tuple[Any, Axes, Callable[[int], list[Any]]]:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    axes = {"pixel_values": {0: "batch", 2: "height", 3: "width"}}
    model = Only(transformers.ResNetForImageClassification(config), list(axes), "logits")
    return model, axes, lambda size: [torch.randn(size, 3, 32, 32 * size)]


def tagger() -> tuple[Any, Axes, Callable[[int], list[Any]]]:
    return Tagger(), {"x": {0: "batch", 1: "length"}}, lambda size: [torch.randn(size, size + 1, 8)]


def layers() -> tuple[Any, Axes, Callable[[int], list[Any]]]:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, activation="gelu")
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return model, {"src": {0: "batch"}}, lambda size: [torch.randn(size, 5, 16)]


# What the passes recognize in each
NETWORKS: dict[str, tuple[Any, dict[str, int]]] = {
    "bert": (bert, {"linear": 12, "attention": 2, "activations": 2}),
    "vit": (vit, {"linear": 12, "attention": 2, "activations": 2}),
    "resnet": (resnet, {"linear": 1}),
    "tagger": (tagger, {"linear": 1}),
    "layers": (layers, {}),
}


def randomized(model: Any) -> Any:
    """Return a model in evaluation with random weights: those of new models are equal, and files share equal ones."""
    torch.manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_()
    return model.eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_loaded_as_onnxruntime_loads_it(name: str) -> None:
    make, recognized = NETWORKS[name]
    model, axes, inputs = make()
    model, file = randomized(model), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, tuple(inputs(2)), file, dynamo=False, input_names=list(axes), dynamic_axes=axes, opset_version=17
        )
    loaded = tl.onnx.load(file.getvalue())
    assert {key: loaded.meta["passes"][key] for key in recognized} == recognized
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    for size in (1, 3):
        values = inputs(size)
        (expected,) = session.run(None, {key: value.numpy() for key, value in zip(axes, values, strict=True)})
        result = loaded(**{key: tl.tensor(value.numpy()) for key, value in zip(axes, values, strict=True)})
        assert np.allclose(result.detach().numpy(), expected, atol=CLOSE, rtol=1e-4)
    result.square().sum().backward()
    model(*values).square().sum().backward()
    theirs = sum(float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None)
    ours = sum(float(p.grad.square().sum()) for p in loaded.parameters() if p.grad is not None)
    if recognized and name not in ("resnet",):  # folded batch normalization has other weights
        assert np.isclose(ours, theirs, rtol=1e-3)
