"""Milliseconds of a Whisper of tiny's shape with random weights, for thirty seconds of sound.

Compares tallow and its array code with openai-whisper on PyTorch natively, and with onnxruntime-web in a browser; and
int8 weights, `quant="int8"`, natively with CTranslate2 in int8.

Claims: natively the encoder reaches 0.9 times openai-whisper's speed, the decoder 3 times, the spectrogram takes at
most 60 ms, and with int8 weights both reach CTranslate2's speed. In Chromium, on one thread, both reach 0.8 times
onnxruntime-web's speed, on two threads the encoder 1.2 times; kernels make the encoder 7 times as fast.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.report import Row
from bench.timing import Timing, in_turn
from tallow import kernels
from tallow.audio.mel import log_mel_spectrogram
from tallow.core.creation import as_tensor
from tallow.core.tensor import Tensor, wrap
from tallow.models.whisper import Whisper, WhisperConfig, decode
from tallow.tape.modes import no_grad
from tallow.text.whisper import WhisperTokenizer

NAME = "whisper"
SECONDS = 30
TINY = WhisperConfig(
    vocab_size=51865,
    num_mel_bins=80,
    d_model=384,
    encoder_layers=4,
    encoder_attention_heads=6,
    encoder_ffn_dim=1536,
    decoder_layers=4,
    decoder_attention_heads=6,
    decoder_ffn_dim=1536,
)
SIZES = ("vocab_size", "num_mel_bins", "d_model", "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim")
SIZES += ("decoder_layers", "decoder_attention_heads", "decoder_ffn_dim")
WORDS = 50257
INT8 = ", int8"
# All texts have the same length: suppress the end token.
DECODING: dict[str, Any] = {"language": "en", "suppress_tokens": [-1, WORDS]}

Parts = dict[str, Callable[[], Any]]


def measure(options: dict[str, Any], onnx: Any = None) -> dict[str, Any]:
    """Measure all parts. `onnx` is of onnx_whisper.mjs. The two alternate, so that other load affects both."""
    rng = np.random.default_rng(0)
    sound = rng.standard_normal(16000 * SECONDS, dtype=np.float32) * np.float32(0.1)
    tokens = options["tokens"]
    rivals = (
        {"onnxruntime-web": _onnxruntime(onnx, tokens)}
        if onnx
        else {"openai-whisper": _openai(sound, tokens), "CTranslate2": _ctranslate2(tokens)}
    )
    ours = _tallow(sound, tokens)
    divisors = {"token": tokens, f"token{INT8}": tokens}
    rows: list[Row] = []
    for part, run in ours.items():
        rival = next((name for name, parts in rivals.items() if part in parts), None)
        timings = in_turn(0.0, options["repeats"], run, *([rivals[rival][part]] if rival else []))
        own, *other = (Timing(*(1000 * s / divisors.get(part, 1) for s in each)) for each in timings)
        row: Row = {"part": part, "tallow ms": own.best_s, "median": own.median_s}
        for timing in other:
            row |= {"rival": rival, "its ms": timing.best_s, "its median": timing.median_s}
            row["speed, its = 1"] = timing.best_s / own.best_s
        rows.append(row)
    memory = _memory()
    with kernels.off():
        for row, (part, run) in zip(rows, ours.items(), strict=True):
            if part.endswith(INT8):  # array code widens a matrix at each use
                continue
            start = time.perf_counter()  # once: in a browser the encoder takes a minute
            run()
            row["array code"] = 1000 / divisors.get(part, 1) * (time.perf_counter() - start)
    notes = [
        f"best and median of {options['repeats']}; a token: {tokens}, from the encoded sound, divided by their number",
        *memory,
    ]
    return {"rows": rows, "notes": notes}


def _tallow(sound: Any, tokens: int) -> Parts:
    model, quantised = (Whisper(TINY, device="meta").eval() for _ in range(2))
    state = {name: _random(*each.shape) for name, each in model.state_dict().items()}
    # Any vocabulary will do: all bytes, then words that no text contains.
    tokenizer = WhisperTokenizer(
        {bytes([i]) if i < 256 else b"\0" + i.to_bytes(3, "big"): i for i in range(WORDS)}, TINY.vocab_size
    )
    for each in (model, quantised):
        each.load_state_dict(state, assign=True)  # shares the arrays
        each.tokenizer = tokenizer
    quantised.quantize("int8")
    mel = log_mel_spectrogram(sound)
    with no_grad():
        audio = model.encoder(as_tensor(mel[None]))

    def encode(model: Whisper) -> None:
        with no_grad():
            model.encoder(as_tensor(mel[None]))

    return {
        "spectrogram": lambda: log_mel_spectrogram(sound),
        "encoder": lambda: encode(model),
        "token": lambda: decode(model, audio, sample_len=tokens, **DECODING),
        f"encoder{INT8}": lambda: encode(quantised),
        f"token{INT8}": lambda: decode(quantised, audio, sample_len=tokens, **DECODING),
    }


def _random(*shape: int) -> Tensor:
    """Draw random weights in place, in float32: a browser never frees temporary memory."""
    array = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    array *= np.float32(0.02)
    return wrap(array)


def _openai(sound: Any, tokens: int) -> Parts:
    """Return the rows of openai-whisper; none if it is not installed."""
    try:
        import torch
        import whisper
    except ImportError:
        return {}
    torch.set_num_threads(1)
    dims = whisper.model.ModelDimensions(80, 1500, 384, 6, 4, TINY.vocab_size, 448, 384, 6, 4)
    model = whisper.model.Whisper(dims).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.02)
        mel = whisper.log_mel_spectrogram(sound)[None]
        audio = model.encoder(mel)
    options = whisper.DecodingOptions(sample_len=tokens, fp16=False, **DECODING)

    def encode() -> None:
        with torch.no_grad():
            model.encoder(mel)

    return {
        "spectrogram": lambda: whisper.log_mel_spectrogram(sound),
        "encoder": encode,
        "token": lambda: whisper.decode(model, audio, options),
    }


def _ctranslate2(tokens: int) -> Parts:
    """Return the rows of CTranslate2 in int8; none if it is not installed."""
    try:
        from bench.whisper_ct2 import parts

        made = parts({name: getattr(TINY, name) for name in SIZES}, tokens)
    except ImportError:
        return {}
    return {f"{part}{INT8}": run for part, run in made.items()}


def _onnxruntime(onnx: Any, tokens: int) -> Parts:
    from pyodide.ffi import run_sync

    return {"encoder": lambda: run_sync(onnx.encode()), "token": lambda: run_sync(onnx.decode(tokens))}


def _memory() -> list[str]:
    try:
        import pyodide_js
    except ImportError:
        return []
    return [f"Pyodide's memory, which never shrinks: {pyodide_js._module.HEAPU8.length / 2**20:.0f} MiB"]
