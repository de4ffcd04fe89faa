"""Export Whisper for onnxruntime-web: an encoder, the keys and values of cross-attention, and one decoder step.

For `scripts/bench.py whisper --browser --onnx FOLDER`.

    npm pack onnxruntime-web && tar xf onnxruntime-web-*.tgz && cp package/dist/ort.wasm.min.mjs \\
        package/dist/ort-wasm-simd-threaded.{mjs,wasm} FOLDER
    python -P scripts/bench/whisper_onnx.py FOLDER     # needs torch, onnx, onnxscript and openai-whisper; -P because
                                                       # this folder contains a whisper.py too

The weights are random: only the shape of Whisper tiny matters.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from whisper.model import ModelDimensions, Whisper

TINY = ModelDimensions(80, 1500, 384, 6, 4, 51865, 448, 384, 6, 4)
HEADS = TINY.n_text_head


def split(x: Tensor) -> Tensor:
    """(1, T, D) -> (1, H, T, K)"""
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def attend(attention: Any, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    mixed = scaled_dot_product_attention(split(attention.query(query)), keys, values)
    y: Tensor = attention.out(mixed.transpose(1, 2).flatten(2))
    return y


class CrossKeys(nn.Module):
    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, audio: Tensor) -> list[Tensor]:
        """(1, S, D) -> keys and values (1, H, S, K), layer by layer"""
        parts = [block.cross_attn for block in self.decoder.blocks]
        return [split(project(audio)) for part in parts for project in (part.key, part.value)]


class Step(nn.Module):
    """One decoder step. Each layer has separate caches as inputs and outputs; joined caches would be copied twice."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, token: Tensor, position: Tensor, past: list[Tensor], cross: list[Tensor]) -> list[Tensor]:
        """token (1, 1), position (1,), caches (1, H, T, K) -> logits (1, V), caches one position longer"""
        decoder = self.decoder
        x = decoder.token_embedding(token) + decoder.positional_embedding[position]
        present = []
        for i, block in enumerate(decoder.blocks):
            normed = block.attn_ln(x)
            k = torch.cat([past[2 * i], split(block.attn.key(normed))], 2)
            v = torch.cat([past[2 * i + 1], split(block.attn.value(normed))], 2)
            present += [k, v]
            x = x + attend(block.attn, normed, k, v)
            x = x + attend(block.cross_attn, block.cross_attn_ln(x), cross[2 * i], cross[2 * i + 1])
            x = x + block.mlp(block.mlp_ln(x))
        logits = decoder.ln(x)[:, 0] @ decoder.token_embedding.weight.T
        return [logits, *present]


def names(kind: str) -> list[str]:
    """Return the names of the caches, as in onnx_whisper.mjs."""
    return [f"{kind}_{part}_{i}" for i in range(TINY.n_text_layer) for part in ("keys", "values")]


def main() -> None:
    folder = Path(sys.argv[1])
    model = Whisper(TINY).eval()
    audio = torch.zeros(1, TINY.n_audio_ctx, TINY.n_audio_state)
    export(
        folder / "encoder.onnx", model.encoder, (torch.zeros(1, TINY.n_mels, 2 * TINY.n_audio_ctx),), ["mel"], ["audio"]
    )
    crossing = CrossKeys(model.decoder)
    export(folder / "cross.onnx", crossing, (audio,), ["audio"], names("cross"))
    cross = crossing(audio)
    past = [each[:, :, :5].clone() for each in cross]
    inputs = (torch.zeros(1, 1, dtype=torch.int64), torch.tensor([5]), past, cross)
    grows = {2: torch.export.Dim("length", max=TINY.n_text_ctx)}
    shapes = (None, None, [grows] * len(past), [None] * len(cross))
    inputs_names = ["token", "position", *names("past"), *names("cross")]
    export(folder / "step.onnx", Step(model.decoder), inputs, inputs_names, ["logits", *names("present")], shapes)


def export(
    path: Path, module: nn.Module, inputs: tuple[Any, ...], into: list[str], out: list[str], shapes: Any = None
) -> None:
    with torch.no_grad():
        program = torch.onnx.export(
            module, inputs, input_names=into, output_names=out, dynamic_shapes=shapes, dynamo=True
        )
    assert program is not None
    program.save(path)


if __name__ == "__main__":
    main()
