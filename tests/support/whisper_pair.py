"""An OpenAI Whisper with random weights, and tallow's Whisper with the same weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from support.whisper_options import DECODING, TRANSCRIBING
from tallow.models import Whisper


def make_pair(folder: Path, data_dir: Path, *, multilingual: bool = True, seed: int = 0, spread: float = 1.0) -> Any:
    """Return OpenAI's model and tallow's, tiny except for the vocabulary and the 1500 audio positions."""
    import whisper

    torch.manual_seed(seed)
    dims = whisper.model.ModelDimensions(80, 1500, 16, 2, 1, 51865 if multilingual else 51864, 64, 16, 2, 2)
    reference = whisper.model.Whisper(dims).eval()
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.5 if parameter.ndim > 1 else 0.3))
            if "cross_attn.out" in name or "cross_attn.query" in name:
                parameter.mul_(8)  # so that the audio affects the output
            if name == "decoder.ln.weight":
                parameter.mul_(spread)
        # Make timestamps and the end likely; otherwise one of the 50,000 words would always win.
        likely = reference.decoder.ln.bias / reference.decoder.ln.bias.norm() ** 2
        eot, first_time = (50257, 50364) if multilingual else (50256, 50363)
        reference.decoder.token_embedding.weight[eot] += 3.0 * spread * likely
        reference.decoder.token_embedding.weight[first_time:] += 1.0 * spread * likely
    torch.save({"dims": vars(dims), "model_state_dict": reference.state_dict()}, folder / "tiny.pt")
    model = Whisper.from_pretrained(folder / "tiny.pt")
    model.folder = data_dir  # for the vocabulary files
    return reference, model


def noise(seconds: float, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return noise with rising and falling volume, and pauses."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * 16000)) / 16000
    loudness = np.abs(np.sin(2 * np.pi * 0.11 * t)) * (np.sin(2 * np.pi * 0.05 * t) > -0.5)
    return (0.1 * loudness * rng.standard_normal(len(t))).astype(np.float32)


def write_cases(folder: Path, data_dir: Path) -> None:
    """Write the model and OpenAI's results for a sound, for environments where OpenAI's code does not run.

    The files are tiny.pt, sound.npy, expected.npz and expected.json.
    """
    import whisper

    folder.mkdir()
    reference, _ = make_pair(folder, data_dir, spread=3.0)
    sound = noise(41)
    np.save(folder / "sound.npy", sound)
    mel = whisper.log_mel_spectrogram(sound, padding=480_000)
    window = mel[None, :, :3000]
    tokens = torch.tensor([[50258, 50261, 50359, 50364, 440, 1002]])
    with torch.no_grad():
        logits = reference(window, tokens)
    np.savez(folder / "expected.npz", mel=mel[:, :4100], tokens=tokens, logits=logits)
    decoded = {}
    for name, options in DECODING.items():
        result = reference.decode(window[0], whisper.DecodingOptions(fp16=False, language="de", **options))
        decoded[name] = {"tokens": result.tokens, "text": result.text, "avg_logprob": result.avg_logprob}
    transcript = reference.transcribe(sound, fp16=False, **TRANSCRIBING)
    segments = [[each["start"], each["end"], each["tokens"], each["text"]] for each in transcript["segments"]]
    expected = {"decoded": decoded, "language": transcript["language"], "segments": segments}
    (folder / "expected.json").write_text(json.dumps(expected))
