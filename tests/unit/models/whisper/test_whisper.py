"""Whisper: all code paths agree, its files in every format load, and wrong ones are refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.whisper_files import CONFIG, DIMS, ggml, openai_names

import tallow as tl
from tallow import kernels
from tallow.errors import ArgumentError, CheckpointError, ShapeError, TokenizerError
from tallow.fused.eligibility import why_not
from tallow.models import Whisper, WhisperConfig
from tallow.models.whisper.model import sinusoids
from tallow.models.whisper.steps import Steps
from tallow.nn.block_layers import BlockEmbedding, BlockLinear

# float32 sums of a few dozen terms near 1, in a different order
ATOL = 2e-5


@pytest.fixture(scope="module")
def model() -> Whisper:
    tl.manual_seed(0)
    return Whisper(CONFIG).eval()


@pytest.fixture
def mel() -> tl.Tensor:
    return tl.tensor(np.random.default_rng(0).standard_normal((2, 6, 20)).astype(np.float32))


TOKENS = tl.tensor([[3, 100, 7, 7, 1500], [9, 0, 260, 11, 5]])


def logits(model: Whisper, mel: tl.Tensor) -> np.ndarray[Any, Any]:
    with tl.no_grad():
        return model(mel, TOKENS).numpy()


def test_cached_and_uncached_logits_agree(model: Whisper, mel: tl.Tensor) -> None:
    with tl.no_grad():
        state = model.decoder.listen(model.encoder(mel))
        cache = model.new_cache(2)
        parts = [model.decoder(TOKENS[:, a:b], state, cache) for a, b in ((0, 3), (3, 4), (4, 5))]
        np.testing.assert_allclose(model.logits(tl.cat(parts, 1)).numpy(), logits(model, mel), atol=ATOL)


def test_rows_with_the_same_audio(model: Whisper, mel: tl.Tensor) -> None:
    tokens = tl.cat([TOKENS[:1], TOKENS, TOKENS[1:]])
    with tl.no_grad():
        got = model(mel, tokens).numpy()  # two rows of each sound
        expected = model(mel[[0, 0, 1, 1]], tokens).numpy()
    np.testing.assert_allclose(got, expected, atol=ATOL)


@pytest.mark.parametrize("way", ["float32", "float16", "hooked"])
def test_steps_of_diverging_rows(way: str, model: Whisper, mel: tl.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beams and samples: the kernel, or the layers where somebody looks at them, and all tokens at once."""
    monkeypatch.setattr("tallow.nn.cache.INITIAL_POSITIONS", 3)  # grows on the way
    seen: list[Any] = []
    with tl.no_grad():
        own = Whisper(CONFIG).eval()
        own.load_state_dict(model.state_dict())
        if way == "float16":
            own.to(tl.float16)
            model = Whisper(CONFIG).eval()
            model.load_state_dict(own.state_dict())  # the same weights, but without rounding between the layers
        if way == "hooked":
            own.decoder.layers[1].fc1.register_forward_hook(lambda *_: seen.append(1))
        steps = Steps(own, own.encoder(mel))
        rows = TOKENS.tolist()
        start = steps.start(rows, [1, -1])
        steps.fan_out(2)
        rows = [[*row, token] for row in rows for token in (4, 8)]
        first = steps.next_logits(rows)
        steps.select([1, 0, 3, 3])
        rows = [[*rows[source], token] for source, token in zip([1, 0, 3, 3], [5, 6, 7, 8], strict=True)]
        second = steps.next_logits(rows)
        expected = model(mel, tl.tensor(rows)).numpy()
    atol = 3e-2 if way == "float16" else ATOL
    np.testing.assert_allclose(start, expected[[0, 2]][:, [1, 4]], atol=atol)
    np.testing.assert_allclose(first[[1, 0, 3, 3]], expected[:, 5], atol=atol)
    np.testing.assert_allclose(second, expected[:, 6], atol=atol)
    assert bool(seen) == (way == "hooked")


@pytest.mark.cpu("its fused decoder")
def test_what_the_kernel_does_not_know_goes_through_the_layers(model: Whisper) -> None:
    def is_plain(model: Whisper) -> bool:
        return why_not(model.fused_parts(), model.fused_pattern) is None

    assert is_plain(model)
    assert not is_plain(Whisper(replace(CONFIG, activation_function="relu")).eval())
    assert not is_plain(Whisper(CONFIG, dtype=tl.float64).eval())
    dropping = Whisper(replace(CONFIG, dropout=0.1))
    assert not is_plain(dropping.train())
    assert is_plain(dropping.eval())


def test_scores_are_of_every_layer_and_head(model: Whisper, mel: tl.Tensor) -> None:
    with tl.no_grad():
        state = model.decoder.listen(model.encoder(mel))
        state.scores = []
        model.decoder(TOKENS, state)
    assert [tuple(scores.shape) for scores in state.scores] == [(2, 4, 5, 10)] * 3


def test_gradients_reach_every_parameter(mel: tl.Tensor) -> None:
    tl.manual_seed(1)
    model = Whisper(CONFIG)
    model(mel, TOKENS).sin().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum().item() > 0 for p in model.parameters())


def test_positions_are_sinusoids() -> None:
    positions = sinusoids(50, 8)
    assert positions.shape == (50, 8)
    np.testing.assert_allclose(positions[7, 0], np.sin(7), atol=1e-6)
    np.testing.assert_allclose(positions[7, [3, 7]], [np.sin(7e-4), np.cos(7e-4)], atol=1e-6)


def test_openai_file(model: Whisper, mel: tl.Tensor, tmp_path: Path) -> None:
    tl.save({"dims": DIMS, "model_state_dict": openai_names(model)}, tmp_path / "tiny.pt")
    np.testing.assert_array_equal(logits(Whisper.from_pretrained(tmp_path / "tiny.pt"), mel), logits(model, mel))


@pytest.mark.parametrize(("kind", "atol"), [(0, 0), (8, 0.5)])
def test_ggml_file(model: Whisper, mel: tl.Tensor, kind: int, atol: float, tmp_path: Path) -> None:
    (tmp_path / "tiny.bin").write_bytes(ggml(model, kind))
    loaded = Whisper.from_pretrained(tmp_path / "tiny.bin")
    np.testing.assert_allclose(logits(loaded, mel), logits(model, mel), atol=atol)
    assert loaded.tokenizer.encode("hello") == [259]


@pytest.mark.cpu("on a GPU a file's weights are widened")
def test_quantised_matrices_of_a_ggml_file_stay_as_they_lie(model: Whisper, mel: tl.Tensor, tmp_path: Path) -> None:
    if not kernels.info().enabled:
        pytest.skip("kernels are switched off")  # the weights are widened
    path = tmp_path / "tiny.bin"
    path.write_bytes(ggml(model, 8))
    loaded = Whisper.from_pretrained(path)
    quantised = [module for module in loaded.modules() if isinstance(module, BlockLinear | BlockEmbedding)]
    assert len(quantised) == 2 * 6 + 3 * 10 + 1  # layers of the encoder and the decoder, and the tokens' embedding
    assert not any(isinstance(module, tl.nn.Linear) for module in loaded.modules())
    for module in quantised:
        assert module.blocks.numpy().tobytes() in path.read_bytes()
    assert {parameter.dtype for parameter in loaded.parameters()} == {tl.float32}
    assert loaded.num_parameters() == model.num_parameters() == sum(each.numel() for each in model.parameters())
    assert Whisper.from_single_file(path.read_bytes()).num_parameters() == model.num_parameters()
    widened = Whisper.from_pretrained(path, dtype=tl.float32)
    assert not any(isinstance(module, BlockLinear | BlockEmbedding) for module in widened.modules())
    for name, module in loaded.named_modules():
        if isinstance(module, BlockLinear | BlockEmbedding):
            np.testing.assert_array_equal(module.weight.numpy(), widened.get_submodule(name).weight.detach().numpy())
    np.testing.assert_allclose(logits(loaded, mel), logits(widened, mel), atol=0.5)


def test_truncated_files_are_refused(model: Whisper, tmp_path: Path) -> None:
    content = ggml(model)
    for end in (4, 30, 100, 1000, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.bin").write_bytes(content[:end])
        with pytest.raises(CheckpointError, match=r"truncated|missing"):
            Whisper.from_pretrained(tmp_path / "cut.bin")


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    tl.save({"weight": tl.ones(2)}, path)
    with pytest.raises(CheckpointError, match="has no dims or model_state_dict"):
        Whisper.from_pretrained(path)
    tl.save({"dims": {"n_mels": 6}, "model_state_dict": {}}, path)
    with pytest.raises(CheckpointError, match="dims lack n_vocab"):
        Whisper.from_pretrained(path)
    for odd in ("384", None, [6], {}, 1.5):
        tl.save({"dims": DIMS | {"n_audio_state": odd}, "model_state_dict": {}}, path)
        with pytest.raises(CheckpointError, match="dims are not integers: n_audio_state="):
            Whisper.from_pretrained(path)
    tl.save({"dims": DIMS, "model_state_dict": {1: tl.ones(2)}}, path)
    with pytest.raises(CheckpointError, match="does not contain tensors by name"):
        Whisper.from_pretrained(path)
    path.write_bytes(b"Hello.")
    with pytest.raises(CheckpointError, match="not a PyTorch checkpoint"):
        Whisper.from_pretrained(path)
    path.write_bytes(b"lmgg" + struct.pack("<11i", *DIMS.values(), 0) + struct.pack("<2i", -1, 3))
    with pytest.raises(CheckpointError, match="malformed"):
        Whisper.from_pretrained(path)


def test_bad_arguments(model: Whisper, mel: tl.Tensor) -> None:
    with pytest.raises(ShapeError, match=r"\(2, 6, 18\); the model expects \(B, 6, 20\)"):
        model.encoder(mel[:, :, :18])
    with pytest.raises(ArgumentError, match="a text of 13 tokens; the model has 12"):
        model(mel, tl.zeros(2, 13, dtype=tl.int64))
    with pytest.raises(ArgumentError, match="3 heads do not divide"):
        WhisperConfig(**vars(CONFIG) | {"decoder_attention_heads": 3})
    with pytest.raises(TokenizerError, match="not loaded from a folder"):
        model.tokenizer  # noqa: B018
