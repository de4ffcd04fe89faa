"""Models from GGUF files of the `gguf` package: the logits equal those of transformers with the same weights."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.gguf_files import write_model
from support.quantized_blocks import COMPILED, random_matrix

import tallow as tl
from tallow import kernels
from tallow.cli import main
from tallow.errors import CheckpointError
from tallow.generation import generate
from tallow.io.gguf import load as load_gguf
from tallow.io.source import Opened
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.models import AutoModel
from tallow.models.decoders.llama import Llama
from tallow.models.decoders.llama_formats import save_hugging_face
from tallow.models.gguf import models as gguf_models
from tallow.nn.block_layers import BlockEmbedding, BlockLinear

transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "rms_norm_eps": 1e-5,
    "pad_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 500000.0,
}
TOKENS = [[1, 5, 9, 2, 7, 33, 60, 8]]


def reference(name: str, **changes: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES | changes)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) / 4)
    return model


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Llama", {}),
        ("Llama", {"tie_word_embeddings": True}),
        ("Llama", {"rope_parameters": LLAMA3}),
        ("Qwen2", {}),
        ("Qwen3", {"head_dim": 16}),
    ],
    ids=["llama", "tied", "llama 3", "qwen2", "qwen3"],
)
def test_logits(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = reference(name, **changes)
    write_model(model, tmp_path / "model.gguf")
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    ours = gguf_models.load(tmp_path / "model.gguf")
    assert ours.config.bos_token_id == 1
    with tl.no_grad():
        np.testing.assert_allclose(ours(tl.tensor(TOKENS)).numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3"])
def test_default_number_of_heads(name: str, tmp_path: Path) -> None:
    """The defaults are llama.cpp's: as many key-value heads as query heads, together as wide as the model."""
    model = reference(name, num_key_value_heads=4, head_dim=16)
    write_model(model, tmp_path / "model.gguf", implied_heads=True)
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    with tl.no_grad():
        got = gguf_models.load(tmp_path / "model.gguf")(tl.tensor(TOKENS)).numpy()
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_values_of_another_width_than_keys(tmp_path: Path) -> None:
    write_model(reference("Llama"), tmp_path / "model.gguf", add=lambda writer: writer.add_value_length(8))
    with pytest.raises(CheckpointError, match="16 elements for keys and 8 for values"):
        gguf_models.load(tmp_path / "model.gguf")


def test_quantised_weights_are_those_of_the_gguf_package(tmp_path: Path) -> None:
    model = reference("Llama")
    kind = gguf.GGMLQuantizationType.Q8_0
    write_model(model, tmp_path / "model.gguf", kind)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            array = parameter.detach().numpy()
            if heads := 4 * ("q_proj" in name) + 2 * ("k_proj" in name):
                woven = np.ascontiguousarray(array.reshape(heads, 2, -1, 64).swapaxes(1, 2)).reshape(array.shape)
                rounded = gguf.quants.dequantize(gguf.quants.quantize(woven, kind), kind)
                rounded = np.ascontiguousarray(rounded.reshape(heads, -1, 2, 64).swapaxes(1, 2)).reshape(array.shape)
            else:
                rounded = gguf.quants.dequantize(gguf.quants.quantize(array, kind), kind)
            with torch.no_grad():
                parameter.copy_(torch.tensor(rounded))
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    ours = gguf_models.load(tmp_path / "model.gguf", dtype=tl.float32)
    with tl.no_grad():
        np.testing.assert_allclose(ours(tl.tensor(TOKENS)).numpy(), expected, atol=1e-4)


def test_quantised_matrices_are_views_of_a_buffer(tmp_path: Path) -> None:
    """A page loads from memory: a model and its tokenizer, from one parsed file, without a copy of the weights."""
    write_model(reference("Llama"), tmp_path / "model.gguf", gguf.GGMLQuantizationType.Q8_0)
    data = np.fromfile(tmp_path / "model.gguf", np.uint8)
    model = gguf_models.load(load_gguf(Opened(data, "the download")))
    layers = [module for module in model.modules() if isinstance(module, BlockLinear | BlockEmbedding)]
    assert layers
    assert all(np.shares_memory(layer.blocks.array, data) for layer in layers)
    same = gguf_models.load(tmp_path / "model.gguf")
    with tl.no_grad():
        np.testing.assert_array_equal(model(tl.tensor(TOKENS)).numpy(), same(tl.tensor(TOKENS)).numpy())


def blocks_of(name: str, array: Any) -> Any:
    """Quantise a matrix; formats that the package cannot write are random blocks of about its magnitude."""
    kind = gguf.GGMLQuantizationType[name]
    with suppress(NotImplementedError):
        return gguf.quants.quantize(array, kind)
    matrix = random_matrix(name, *array.shape, np.random.default_rng(array.size), scale=1.0)
    size = float(abs(matrix.widen()).mean() / abs(array).mean())
    records = matrix.blocks.reshape(len(array), -1, FORMATS[name].record.itemsize).view(FORMATS[name].record)
    for field in {"d", "dmin"} & set(FORMATS[name].record.names or ()):
        records[field] = (records[field] / size).astype(np.float16)
    return matrix.blocks


def write_quantised(path: Path, name: str, **changes: Any) -> None:
    model = reference("Llama", hidden_size=256, intermediate_size=512, head_dim=64, initializer_range=0.06, **changes)
    kind = gguf.GGMLQuantizationType[name]
    write_model(model, path, kind, quantize=lambda array, kind: blocks_of(kind.name, array))


def cosines(a: Any, b: Any) -> Any:
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


@pytest.mark.parametrize("tied", [False, True], ids=["head", "tied"])
@pytest.mark.parametrize("name", COMPILED)
def test_quantised_matrices_stay_quantised(name: str, tied: bool, tmp_path: Path) -> None:
    write_quantised(tmp_path / "model.gguf", name, tie_word_embeddings=tied)
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    widened = AutoModel.from_pretrained(tmp_path / "model.gguf", dtype=tl.float32)
    layers = [module for module in model.modules() if isinstance(module, BlockLinear | BlockEmbedding)]
    assert len(layers) == 2 * 7 + 1 + (not tied)
    assert {layer.format for layer in layers} == {name}
    assert not any(isinstance(module, tl.nn.Linear | tl.nn.Embedding) for module in model.modules())
    assert all(parameter.ndim == 1 for parameter in model.parameters())
    with tl.no_grad():
        got, expected = model(tl.tensor(TOKENS)).numpy(), widened(tl.tensor(TOKENS)).numpy()
    assert cosines(got, expected).min() > 0.999
    cache = model.new_cache()
    with kernels.require_fused():
        one_by_one = [model.next_logits([token], cache) for token in TOKENS[0]]
    assert cosines(np.array(one_by_one), expected[0]).min() > 0.999
    assert cosines(model.last_logits(TOKENS * 3, model.new_cache(batch=3)), expected[:, -1:]).min() > 0.999


def test_texts_of_a_quantised_model(tmp_path: Path) -> None:
    """The likeliest token is the same as with the widened weights, wherever it is likelier by more than rounding."""
    write_quantised(tmp_path / "model.gguf", "Q8_0")
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    widened = AutoModel.from_pretrained(tmp_path / "model.gguf", dtype=tl.float32)
    text = [1, *generate(model, [1], max_tokens=40)]
    with tl.no_grad():
        logits = widened(tl.tensor([text])).numpy()[0]
    for token, row in zip(text[1:], logits, strict=False):
        assert row[token] >= row.max() - 0.05 * row.std()


def test_modules_and_fused_blocks_compute_the_same(tmp_path: Path) -> None:
    write_quantised(tmp_path / "model.gguf", "Q4_K")
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    cache, plain = model.new_cache(), model.new_cache()
    model.last_logits(TOKENS, cache)
    model.last_logits(TOKENS, plain)
    expected = model.last_logits([[3]], plain)[0, 0]  # by modules
    with kernels.require_fused():
        got = model.next_logits([3], cache)
    assert cosines(got, expected) > 0.9999


def test_replaced_blocks_are_noticed(tmp_path: Path) -> None:
    write_quantised(tmp_path / "model.gguf", "Q8_0")
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    cache, mlp = model.new_cache(), model.model.layers[0].mlp
    first = model.next_logits([3], cache)
    mlp.gate_proj.blocks = tl.nn.Buffer(tl.zeros_like(mlp.gate_proj.blocks))
    cache.truncate(0)
    second = model.next_logits([3], cache)
    assert abs(second - first).max() > 1e-3
    mlp.gate_proj = BlockLinear(random_matrix("Q4_0", 512, 256, np.random.default_rng(0), scale=0.01))
    cache.truncate(0)
    with kernels.require_fused():
        assert abs(model.next_logits([3], cache) - second).max() > 1e-3


@pytest.mark.parametrize("options", [{"dtype": tl.float32}, {"dtype": tl.bfloat16}, {"device": "meta"}], ids=str)
def test_another_dtype_or_device_widens(options: dict[str, Any], tmp_path: Path) -> None:
    write_quantised(tmp_path / "model.gguf", "Q4_0")
    model = AutoModel.from_pretrained(tmp_path / "model.gguf", **options)
    assert not any(isinstance(module, BlockLinear | BlockEmbedding) for module in model.modules())
    assert {parameter.dtype for parameter in model.parameters()} == {options.get("dtype", tl.float32)}


@pytest.mark.parametrize("name", ["TQ2_0", "IQ2_XXS"])
def test_formats_without_a_kernel(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The matrices stay quantised; products convert rows of them, and `explain` says so."""
    write_quantised(tmp_path / "model.gguf", name)
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    widened = AutoModel.from_pretrained(tmp_path / "model.gguf", dtype=tl.float32)
    assert isinstance(model.lm_head, BlockLinear)
    with tl.no_grad():
        expected = widened(tl.tensor(TOKENS)).numpy()
        np.testing.assert_allclose(model(tl.tensor(TOKENS)).numpy(), expected, atol=1e-3)
    cache = model.new_cache()
    one_by_one = [model.next_logits([token], cache) for token in TOKENS[0]]
    np.testing.assert_allclose(np.array(one_by_one), expected[0], atol=1e-3)
    capsys.readouterr()
    model.explain()
    assert f"{name}  16 matrices, without a compiled kernel" in capsys.readouterr().out


def test_without_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_quantised(tmp_path / "model.gguf", "Q4_0")
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    widened = AutoModel.from_pretrained(tmp_path / "model.gguf", dtype=tl.float32)
    model.explain()
    assert "Q4_0  16 matrices, multiplied as stored" in capsys.readouterr().out
    with kernels.off(), tl.no_grad():
        model.explain()
        assert "Q4_0  16 matrices, without a compiled kernel" in capsys.readouterr().out
        got = model(tl.tensor(TOKENS)).numpy()
        np.testing.assert_allclose(got, widened(tl.tensor(TOKENS)).numpy(), atol=1e-3)


def test_a_quantised_model_saves_its_weights(tmp_path: Path) -> None:
    write_quantised(tmp_path / "model.gguf", "Q4_0")
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    save_hugging_face(model, tmp_path / "folder")
    assert main(["convert", str(tmp_path / "model.gguf"), str(tmp_path / "converted")]) == 0
    widened = AutoModel.from_pretrained(tmp_path / "model.gguf", dtype=tl.float32)
    for folder in ("folder", "converted"):
        loaded = AutoModel.from_pretrained(tmp_path / folder)
        with tl.no_grad():
            np.testing.assert_allclose(loaded(tl.tensor(TOKENS)).numpy(), widened(tl.tensor(TOKENS)).numpy(), atol=1e-3)


def test_quantised_matrices_of_the_wrong_shape(tmp_path: Path) -> None:
    model = reference("Llama", hidden_size=64, intermediate_size=96)
    model.model.layers[0].mlp.gate_proj.weight = torch.nn.Parameter(torch.zeros(64, 64))
    write_model(model, tmp_path / "model.gguf", gguf.GGMLQuantizationType.Q8_0)
    with pytest.raises(CheckpointError, match=r"'blk\.0\.ffn_gate\.weight' has the shape \(64, 64\)"):
        AutoModel.from_pretrained(tmp_path / "model.gguf")


def test_truncated_quantised_models(tmp_path: Path) -> None:
    write_quantised(tmp_path / "model.gguf", "Q4_K")
    raw = (tmp_path / "model.gguf").read_bytes()
    (tmp_path / "model.gguf").write_bytes(raw[:-100])
    with pytest.raises(CheckpointError, match="truncated"):
        AutoModel.from_pretrained(tmp_path / "model.gguf")


def test_shards_are_one_model(tmp_path: Path) -> None:
    model = reference("Llama")
    write_model(model, tmp_path / "whole.gguf")
    write_model(model, tmp_path / "model.gguf", split_max_tensors=8)
    first = min(tmp_path.glob("model-00001-of-*.gguf"))
    assert len(list(tmp_path.glob("model-*.gguf"))) > 2
    expected = gguf_models.load(tmp_path / "whole.gguf").state_dict()
    got = gguf_models.load(first).state_dict()
    assert got.keys() == expected.keys()
    assert all(tl.equal(got[name], expected[name]) for name in expected)


def test_halves_take_half_the_memory(tmp_path: Path) -> None:
    write_model(reference("Llama"), tmp_path / "model.gguf")
    model = gguf_models.load(tmp_path / "model.gguf", dtype=tl.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {tl.bfloat16}


@pytest.mark.parametrize("architecture", ["rwkv6", "clip"])
def test_another_architecture(architecture: str, tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", architecture)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match=f"unsupported architecture '{architecture}'"):
        gguf_models.load(tmp_path / "model.gguf")


def test_convert_reads_gguf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(reference("Llama"), tmp_path / "model.gguf")
    assert main(["convert", str(tmp_path / "model.gguf"), str(tmp_path / "folder")]) == 0
    assert "folder has no tokenizer; add one with --tokenizer FILE --force" in capsys.readouterr().err
    expected = gguf_models.load(tmp_path / "model.gguf")(tl.tensor(TOKENS))
    np.testing.assert_allclose(
        Llama.from_pretrained(tmp_path / "folder")(tl.tensor(TOKENS)).detach().numpy(),
        expected.detach().numpy(),
        atol=1e-5,
    )
