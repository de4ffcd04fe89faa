"""Whisper compared with transformers and OpenAI's code: equal weights give equal logits, texts equal ids."""

from __future__ import annotations

import base64
import gzip
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow.models import AutoModel, Whisper
from tallow.models.whisper import WhisperConfig
from tallow.models.whisper.alignment import published_heads
from tallow.text.whisper import WhisperTokenizer

transformers = pytest.importorskip("transformers")
openai = pytest.importorskip("whisper")

# OpenAI's tokenizer leaves its vocabulary file open.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ATOL = 1e-4
SIZES = {
    "vocab_size": 51865,
    "d_model": 32,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_source_positions": 30,
    "max_target_positions": 40,
}
# alphabets, marks and signs for random texts
SCRIPTS = (
    *(range(32, 127), range(0xC0, 0x250), range(0x390, 0x3D0), range(0x400, 0x460), range(0x5D0, 0x5EB)),
    *(range(0x600, 0x6FF), range(0x900, 0x97F), range(0xE00, 0xE5C), range(0x1780, 0x17F0), range(0x2000, 0x2070)),
    *(range(0x2150, 0x218C), range(0x3040, 0x30FF), range(0x4E00, 0x9000), range(0xAC00, 0xD7A4)),
    *(range(0x1F300, 0x1F6FF), range(1, 0xD7FF)),
)


def inputs(n_mels: int, frames: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, n_mels, frames)).astype(np.float32), rng.integers(0, SIZES["vocab_size"], (2, 9))


@pytest.mark.parametrize("n_mels", [80, 128])
def test_folder_of_transformers(n_mels: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    reference = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(num_mel_bins=n_mels, **SIZES))
    with torch.no_grad():
        for parameter in reference.eval().parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    reference.save_pretrained(tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    assert isinstance(model, Whisper)
    mel, tokens = inputs(n_mels, 60)
    with torch.no_grad():
        expected = reference(torch.tensor(mel), decoder_input_ids=torch.tensor(tokens)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor(mel), tl.tensor(tokens)).numpy(), expected, atol=ATOL)
        state = model.decoder.listen(model.encoder(tl.tensor(mel)))
        cache = model.new_cache(2)
        parts = [model.decoder(tl.tensor(tokens[:, a:b]), state, cache) for a, b in ((0, 4), (4, 5), (5, 9))]
        np.testing.assert_allclose(model.logits(tl.cat(parts, 1)).numpy(), expected, atol=ATOL)


def test_file_of_openai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    dims = openai.model.ModelDimensions(80, 30, 32, 2, 2, 51865, 40, 32, 4, 3)
    reference = openai.model.Whisper(dims).eval()
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2)
    torch.save({"dims": vars(dims), "model_state_dict": reference.state_dict()}, tmp_path / "tiny.pt")
    model = Whisper.from_pretrained(tmp_path / "tiny.pt")
    mel, tokens = inputs(80, 60)
    with torch.no_grad():
        expected = reference(torch.tensor(mel), torch.tensor(tokens)).numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor(mel), tl.tensor(tokens)).numpy(), expected, atol=ATOL)
    assert model.alignment_heads == tuple(map(tuple, reference.alignment_heads.indices().T.tolist()))
    monkeypatch.setattr("tallow.models.whisper.model.published_heads", lambda config: ((config.decoder_layers, 0),))
    assert Whisper.from_pretrained(tmp_path / "tiny.pt").alignment_heads == ((3, 0),)


@pytest.mark.parametrize(
    ("file", "languages", "vocab_size"),
    [("multilingual", 99, 51865), ("multilingual", 100, 51866), ("gpt2", 99, 51864)],
)
def test_tokenizer(file: str, languages: int, vocab_size: int, data_dir: Path) -> None:
    many = file == "multilingual"
    theirs = openai.tokenizer.get_tokenizer(many, num_languages=languages, language="de", task="translate")
    ours = WhisperTokenizer.load(data_dir / f"{file}.tiktoken", vocab_size)
    for name in (
        *("eot", "sot", "translate", "transcribe", "sot_lm", "sot_prev", "no_speech", "no_timestamps"),
        *("timestamp_begin", "non_speech_tokens"),
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.sot_sequence("german", "translate") == theirs.sot_sequence
    assert sorted(theirs.all_language_tokens) == list(ours.language_tokens)
    rng = random.Random(0)
    for _ in range(400):
        script = rng.choice(SCRIPTS)
        text = "".join(
            chr(rng.choice(script)) if rng.random() < 0.8 else rng.choice((" ", "\n", "'t", "'re", "12", ".", "  "))
            for _ in range(rng.randint(0, 40))
        )
        ids = ours.encode(text)
        assert ids == theirs.encoding.encode_ordinary(text), text
        mixed = [*ids[:10], *(rng.randrange(vocab_size) for _ in range(10))]
        assert ours.decode(mixed) == theirs.decode(mixed)
        assert ours.decode_with_timestamps(mixed) == theirs.decode_with_timestamps(mixed)
        for part in (ids, mixed):
            assert tuple(ours.split_to_words(part, "de")) == theirs.split_to_word_tokens(part)
            if many:
                assert tuple(ours.split_to_words(part, "ja")) == theirs.split_tokens_on_unicode(part)


@pytest.mark.parametrize("name", ["tiny", "tiny.en", "base", "base.en", "small", "medium.en", "large-v3", "turbo"])
def test_alignment_heads(name: str) -> None:
    """Compare with OpenAI's masks of alignment heads, which only its own downloads contain."""
    layers, heads, width = {
        "tiny": (4, 6, 384),
        "base": (6, 8, 512),
        "smal": (12, 12, 768),
        "medi": (24, 16, 1024),
        "larg": (32, 20, 1280),
        "turb": (4, 20, 1280),
    }[name[:4]]
    sizes = {"encoder_layers": 32 if name == "turbo" else layers, "decoder_layers": layers, "d_model": width}
    sizes |= {"encoder_attention_heads": heads, "decoder_attention_heads": heads}
    vocab_size = 51864 if name.endswith(".en") else 51866 if name in ("large-v3", "turbo") else 51865
    config = WhisperConfig(**SIZES | sizes | {"vocab_size": vocab_size, "num_mel_bins": 80})
    mask = np.frombuffer(gzip.decompress(base64.b85decode(openai._ALIGNMENT_HEADS[name])), bool)
    expected = [tuple(pair) for pair in np.argwhere(mask.reshape(layers, heads)).tolist()]
    assert list(published_heads(config) or ()) == expected


def test_heads_of_other_models() -> None:
    config = WhisperConfig(**SIZES | {"num_mel_bins": 80})
    assert published_heads(config) is None
    large = {"encoder_layers": 32, "decoder_layers": 32, "d_model": 1280}  # v1 or v2
    assert published_heads(WhisperConfig(**SIZES | large | {"num_mel_bins": 80})) is None
