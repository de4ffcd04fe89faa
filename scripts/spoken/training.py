"""The training loop. It can be stopped at any time and resumes from its last checkpoint to the same weights."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from recipe import save_folder

import tallow as tl
from tallow import training
from tallow.models.whisper import Whisper, WhisperConfig
from tallow.models.whisper.model import LONGEST_PERIOD, WhisperEncoder
from tallow.nn import Conv1d, Linear, ModuleDict
from tallow.nn import functional as F
from tallow.text.whisper import WhisperTokenizer

from . import evaluation, vocabulary
from .corpus import Corpus
from .phrases import WORDS
from .settings import Settings
from .windows import IGNORED, Batch, Windows

NEAREST = 2  # positions: initial distance of attention in the inner heads of the first layer
FOCUS = 1.8  # sharpness of that attention


class Losses(NamedTuple):
    """Attributes:
    text: nats per token of the decoder.
    spoken: nats per position of the sound, for the word spoken there.
    """

    text: tl.Tensor
    spoken: tl.Tensor


class Training(training.Training):
    """A training run. A row of `curve` holds the step, both training losses since the previous row, the word error rate
    of the test set."""

    settings: Settings

    def __init__(self, settings: Settings, corpus: Corpus, checkpoint: Path, device: str = "cpu") -> None:
        self.device, self.corpus = device, corpus
        tokenizer = vocabulary.tokenizer()
        self._windows = Windows(corpus.training, tokenizer, settings)
        tl.manual_seed(settings.seed)
        self.model = Whisper(settings.whisper_config(tokenizer.vocab_size), device=device)
        self.model.tokenizer = tokenizer
        look_around(self.model.encoder)
        self._spoken_head = Linear(settings.width, 1 + len(WORDS), device=device)  # for training only
        trained = ModuleDict({"model": self.model, "spoken_head": self._spoken_head})
        super().__init__(settings, trained, _optimizer(self.model, self._spoken_head, settings), checkpoint)
        self._ahead = ThreadPoolExecutor(1)  # prepares the next batch during the current step
        self._next: Future[Batch] | None = None

    def resume(self) -> None:
        super().resume()
        self._next = None

    def validate(self) -> float:
        """Return the word error rate of fixed test clips, without timestamps."""
        self.model.eval()
        score = evaluation.decoded(self.model, self.corpus.held_out, self.settings.validation_clips)
        self.model.train()
        return score.rate

    def learn(self) -> tuple[float, float]:
        settings = self.settings
        batch = self._next.result() if self._next else self._batch(self.step)
        # NumPy releases the GIL while it computes, so this costs little.
        self._next = self._ahead.submit(self._batch, self.step + 1) if self.step + 1 < settings.steps else None
        losses = self.losses(batch)
        (losses.text + settings.spoken_weight * losses.spoken).backward()
        return losses.text.item(), losses.spoken.item()

    def losses(self, batch: Batch) -> Losses:
        audio_BSD = encode(self.model.encoder, tl.from_numpy(batch.mel).to(self.device))
        logits_BTV = self.model.logits(
            self.model.decoder(tl.from_numpy(batch.inputs).to(self.device), self.model.decoder.listen(audio_BSD))
        )
        targets_N = tl.from_numpy(batch.targets).to(self.device).flatten()
        text = F.cross_entropy(logits_BTV.flatten(0, 1), targets_N, ignore_index=IGNORED)
        classes_N = tl.from_numpy(batch.spoken).to(self.device).flatten()
        spoken = F.cross_entropy(self._spoken_head(audio_BSD).flatten(0, 1), classes_N)
        return Losses(text, spoken)

    def _batch(self, step: int) -> Batch:
        return self._windows.batch(step, full=step >= self.settings.steps * (1 - self.settings.full_share))


def encode(encoder: WhisperEncoder, mel_BMT: tl.Tensor) -> tl.Tensor:
    """Run the encoder on any even number of frames up to its maximum; fewer frames save time.

    Shapes:  (B, M, T) -> (B, T / 2, D)
    """
    x_BDS = F.gelu(encoder.conv2(F.gelu(encoder.conv1(mel_BMT))))
    x_BSD = x_BDS.mT.contiguous() + encoder.embed_positions.weight[: x_BDS.shape[-1]]
    for layer in encoder.layers:
        x_BSD = layer(x_BSD)
    return encoder.layer_norm(x_BSD)


def look_around(encoder: WhisperEncoder) -> None:
    """Initialise each head of the encoder to attend at a fixed distance before or behind, farther in each layer.

    A word depends on its surroundings, and random heads need thousands of steps to learn that. For sinusoids of
    position t, queries that are rotated by the angle w d have their largest product with the keys of position t + d.
    The idea, for images: Cordonnier et al. 2020, arXiv:1911.03584, theorem 1.
    """
    width = encoder.embed_positions.embedding_dim
    for layer, block in enumerate(encoder.layers):
        attention = block.self_attn
        head_width = width // attention.num_heads
        pairs = head_width // 2
        waves = np.arange(pairs) * (width // 4 // pairs)  # the half with the higher frequencies
        rates = LONGEST_PERIOD ** -(waves / max(width // 2 - 1, 1))
        query, key = (np.zeros((attention.num_heads, pairs, 2, width), np.float32) for _ in range(2))
        for head in range(attention.num_heads):
            side = head - (attention.num_heads - 1) / 2
            angle = rates * NEAREST * 2**layer * 2 * side
            pair = np.arange(pairs)
            query[head, pair, 0, waves], query[head, pair, 0, waves + width // 2] = np.cos(angle), np.sin(angle)
            query[head, pair, 1, waves], query[head, pair, 1, waves + width // 2] = -np.sin(angle), np.cos(angle)
            key[head, pair, 0, waves] = key[head, pair, 1, waves + width // 2] = 1
        with tl.no_grad():
            for project, turned in ((attention.q_proj, query), (attention.k_proj, key)):
                project.weight += tl.from_numpy(FOCUS * turned.reshape(width, width)).to(project.weight.device)


def _optimizer(model: Whisper, spoken_head: Linear, settings: Settings) -> tl.optim.AdamW:
    """Return AdamW with weight decay for the matrices of layers; the encoder positions stay sinusoids."""
    modules = [*model.modules(), spoken_head]
    decayed = [module.weight for module in modules if isinstance(module, Linear | Conv1d)]
    model.encoder.embed_positions.weight.requires_grad_(False)
    known = {id(parameter) for parameter in decayed}
    others = [
        parameter
        for parameter in (*model.parameters(), *spoken_head.parameters())
        if parameter.requires_grad and id(parameter) not in known
    ]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return tl.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas)


def export(model: Whisper, folder: Path) -> None:
    """Write the model as a Hugging Face folder, in float16."""
    save_folder(model, _config_json(model.config, model.tokenizer), folder)
    vocabulary.save(folder / "vocab.json")


def _config_json(config: WhisperConfig, tokenizer: WhisperTokenizer) -> dict[str, Any]:
    """Return the entries of config.json for `WhisperConfig.from_json` and transformers."""
    entries = asdict(config)
    entries["init_std"] = entries.pop("initializer_range")
    return {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "dtype": "float16",
        **entries,
        **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), tokenizer.eot),
        "decoder_start_token_id": tokenizer.sot,
    }
