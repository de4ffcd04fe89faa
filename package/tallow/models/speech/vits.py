"""VITS: from text to sound. It loads Hugging Face folders of `VitsModel`, such as MMS's voices of 1100 languages.

Letters: B batch, T tokens, S frames, N samples, D width, H heads, K width of a head, R relative positions, C channels
of a frame, E width of a speaker's vector.

Source:  Kim et al. 2021, arXiv:2106.06103; names as in transformers' `modeling_vits.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallow import devices
from tallow.core.creation import arange, from_numpy, full, ones
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.functions.attention import record_weights
from tallow.functions.sampling import rand, randn
from tallow.models.activations import activation_named
from tallow.models.config import Config, Count, tupled
from tallow.models.pretrained import PretrainedModel
from tallow.models.speech.hifigan import HifiGan
from tallow.models.speech.vits_flows import CouplingBlock, DurationPredictor, StochasticDurationPredictor, WaveNet
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.attention import key_mask, merge_heads, split_heads
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv1d
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import empty_parameter

LONGEST_S = 600.0  # of what one text may become
WIDEST = 16  # the logarithm, to base 2, of the greatest dilation
LISTS = ("upsample_rates", "upsample_kernel_sizes", "resblock_kernel_sizes", "resblock_dilation_sizes")


@dataclass(frozen=True, kw_only=True)
class VitsConfig(Config):
    """The sizes of a VITS, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        window_size: how far attention knows distances.
        flow_size: the channels of a frame.
        num_speakers, speaker_embedding_size: of a model with several voices.
        upsample_rates, upsample_kernel_sizes, resblock_kernel_sizes, resblock_dilation_sizes: of the decoder.
        speaking_rate, noise_scale, noise_scale_duration: how fast the model speaks, and how much sounds and durations
            vary.
        sampling_rate: of the sound, in Hz.
    """

    vocab_size: int = 38
    hidden_size: int = 192
    num_hidden_layers: int = 6
    num_attention_heads: int = 2
    window_size: int = 4
    use_bias: bool = True
    ffn_dim: int = 768
    layerdrop: float = 0.1
    ffn_kernel_size: int = 3
    flow_size: int = 192
    spectrogram_bins: int = 513
    hidden_act: str = "relu"
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    use_stochastic_duration_prediction: bool = True
    num_speakers: int = 1
    speaker_embedding_size: Count = 0
    upsample_initial_channel: int = 512
    upsample_rates: tuple[int, ...] = (8, 8, 2, 2)
    upsample_kernel_sizes: tuple[int, ...] = (16, 16, 4, 4)
    resblock_kernel_sizes: tuple[int, ...] = (3, 7, 11)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))
    leaky_relu_slope: float = 0.1
    depth_separable_channels: int = 2
    depth_separable_num_layers: int = 3
    duration_predictor_flow_bins: int = 10
    duration_predictor_tail_bound: float = 5.0
    duration_predictor_kernel_size: int = 3
    duration_predictor_dropout: float = 0.5
    duration_predictor_num_flows: int = 4
    duration_predictor_filter_channels: int = 256
    prior_encoder_num_flows: int = 4
    prior_encoder_num_wavenet_layers: int = 4
    posterior_encoder_num_wavenet_layers: int = 16
    wavenet_kernel_size: int = 5
    wavenet_dilation_rate: int = 1
    wavenet_dropout: float = 0.0
    speaking_rate: float = 1.0
    noise_scale: float = 0.667
    noise_scale_duration: float = 0.8
    sampling_rate: int = 16000

    model_types: ClassVar[tuple[str, ...]] = ("vits",)
    layer_counts: ClassVar[tuple[str, ...]] = (
        *("num_hidden_layers", "depth_separable_num_layers", "duration_predictor_num_flows", "prior_encoder_num_flows"),
        *("prior_encoder_num_wavenet_layers", "posterior_encoder_num_wavenet_layers"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_act)
        self.check_heads("hidden_size", "num_attention_heads")
        for name in LISTS[:3]:
            self.require(name, "positive integers", lambda sizes: sizes and all(0 < size < 1 << 16 for size in sizes))
        self.require("resblock_dilation_sizes", "positive integers for each kernel", self._are_dilations)
        self.require("upsample_kernel_sizes", "a kernel for each rate", self._fits_rates)
        halved = "at least 2 to the number of upsample_rates"  # each halves the channels
        self.require("upsample_initial_channel", halved, lambda channels: channels >> len(self.upsample_rates) > 0)
        self.require("flow_size", "an even number", lambda size: size % 2 == 0)
        self.require("depth_separable_channels", "2", lambda channels: channels == 2)
        self.require("duration_predictor_num_flows", "at least 2", lambda count: count > 1)
        self.require("duration_predictor_flow_bins", "at most 999", lambda bins: bins < 1000)
        self.require("speaking_rate", "a rate above 0", lambda rate: rate > 0)
        self.require("sampling_rate", "at most 1000000", lambda rate: rate <= 1_000_000)
        layers = max(self.prior_encoder_num_wavenet_layers, self.posterior_encoder_num_wavenet_layers)
        self._check_growth("wavenet_dilation_rate", layers)
        self._check_growth("duration_predictor_kernel_size", self.depth_separable_num_layers)
        if self.num_speakers > 1:
            self.require("speaker_embedding_size", "a positive integer", lambda size: size > 0)

    def _check_growth(self, name: str, layers: int) -> None:
        """Check a number by which the dilation grows from layer to layer."""
        expected = f"a number whose power {layers - 1} is at most {1 << WIDEST}"
        self.require(name, expected, lambda number: (layers - 1) * math.log2(number) <= WIDEST)

    def _are_dilations(self, sizes: Any) -> bool:
        fits = isinstance(sizes, tuple) and len(sizes) == len(self.resblock_kernel_sizes)
        return fits and all(
            isinstance(each, tuple) and all(type(d) is int and 0 < d <= 1 << WIDEST for d in each) for each in sizes
        )

    def _fits_rates(self, kernels: Any) -> bool:
        rates = self.upsample_rates
        return len(kernels) == len(rates) and all(
            a >= b and (a - b) % 2 == 0 for a, b in zip(kernels, rates, strict=True)
        )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        tupled(entries, *LISTS)


class RelativeAttention(Module):
    """Self-attention with vectors for near distances, of keys and of values.  Source: Shaw et al. 2018, 1803.02155"""

    def __init__(self, config: VitsConfig, **factory: Any) -> None:
        super().__init__()
        self.num_heads, width = config.num_attention_heads, config.hidden_size
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            self.add_module(name, Linear(width, width, bias=config.use_bias, **factory))
        self.dropout = Dropout(config.attention_dropout)
        self.window, inner = config.window_size, width // self.num_heads
        for name in ("emb_rel_k", "emb_rel_v"):
            table = empty_parameter(1, 2 * config.window_size + 1, inner, **factory)
            init.normal_(table, 0.0, inner**-0.5)
            self.register_parameter(name, table)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (
            split_heads(p(x_BTD), self.num_heads) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        q_BHTK = q_BHTK * q_BHTK.shape[-1] ** -0.5
        scores_BHTT = q_BHTK @ k_BHTK.mT + self._spread(q_BHTK @ self.emb_rel_k[0].mT)
        if mask is not None:
            scores_BHTT = scores_BHTT.masked_fill(~mask, -math.inf)
        weights_BHTT = scores_BHTT.softmax(-1)
        record_weights(weights_BHTT)
        weights_BHTT = self.dropout(weights_BHTT)
        mixed_BHTK = weights_BHTT @ v_BHTK + self._near(weights_BHTT) @ self.emb_rel_v[0]
        return self.out_proj(merge_heads(mixed_BHTK))

    def _spread(self, x_BHTR: Tensor) -> Tensor:
        """Return terms of scores (B, H, T, T): those of near distances, and 0 for others."""
        positions_T, window = arange(x_BHTR.shape[2], device=x_BHTR.device), self.window
        apart_TT = positions_T - positions_T[:, None]
        index_TT = (apart_TT + window).clamp(0, 2 * window)
        shape = (*x_BHTR.shape[:3], x_BHTR.shape[2])
        return x_BHTR.gather(-1, index_TT.expand(shape)).masked_fill(apart_TT.abs() > window, 0.0)

    def _near(self, weights_BHTT: Tensor) -> Tensor:
        """Return the weights of near distances (B, H, T, R)."""
        length, window = weights_BHTT.shape[-1], self.window
        padded = F.pad(weights_BHTT, (window, window))
        steps_R = arange(2 * window + 1, device=weights_BHTT.device)
        index_TR = arange(length, device=weights_BHTT.device)[:, None] + steps_R
        return padded.gather(-1, index_TR.expand(*weights_BHTT.shape[:3], 2 * window + 1))


class ConvFeedForward(Module):
    """Two convolutions with an activation between them."""

    def __init__(self, config: VitsConfig, **factory: Any) -> None:
        super().__init__()
        kernel, width = config.ffn_kernel_size, config.hidden_size
        self.conv_1 = Conv1d(width, config.ffn_dim, kernel, **factory)
        self.conv_2 = Conv1d(config.ffn_dim, width, kernel, **factory)
        self.dropout, self.activation = Dropout(config.activation_dropout), activation_named(config.hidden_act)
        self.around = ((kernel - 1) // 2, kernel // 2)

    def forward(self, x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
        x_BDT, mask_B1T = (x_BTD * mask_BT1).mT, mask_BT1.mT
        x_BDT = self.dropout(self.activation(self.conv_1(F.pad(x_BDT, self.around))))
        return (self.conv_2(F.pad(x_BDT * mask_B1T, self.around)) * mask_B1T).mT


class VitsLayer(Module):
    """Attention and a feed-forward part, each added to its input, then normalized."""

    def __init__(self, config: VitsConfig, **factory: Any) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.layer_norm_eps
        self.attention = RelativeAttention(config, **factory)
        self.dropout = Dropout(config.hidden_dropout)
        self.layer_norm = LayerNorm(width, eps, **factory)
        self.feed_forward = ConvFeedForward(config, **factory)
        self.final_layer_norm = LayerNorm(width, eps, **factory)

    def forward(self, x_BTD: Tensor, mask_BT1: Tensor, keys: Tensor | None) -> Tensor:
        x_BTD = self.layer_norm(x_BTD + self.dropout(self.attention(x_BTD, keys)))
        return self.final_layer_norm(x_BTD + self.dropout(self.feed_forward(x_BTD, mask_BT1)))


class VitsEncoder(Module):
    """The layers."""

    def __init__(self, config: VitsConfig, **factory: Any) -> None:
        super().__init__()
        self.layers = ModuleList(VitsLayer(config, **factory) for _ in range(config.num_hidden_layers))
        self.layerdrop = config.layerdrop

    def forward(self, x_BTD: Tensor, mask_BT1: Tensor, keys: Tensor | None) -> Tensor:
        x_BTD = x_BTD * mask_BT1
        for layer in self.layers:
            if not (self.training and self.layerdrop and float(rand(())) < self.layerdrop):
                x_BTD = layer(x_BTD, mask_BT1, keys)
        return x_BTD * mask_BT1


class VitsTextEncoder(Module):
    """From tokens to hidden states, and to the means and logarithms of the deviations of frames."""

    def __init__(self, config: VitsConfig, **factory: Any) -> None:
        super().__init__()
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size, **factory)
        self.encoder = VitsEncoder(config, **factory)
        self.project = Conv1d(config.hidden_size, config.flow_size * 2, 1, **factory)

    def forward(self, ids_BT: Tensor, mask_BT1: Tensor, keys: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        x_BTD = self.embed_tokens(ids_BT) * math.sqrt(self.embed_tokens.embedding_dim)
        x_BTD = self.encoder(x_BTD, mask_BT1, keys)
        means_BTC, deviations_BTC = (self.project(x_BTD.mT).mT * mask_BT1).chunk(2, -1)
        return x_BTD, means_BTC, deviations_BTC


class PosteriorEncoder(Module):
    """The weights of the encoder of sounds, which only training uses; they stay in the files."""

    def __init__(self, config: VitsConfig, **factory: Any) -> None:
        super().__init__()
        self.conv_pre = Conv1d(config.spectrogram_bins, config.hidden_size, 1, **factory)
        self.wavenet = WaveNet(config, config.posterior_encoder_num_wavenet_layers, **factory)
        self.conv_proj = Conv1d(config.hidden_size, config.flow_size * 2, 1, **factory)


class SpokenOutput(NamedTuple):
    """The output of a VITS.

    Shapes:  waveform (B, N); sequence_lengths (B,), the samples of each text; spectrogram (B, C, S)
    """

    waveform: Tensor
    sequence_lengths: Tensor
    spectrogram: Tensor


class VitsModel(PretrainedModel):
    """Speaks texts. Sounds and durations vary from call to call, as `tallow.manual_seed` says.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.

    Attributes:
        speaking_rate, noise_scale, noise_scale_duration: as the config says; they may be set.
    """

    config_class = VitsConfig
    base_model_prefix = "vits"

    def __init__(self, config: VitsConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        factory = {"device": device, "dtype": dtype}
        self.text_encoder = VitsTextEncoder(config, **factory)
        self.flow = CouplingBlock(config, **factory)
        self.decoder = HifiGan(config, **factory)
        kind = StochasticDurationPredictor if config.use_stochastic_duration_prediction else DurationPredictor
        self.duration_predictor: Module = kind(config, **factory)
        if config.num_speakers > 1:
            self.embed_speaker = Embedding(config.num_speakers, config.speaker_embedding_size, **factory)
        self.posterior_encoder = PosteriorEncoder(config, **factory)
        self.speaking_rate, self.noise_scale = config.speaking_rate, config.noise_scale
        self.noise_scale_duration = config.noise_scale_duration
        self.reset_parameters()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        speaker_id: int | Tensor | None = None,
        speaking_rate: float | None = None,
    ) -> SpokenOutput:
        """Speak texts.

        Args:
            input_ids, attention_mask: (B, T); 0 for padding.
            speaker_id: the voice, of a model with several.
            speaking_rate: 1 for the speed of the training; None means `self.speaking_rate`.

        Raises:  ArgumentError for an unknown voice, a rate that is not positive, and texts that take too long
        """
        rate = self.speaking_rate if speaking_rate is None else speaking_rate
        if not 0 < rate < math.inf:
            raise ArgumentError(f"speaking_rate={rate!r:.80}", hint="pass a number above 0; 1 is the usual speed")
        voice_BE1 = self._voice(speaker_id)
        dtype = self.text_encoder.embed_tokens.weight.dtype
        mask_BT = ones(tuple(input_ids.shape), device=input_ids.device) if attention_mask is None else attention_mask
        mask_BT1 = mask_BT[..., None].to(dtype)
        keys = None if attention_mask is None else key_mask(attention_mask)
        x_BTD, means_BTC, deviations_BTC = self.text_encoder(input_ids, mask_BT1, keys)
        noise = {"noise": self.noise_scale_duration} if self.config.use_stochastic_duration_prediction else {}
        logs_B1T = self.duration_predictor(x_BTD.mT, mask_BT1.mT, voice_BE1, **noise)
        durations_BT = (logs_B1T.exp() * mask_BT1.mT * (1.0 / rate)).ceil()[:, 0]
        token_BS, mask_B1S, frames_B = self._frames(durations_BT)
        index_BSC = token_BS[..., None].expand(-1, -1, means_BTC.shape[-1])
        seen_BS1 = mask_B1S.mT.to(dtype)
        means_BSC, deviations_BSC = (x.gather(1, index_BSC) * seen_BS1 for x in (means_BTC, deviations_BTC))
        drawn_BSC = randn(tuple(means_BSC.shape)).to(device=means_BSC.device, dtype=dtype)
        prior_BCS = (means_BSC + drawn_BSC * deviations_BSC.exp() * self.noise_scale).mT
        latents_BCS = self.flow(prior_BCS, seen_BS1.mT, voice_BE1) * seen_BS1.mT
        samples = frames_B * math.prod(self.config.upsample_rates)
        return SpokenOutput(self.decoder(latents_BCS, voice_BE1), samples, latents_BCS)

    def _voice(self, speaker_id: int | Tensor | None) -> Tensor | None:
        count = self.config.num_speakers
        if count == 1 or speaker_id is None:
            return None
        ids = full((1,), speaker_id) if isinstance(speaker_id, int) else speaker_id
        if int(ids.min()) < 0 or int(ids.max()) >= count:
            raise ArgumentError(f"speaker_id={speaker_id!r:.80}", hint=f"the model has voices 0 to {count - 1}")
        return self.embed_speaker(ids.to(self.embed_speaker.weight.device).long())[..., None]

    def _frames(self, durations_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the token of each frame (B, S), which frames are of the texts (B, 1, S), and how many are, (B,)."""
        counts = np.asarray(devices.to_host(durations_BT.detach().float().array), np.float64)
        frames = np.maximum(counts.sum(1), 1)
        seconds = frames.max() * math.prod(self.config.upsample_rates) / self.config.sampling_rate
        if not seconds <= LONGEST_S:
            raise ArgumentError(
                f"{type(self).__name__}: the text takes {seconds:.3g} s; the limit is {LONGEST_S:.0f}",
                hint="pass sentences one by one",
            )
        frames = frames.astype(np.int64)
        places = np.arange(frames.max())
        ends = counts.cumsum(1)
        tokens = np.stack([np.searchsorted(row, places, side="right") for row in ends])
        known = (places < ends[:, -1:]) & (places < frames[:, None])
        device = durations_BT.device
        found = (np.minimum(tokens, counts.shape[1] - 1), known[:, None], frames)
        token_BS, mask_B1S, frames_B = (from_numpy(np.ascontiguousarray(each)).to(device) for each in found)
        return token_BS, mask_B1S, frames_B
