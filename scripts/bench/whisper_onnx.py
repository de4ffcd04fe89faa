"""Write what a browser's onnxruntime-web needs to run Whisper: an encoder, the keys and values of the decoder's
cross-attention, and one step of the decoder, for `scripts/bench.py whisper --browser --onnx FOLDER`.

    npm pack onnxruntime-web && tar xf onnxruntime-web-*.tgz && cp package/dist/ort.wasm.min.mjs \\
        package/dist/ort-wasm-simd-threaded.{mjs,wasm} FOLDER
    python scripts/bench/whisper_onnx.py FOLDER        # with torch, onnx, onnxscript and openai-whisper

The weights are random: only the shape of Whisper tiny counts.
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

    def forward(self, audio: Tensor) -> tuple[Tensor, Tensor]:
        """(1, S, D) -> keys and values of all layers, (layers, 1, H, S, K)"""
        parts = [block.cross_attn for block in self.decoder.blocks]
        return torch.stack([split(p.key(audio)) for p in parts]), torch.stack([split(p.value(audio)) for p in parts])


class Step(nn.Module):
    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self, token: Tensor, position: Tensor, keys: Tensor, values: Tensor, cross_keys: Tensor, cross_values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """token (1, 1), position (1,), caches (layers, 1, H, T, K) -> logits (1, V), the caches, one position longer"""
        decoder = self.decoder
        x = decoder.token_embedding(token) + decoder.positional_embedding[position]
        made = []
        for i, block in enumerate(decoder.blocks):
            normed = block.attn_ln(x)
            k = torch.cat([keys[i], split(block.attn.key(normed))], 2)
            v = torch.cat([values[i], split(block.attn.value(normed))], 2)
            made.append((k, v))
            x = x + attend(block.attn, normed, k, v)
            x = x + attend(block.cross_attn, block.cross_attn_ln(x), cross_keys[i], cross_values[i])
            x = x + block.mlp(block.mlp_ln(x))
        logits = decoder.ln(x)[:, 0] @ decoder.token_embedding.weight.T
        return logits, torch.stack([k for k, _ in made]), torch.stack([v for _, v in made])


def main() -> None:
    folder = Path(sys.argv[1])
    model = Whisper(TINY).eval()
    audio = torch.zeros(1, TINY.n_audio_ctx, TINY.n_audio_state)
    export(
        folder / "encoder.onnx", model.encoder, {"mel": torch.zeros(1, TINY.n_mels, 2 * TINY.n_audio_ctx)}, ["audio"]
    )
    cross = CrossKeys(model.decoder)
    export(folder / "cross.onnx", cross, {"audio": audio}, ["cross_keys", "cross_values"])
    cross_keys, cross_values = cross(audio)
    past = cross_keys[:, :, :, :5]
    names = ("token", "position", "keys", "values", "cross_keys", "cross_values")
    inputs = (torch.zeros(1, 1, dtype=torch.int64), torch.tensor([5]), past, past.clone(), cross_keys, cross_values)
    grows = {3: torch.export.Dim("length", max=TINY.n_text_ctx)}
    shapes = tuple(grows if name in ("keys", "values") else None for name in names)
    outputs = ["logits", "new_keys", "new_values"]
    export(folder / "step.onnx", Step(model.decoder), dict(zip(names, inputs, strict=True)), outputs, shapes)


def export(path: Path, module: nn.Module, inputs: dict[str, Tensor], outputs: list[str], shapes: Any = None) -> None:
    with torch.no_grad():
        program = torch.onnx.export(
            module,
            tuple(inputs.values()),
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes=shapes,
            dynamo=True,
        )
    assert program is not None
    program.save(path)


if __name__ == "__main__":
    main()
