"""Encoders of waveforms and VITS: padding, limits, and the pieces that have closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.devices import to_host
from tallow.errors import ArgumentError, ShapeError
from tallow.models.speech.speech_encoder import random_spans
from tallow.models.speech.vits import VitsConfig, VitsModel
from tallow.models.speech.vits_flows import inverse_spline
from tallow.models.speech.wav2vec2 import Wav2Vec2Config, Wav2Vec2ForCTC
from tallow.models.speech.wavlm import WavLMConfig, WavLMForCTC

SIZES: dict[str, Any] = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 16}
SIZES |= {"conv_dim": (5, 6), "conv_kernel": (6, 3), "conv_stride": (4, 2), "num_conv_pos_embeddings": 4}
SIZES |= {"num_conv_pos_embedding_groups": 2, "vocab_size": 7, "feat_extract_norm": "layer"}
VITS: dict[str, Any] = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "ffn_dim": 12, "flow_size": 6}
VITS |= {"spectrogram_bins": 4, "upsample_initial_channel": 8, "upsample_rates": (4, 2), "window_size": 2}
VITS |= {"upsample_kernel_sizes": (8, 4), "resblock_kernel_sizes": (3,), "resblock_dilation_sizes": ((1, 2),)}
VITS |= {"posterior_encoder_num_wavenet_layers": 1}


def numpy(value: Any) -> Any:
    return np.asarray(to_host(value.detach().array))


@pytest.mark.parametrize("kind", [Wav2Vec2ForCTC, WavLMForCTC])
def test_padding_has_no_effect(kind: Any) -> None:
    tl.manual_seed(0)
    own = {"num_buckets": 8, "max_bucket_distance": 12} if kind is WavLMForCTC else {}
    model = kind((WavLMConfig if own else Wav2Vec2Config)(**SIZES, **own)).eval()
    sound = np.random.default_rng(0).normal(size=(1, 90)).astype(np.float32)
    padded = np.concatenate([sound, np.zeros((1, 40), np.float32)], 1)
    mask = (np.arange(130) < 90)[None].astype(np.int64)
    with tl.no_grad():
        alone, together = model(tl.tensor(sound)), model(tl.tensor(padded), tl.tensor(mask))
    frames = model.config.frames_of(90)
    assert alone.shape == (1, frames, 7)
    np.testing.assert_allclose(numpy(together)[:, :frames], numpy(alone), atol=1e-5)


def test_sounds_of_other_shapes_are_refused() -> None:
    model = Wav2Vec2ForCTC(Wav2Vec2Config(**SIZES)).eval()
    with pytest.raises(ShapeError, match="expected"):
        model(tl.zeros(90))
    with pytest.raises(ShapeError, match="shorter than one frame"):
        model(tl.zeros(1, 10))
    with pytest.raises(ShapeError, match="attention_mask"):
        model(tl.zeros(1, 90), tl.zeros(1, 80))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"conv_kernel": (6,)}, "as many numbers as conv_dim"),
        ({"conv_stride": (4, 0)}, "positive integers"),
        ({"feat_extract_norm": "batch"}, "'group' or 'layer'"),
        ({"num_conv_pos_embedding_groups": 5}, "5 heads do not divide"),
    ],
)
def test_sizes_that_do_not_fit(sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Wav2Vec2Config(**(SIZES | sizes))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"depth_separable_num_layers": 40}, "duration_predictor_kernel_size=3"),
        ({"depth_separable_num_layers": 10**9}, "duration_predictor_kernel_size=3"),
        ({"wavenet_dilation_rate": 10**6}, "wavenet_dilation_rate=1000000"),
        ({"resblock_dilation_sizes": ((1, 10**9),)}, "resblock_dilation_sizes"),
        ({"sampling_rate": 10**9}, "sampling_rate"),
    ],
)
def test_sizes_of_voices_that_take_the_memory(sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        VitsConfig(**(VITS | sizes))


def test_training_hides_spans() -> None:
    tl.manual_seed(0)
    spans = numpy(random_spans(200, 50, 0.3, 5, 1))
    assert spans.dtype == bool
    assert 0.15 < spans.mean() < 0.35  # spans overlap
    runs = np.diff(np.flatnonzero(np.diff(np.pad(spans, ((0, 0), (1, 1))).astype(int).ravel())))[::2]
    assert runs.min() >= 5
    tl.manual_seed(0)
    model = Wav2Vec2ForCTC(
        Wav2Vec2Config(**SIZES, mask_time_prob=0.5, mask_time_length=2, mask_feature_prob=0.2)
    ).train()
    model(tl.randn(2, 200)).sum().backward()
    assert np.abs(numpy(model.wav2vec2.masked_spec_embed.grad)).max() > 0


def test_a_spline_is_inverted() -> None:
    """The inverse meets the edges of bins, rises, and is the identity beyond the bound."""
    rng = np.random.default_rng(0)
    widths, heights, slopes = (tl.tensor(rng.normal(size=(1, 1, n)).astype(np.float32)) for n in (5, 5, 4))
    y = np.linspace(-4, 4, 161, dtype=np.float32)[None]
    sizes = [each.expand(1, 161, -1) for each in (widths, heights, slopes)]
    x = numpy(inverse_spline(tl.tensor(y), *sizes, bound=3.0))
    outside = np.abs(y) > 3
    np.testing.assert_array_equal(x[outside], y[outside])
    assert (np.diff(x) > 0).all()

    def edges(logits: Any) -> Any:
        shares = np.exp(numpy(logits)[0, 0]) / np.exp(numpy(logits)[0, 0]).sum()
        return np.concatenate([[-3], 6 * np.cumsum(1e-3 + (1 - 5e-3) * shares) - 3])

    at = inverse_spline(tl.tensor(edges(heights)[None, 1:-1].astype(np.float32)), *[e[:, :4] for e in sizes], bound=3.0)
    np.testing.assert_allclose(numpy(at)[0], edges(widths)[1:-1], atol=1e-4)


def test_a_voice_speaks_within_limits() -> None:
    tl.manual_seed(0)
    model = VitsModel(VitsConfig(**VITS)).eval()
    ids = tl.tensor([[1, 2, 3, 4]])
    with tl.no_grad():
        spoken, slow = model(ids), model(ids, speaking_rate=0.25)
    assert spoken.waveform.shape[1] == int(numpy(spoken.sequence_lengths)[0])
    assert slow.waveform.shape[1] > spoken.waveform.shape[1]
    for rate in (0.0, float("nan"), -1.0):
        with pytest.raises(ArgumentError, match="speaking_rate"):
            model(ids, speaking_rate=rate)
    with pytest.raises(ArgumentError, match="the limit is 600"):
        model(ids, speaking_rate=1e-9)
