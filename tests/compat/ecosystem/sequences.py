"""Cases of packages for text and other sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from comparison import case, filled, normal, tokens, trained


@case
def ema_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The moving average of a layer over five updates."""
    from ema_pytorch import EMA

    layer = filled(torch, torch.nn.Linear(4, 3), rng)
    ema = EMA(layer, beta=0.9, update_after_step=1, update_every=1)
    for _ in range(5):
        layer.weight.data.mul_(1.5)
        ema.update()
    return [*ema.ema_model.parameters()]


@case
def local_attention(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A transformer with attention to neighbours."""
    from local_attention import LocalTransformer

    options = {"num_tokens": 40, "dim": 32, "depth": 2, "max_seq_len": 32, "local_attn_window_size": 8}
    model = filled(torch, LocalTransformer(**options, dim_head=16, heads=2), rng)
    x = tokens(torch, rng, 40, 2, 32)
    return trained(torch, model, lambda: model(x))


@case
def performer_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A language model with FAVOR+ attention."""
    from performer_pytorch import PerformerLM

    options = {"num_tokens": 40, "max_seq_len": 16, "dim": 32, "depth": 2, "heads": 2, "dim_head": 16}
    model = filled(torch, PerformerLM(**options, causal=False, nb_features=16, generalized_attention=True), rng)
    x = tokens(torch, rng, 40, 2, 16)
    return trained(torch, model, lambda: model(x))


@case
def vector_quantize_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """FSQ, LFQ and a codebook."""
    from vector_quantize_pytorch import FSQ, LFQ, VectorQuantize

    found: list[Any] = []
    for model in (FSQ([8, 5, 5]), LFQ(dim=8, codebook_size=256), VectorQuantize(dim=8, codebook_size=16)):
        filled(torch, model, rng).train()
        x = normal(torch, rng, 2, 10, 3 if isinstance(model, FSQ) else 8).requires_grad_()
        quantized, indices = model(x)[:2]
        quantized.square().mean().backward()
        found += [quantized, indices, x.grad]
    return found


@case
def rotary_embedding_torch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Rotated queries and keys, with gradients."""
    from rotary_embedding_torch import RotaryEmbedding

    rotary, q = RotaryEmbedding(dim=8, use_xpos=True), normal(torch, rng, 1, 2, 6, 16).requires_grad_()
    q2, k2 = rotary.rotate_queries_and_keys(q, q * 2)
    (q2 * k2).sum().backward()
    return [q2, k2, q.grad]


@case
def esm(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A small ESM-2 with contacts."""
    import esm

    alphabet = esm.data.Alphabet.from_architecture("ESM-1b")
    model = filled(torch, esm.model.esm2.ESM2(2, 32, 4, alphabet), rng)
    _, _, x = alphabet.get_batch_converter()([("a", "MKTVRQERLK"), ("b", "KALTARQQE")])

    def compute() -> Any:
        found = model(x, repr_layers=[1], return_contacts=True)
        return found["logits"].square().mean() + found["contacts"].sum() + found["representations"][1].mean()

    return trained(torch, model, compute, 1e-4)


@case
def entmax(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Sparsemax, entmax of degree 1.5 and of any degree, with gradients."""
    from entmax import entmax15, entmax_bisect, sparsemax

    x = normal(torch, rng, 4, 7).requires_grad_()
    alpha = torch.tensor(1.3, requires_grad=True)
    parts = [sparsemax(x, dim=-1), entmax15(x, dim=-1), entmax_bisect(x, alpha)]
    sum((part * torch.arange(7.0)).sum() for part in parts).backward()
    return [*parts, x.grad, alpha.grad]


@case
def diffusers(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A U-Net, an auto-encoder, and four steps of DDIM, DDPM, Euler and DPM-Solver++."""
    from diffusers import AutoencoderKL, DDIMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler, UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    model = UNet2DModel(16, 3, 3, block_out_channels=(16, 32), norm_num_groups=8, attention_head_dim=8, **blocks)
    filled(torch, model, rng)
    x, t = normal(torch, rng, 2, 3, 16, 16), torch.tensor([3, 40])
    found = trained(torch, model, lambda: model(x, t).sample, 1e-3)
    vae = filled(torch, AutoencoderKL(block_out_channels=(16,), norm_num_groups=8, latent_channels=2), rng)
    found += trained(torch, vae, lambda: vae(x, sample_posterior=False).sample, 1e-3)
    for kind in (DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
        scheduler, sample = kind(num_train_timesteps=100), x
        scheduler.set_timesteps(4)
        for step in scheduler.timesteps:
            with torch.no_grad():
                noise = model(scheduler.scale_model_input(sample, step), step).sample
            sample = scheduler.step(noise, step, sample).prev_sample
        found.append(sample)
    return found


RWKV_SHAPES = {
    "emb.weight": (20, 8),
    "head.weight": (20, 8),
    "ln_out.weight": (8,),
    "ln_out.bias": (8,),
    **{f"blocks.0.ln0.{part}": (8,) for part in ("weight", "bias")},
    **{f"blocks.{i}.ln{j}.{part}": (8,) for i in range(2) for j in (1, 2) for part in ("weight", "bias")},
    **{f"blocks.{i}.att.time_{part}": (8,) for i in range(2) for part in ("decay", "first")},
    **{f"blocks.{i}.att.time_mix_{part}": (1, 1, 8) for i in range(2) for part in "kvr"},
    **{f"blocks.{i}.ffn.time_mix_{part}": (1, 1, 8) for i in range(2) for part in "kr"},
    **{f"blocks.{i}.att.{part}.weight": (8, 8) for i in range(2) for part in ("key", "value", "receptance", "output")},
    **{f"blocks.{i}.ffn.key.weight": (16, 8) for i in range(2)},
    **{f"blocks.{i}.ffn.value.weight": (8, 16) for i in range(2)},
    **{f"blocks.{i}.ffn.receptance.weight": (8, 8) for i in range(2)},
}


@case
def rwkv(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """RWKV-4 from a file of weights, in float32 and with weights of eight bits: a text at once, and token by token."""
    import os
    import tempfile
    from unittest import mock

    found: list[Any] = []
    with mock.patch.dict(os.environ, RWKV_JIT_ON="0"), tempfile.TemporaryDirectory() as folder:
        from rwkv.model import RWKV

        weights = {name: normal(torch, rng, *shape) / shape[-1] ** 0.5 for name, shape in RWKV_SHAPES.items()}
        torch.save(weights, f"{folder}/model.pth")
        for strategy in ("cpu fp32", "cpu fp32i8"):
            model = RWKV(f"{folder}/model", strategy, verbose=False)
            logits, state = model.forward([3, 1, 4, 1, 5], None, full_output=True)
            found.append(logits)
            for token in (9, 2):
                logits, state = model.forward([token], state)
                found.append(logits)
            found += state
    return found


@case
def encodec(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The codec: codes of a sound, the sound from the codes, and the discriminator of spectrograms."""
    from encodec.model import EncodecModel
    from encodec.msstftd import MultiScaleSTFTDiscriminator
    from encodec.utils import convert_audio

    sound = convert_audio(normal(torch, rng, 2, 3200), 16000, 24000, 1)[None]
    model = filled(torch, EncodecModel._get_model([1.5], 24000, 1), rng)
    codes = model.encode(sound)
    discriminator = filled(torch, MultiScaleSTFTDiscriminator(filters=2), rng)
    sound.requires_grad_()
    scores, _ = discriminator(sound)
    sum(score.square().mean() for score in scores).backward()
    return [sound, *(code for code, _ in codes), model.decode(codes), *scores, sound.grad]


@case
def torchaudio(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Spectrograms and their inverses, filters with gradients, and changes of pitch and length."""
    from torchaudio import functional, transforms

    sound = normal(torch, rng, 1, 8000)
    spectrum = transforms.Spectrogram(power=None)(sound)
    found = [transforms.MFCC(16000)(sound), transforms.InverseSpectrogram()(spectrum), transforms.Resample(3, 2)(sound)]
    found += [transforms.TimeStretch(n_freq=201, fixed_rate=1.3)(spectrum).abs(), transforms.Loudness(16000)(sound)]
    found.append(transforms.PitchShift(16000, 2).double()(sound.double()).detach())  # float32 rounds phases of 1e4
    short = sound[:, :200].clone().requires_grad_()
    found += [functional.highpass_biquad(short, 16000, 300.0), functional.overdrive(short)]
    return found
