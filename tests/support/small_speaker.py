"""A small random model that speaks, for tests of what is around it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import tallow as tl
from tallow.transformers import VitsConfig, VitsModel
from tallow.transformers.speaking import Speaker
from tallow.transformers.tokenization_vits import VitsTokenizer

SIZES = {"vocab_size": 29, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "window_size": 2}
SIZES |= {"ffn_dim": 12, "flow_size": 6, "spectrogram_bins": 4, "upsample_initial_channel": 8, "num_speakers": 2}
SIZES |= {"upsample_rates": [4, 2], "upsample_kernel_sizes": [8, 4], "resblock_kernel_sizes": [3], "ffn_kernel_size": 3}
SIZES |= {"resblock_dilation_sizes": [[1, 2]], "speaker_embedding_size": 3, "posterior_encoder_num_wavenet_layers": 1}
VOCABULARY = {letter: i for i, letter in enumerate("_abcdefghijklmnopqrstuvwxyz '")}


def save_small_speaker(folder: Path) -> Path:
    """Write the folder of a model with two voices, and return it."""
    tl.manual_seed(0)
    VitsModel(VitsConfig(**SIZES)).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps(VOCABULARY))
    VitsTokenizer(folder / "vocab.json", pad_token="_", phonemize=False).save_pretrained(folder)
    return folder


def small_speaker() -> Speaker:
    """Return a model with two voices."""
    with tempfile.TemporaryDirectory() as folder:
        return Speaker.from_pretrained(save_small_speaker(Path(folder)), device="cpu")
