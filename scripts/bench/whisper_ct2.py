"""CTranslate2 on a Whisper of tiny's shape with random int8 weights, for bench/whisper.py; needs transformers too."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FIRST_SPECIAL, TASK = 50257, 50358
NAMES = ["endoftext", "startoftranscript", *(f"language{i}" for i in range(99))]
NAMES += ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
PROMPT = [FIRST_SPECIAL + 1, FIRST_SPECIAL + 2, TASK + 1, TASK + 5]  # English, transcribe, without timestamps


def parts(sizes: dict[str, int], tokens: int) -> dict[str, Callable[[], Any]]:
    """Return the calls that encode thirty seconds and that generate `tokens` tokens of their text, on one thread.

    Raises: ImportError without ctranslate2.
    """
    import ctranslate2
    from ctranslate2.converters.transformers import WhisperLoader
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    spec = WhisperLoader().get_model_spec(WhisperForConditionalGeneration(WhisperConfig(**sizes)).eval())
    words = [*(f"t{i}" for i in range(FIRST_SPECIAL)), *(f"<|{name}|>" for name in NAMES)]
    times = sizes["vocab_size"] - len(words)
    spec.register_vocabulary([*words, *(f"<|{0.02 * i:.2f}|>" for i in range(times))])
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], []
    spec.validate()
    spec.optimize(quantization="int8")
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        model = ctranslate2.models.Whisper(str(Path(folder)), compute_type="int8", inter_threads=1, intra_threads=1)
    mel = np.random.default_rng(0).standard_normal((1, sizes["num_mel_bins"], 3000), dtype=np.float32)
    sound = ctranslate2.StorageView.from_array(mel)
    encoded = model.encode(sound)

    def generate() -> None:
        # A text has at most half of `max_length` tokens.
        (text,) = model.generate(
            encoded, [PROMPT], beam_size=1, max_length=2 * tokens, suppress_tokens=[FIRST_SPECIAL], suppress_blank=False
        )
        if len(text.sequences_ids[0]) != tokens:
            raise RuntimeError(f"CTranslate2 generated {len(text.sequences_ids[0])} of {tokens} tokens")

    return {"encoder": lambda: model.encode(sound), "token": generate}
