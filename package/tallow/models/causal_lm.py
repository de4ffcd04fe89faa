"""The base of language models: logits of the next token, a cache of the tokens read, and text from prompts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.fused.decoder import FusedCache, FusedDecoder
from tallow.fused.eligibility import ELEMENTS, Pattern, why_not
from tallow.fused.explanation import LayerReport, explanation
from tallow.fused.steps import MOST_ROWS, DecodeStep
from tallow.generation import LogitsProcessor, PromptCache, Sample, channels
from tallow.kernels.fallback import check_fallback
from tallow.models.decoders.decoder import DecoderHead
from tallow.models.foreign_names import refuses_foreign
from tallow.models.pretrained import tied_logits
from tallow.models.text_generation import TextGeneration
from tallow.nn.block_layers import block_notes
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.text.chat import Message
from tallow.text.stream_decoder import MarkedDecoder, pieces_of

if TYPE_CHECKING:  # pages and commands that constrain nothing do not import it
    from tallow.generation.constrain import Grammar

CACHE_DTYPES = {d.name: d for d in (dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.int8)}


def kv_dtype(dtype: Any, weight: Tensor) -> dtypes.dtype:
    """Return the dtype of a cache; by default float32 on a CPU, unless the weights are float64, and theirs elsewhere.

    Raises:  ArgumentError for a dtype that caches do not have
    """
    if dtype is None:
        widened = weight.device.type == "cpu" and weight.dtype is not dtypes.float64
        return dtypes.float32 if widened else weight.dtype
    if (dtype := dtypes.as_dtype(dtype)) not in CACHE_DTYPES.values():
        raise ArgumentError(f"a cache of {dtype.name}", hint=f"use one of {', '.join(CACHE_DTYPES)}")
    return dtype


class CacheShape(NamedTuple):
    """The sizes of a model's KVCache: the number of layers, G and K."""

    layers: int
    kv_heads: int
    head_dim: int


class CausalLM(TextGeneration, DecoderHead):
    """A language model: logits of the next token for each position; `tallow.generation` continues texts with it.

    Letters: B batch, T positions, D width, V vocabulary, G key/value heads, K head width.

    Example:
        lm = AutoModel.from_pretrained("Qwen/Qwen3-0.6B")
        for piece in lm.chat([{"role": "user", "content": "Why is the sky blue?"}], max_tokens=200):
            print(piece, end="", flush=True)
    """

    cache_class: ClassVar[type[FusedCache]] = FusedCache
    head_bias: ClassVar[bool] = False
    fused_pattern: ClassVar[Pattern | None] = None  # the modules that fused blocks replace; None: there are none

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        if config.sees_both_sides:
            raise ArgumentError(
                f"{type(self).__name__}: the config is of a model that encodes texts: positions see those after them",
                hint=f"load it as {self.model_class.__name__}, or as a SentenceEncoder",
            )
        super().__init__(config, device, dtype)
        vocabulary, width = self.base_model.token_embedding.weight.shape
        # With tied embeddings the head is the weight of the embedding.
        self.lm_head = None if config.tie_word_embeddings else Linear(width, vocabulary, self.head_bias, device, dtype)
        self.reset_parameters()

    @property
    def tied_weights(self) -> Mapping[str, str]:
        if self.lm_head is not None:
            return {}
        table = next(name for name, module in self.named_modules() if module is self.base_model.token_embedding)
        return {"lm_head.weight": f"{table}.weight"}

    def is_superfluous(self, name: str) -> bool:
        return self.config.is_of_others(name)

    def hidden(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        """Return the head's input (B, T, D). With a cache, the tokens follow those in it, and are appended to it."""
        return self.base_model(tokens_BT, cache=cache)

    @property
    def head_weight(self) -> Tensor:
        """The head's weight (V, D), which may be that of the token embedding."""
        return self.base_model.token_embedding.weight if self.lm_head is None else self.lm_head.weight

    @property
    def head_table(self) -> Embedding | None:
        return self.base_model.token_embedding if self.lm_head is None else None

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.base_model.context_length

    @property
    @abstractmethod
    def cache_shape(self) -> CacheShape:
        """The sizes of a cache."""

    @property
    def vocab_size(self) -> int:
        """The number of tokens in the vocabulary."""
        return self.config.vocab_size

    def forward(self, tokens_BT: Tensor, cache: KVCache | None = None) -> Tensor:
        """Return logits (B, T, V) for tokens (B, T). With a cache, the tokens follow those in it."""
        return self.logits(self.hidden(tokens_BT, cache))

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Return logits (B, T, V) from the head's input (B, T, D)."""
        if self.lm_head is not None:
            return self.lm_head(hidden_BTD)
        return tied_logits(hidden_BTD, self.base_model.token_embedding)

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The most positions that a query of each layer sees, itself included; None means all."""
        return (None,) * len(self.config.layer_shapes or range(self.cache_shape.layers))

    @property
    def unscaled_length(self) -> int | None:
        """The length up to which rotary angles do not depend on the length of the text; None if they never do."""
        return None

    @property
    def prefill_chunk(self) -> int | None:
        """The number of tokens of a prompt to read at once, which bounds the memory of attention; None means all."""
        return 512

    def new_cache(
        self,
        *,
        length: int | None = None,
        batch: int = 1,
        padding: Sequence[int] | None = None,
        growing: bool = False,
        sliding: bool = True,
        dtype: Any = None,
    ) -> FusedCache:
        """Return an empty cache for `length` positions (None: the whole context) of `batch` sequences.

        Args:
            padding: the number of padding tokens on the left of each sequence; no query sees them.
            growing: allocate memory as positions are added.
            sliding: keep only the positions that layers with a sliding window see; False keeps all, so that the cache
                can be truncated to any length.
            dtype: of keys and values in memory: float32; float16 or bfloat16, which take half the memory; or int8 with
                a scale for each head and position, about a quarter. None means float32 on a CPU, unless the model is
                float64, and the model's dtype elsewhere.

        Raises:  ArgumentError for a length beyond the context, and for another dtype
        """
        weight = next(self.parameters())
        dtype = kv_dtype(dtype, weight)
        length = self.context_length if length is None else length
        if not 0 <= length <= self.context_length:
            raise ArgumentError(
                f"a cache of {length} positions; the model's context is {self.context_length}",
                hint="make it no longer than the context",
            )
        layers, kv_heads, head_dim = self.cache_shape
        cache = self.cache_class(
            layers,
            batch,
            kv_heads,
            length,
            head_dim,
            windows=self.windows if sliding else None,
            padding=padding,
            growing=growing,
            dtype=dtype,
            device=weight.device,
            shapes=self.config.layer_shapes,
        )
        cache.decoder = self._fused_decoder()
        if cache.decoder is not None and length:
            cache.decoder.step(cache)  # prepares tables and blocks now, not at the first token
        return cache

    def next_logits(self, tokens: Sequence[int], cache: Any) -> dtypes.Array:
        """Append `tokens`, one sequence, to the cache; return the logits (V,) of what follows, as `last_logits`.

        A single token is decoded by fused blocks where the model and the cache allow it; see `explain`.

        Raises:  ArgumentError when the cache is full; KernelUnavailable as `kernels.require_fused`
        """
        return self.last_logits([tokens], cache)[0, 0]

    def last_logits(self, tokens: Sequence[Sequence[int]], cache: Any, last: int = 1) -> dtypes.Array:
        """Append tokens (B, T) to the cache; return the logits (B, last, V) that follow the last ones.

        They are float32, on the model's device. A few tokens are decoded by fused blocks where the model and the cache
        allow it; see `explain`. A long text is read in chunks of `prefill_chunk`.

        Raises:  ArgumentError when the cache is full; KernelUnavailable as `kernels.require_fused`, for one token of
                 each text
        """
        if len(tokens) * len(tokens[0]) <= MOST_ROWS:
            if (logits_BTV := self._fused_logits(tokens, cache, last)) is not None:
                return dtypes.cast(logits_BTV, dtypes.float32)
        elif len(tokens[0]) == 1:
            check_fallback(type(self).__name__, f"a batch of {len(tokens)} texts; the fused blocks take {MOST_ROWS}")
        device = next(self.parameters()).device
        tokens_BT = devices.move(np.array(tokens, dtype=np.int64), device)
        total = tokens_BT.shape[1]
        chunk = max(self.prefill_chunk or total, last)
        with no_grad():
            # The first chunk is the shorter one, so that the last chunk holds the `last` tokens.
            for start in range(total % chunk - chunk if total % chunk else 0, total, chunk):
                hidden_BTD = self.hidden(wrap(tokens_BT[:, max(start, 0) : start + chunk]), cache)
            return dtypes.cast(self.logits(hidden_BTD[:, -last:]).array, dtypes.float32)

    def _fused_logits(self, tokens: Sequence[Sequence[int]], cache: FusedCache, last: int) -> dtypes.Array | None:
        """Return what `last_logits` returns, or None, with nothing appended, if the modules must run."""
        count = len(tokens[0])
        if cache.decoder is None:
            reason = self._without_blocks
        elif cache.device.type != "cpu" and cache.batch > 1:  # `RowSlots` reads such a cache by places
            reason = f"the cache holds {cache.batch} rows; the fused blocks take one text on {cache.device}"
        else:
            step = cache.decoder.step(cache, count)
            reason = cache.decoder.reason or "its cache does not fit these rows, or they are padding alone"
            if step is not None and len(tokens) == count == cache.batch == 1 and cache.padding is None:
                return step(tokens[0], cache).reshape(1, 1, -1)
            if step is not None and step.can_read(len(tokens), count, cache):
                return step.read(tokens, cache, last)
        if count == 1:
            check_fallback(type(self).__name__, reason)
        return None

    # -------------------------------------------------------------------------------------------------- fused decoding

    def explain(self, length: int | None = None) -> None:
        """Print for each layer whether decoding one token at a time runs fused, and if not, why.

        Args:    length: of the text, prompt and answer together; None means the whole context. Some models run fused
                         only for texts that are shorter than a sliding window.
        """
        cache = self.new_cache(length=length, growing=True, sliding=False)
        title = f"{type(self).__name__} on {next(self.parameters()).device}, one token at a time"
        print(explanation(title, self._decoding_reports(cache), block_notes(self)))

    def _decoding_reports(self, cache: FusedCache) -> list[LayerReport]:
        modules = self.named_modules()
        path, blocks = next((name, module) for name, module in modules if isinstance(module, ModuleList))
        layers = {f"{path}.{i}": layer for i, layer in enumerate(blocks)}
        if cache.decoder is None or self.fused_pattern is None:
            return [LayerReport(name, reason=self._without_blocks) for name in layers]
        step = cache.decoder.step(cache)
        if step is None:
            return [
                LayerReport(name, reason=why_not({name: layer}, self.fused_pattern) or cache.decoder.reason)
                for name, layer in layers.items()
            ]
        return [
            LayerReport(name, f"{kernel}, {backend}")
            for name, kernel, backend in zip(layers, step.block_kernels, step.backends(), strict=True)
        ]

    @property
    def _without_blocks(self) -> str:
        return f"no fused block computes the layers of {type(self).__name__}"

    def _fused_decoder(self) -> FusedDecoder[DecodeStep] | None:
        if self.fused_pattern is None:
            return None
        return FusedDecoder(
            type(self).__name__, self.fused_pattern, self.fused_parts, self.fused_step, self.fused_limit
        )

    def fused_parts(self) -> dict[str, Module]:
        """Return the modules that fused decoding stands for."""
        parts: dict[str, Module] = {self.base_model_prefix: self.base_model}
        return parts if self.lm_head is None else parts | {"lm_head": self.lm_head}

    def fused_limit(self, cache: KVCache) -> str | None:
        """Return why fused blocks cannot continue a cache, or None."""
        if self.has_hooks():
            return "the model has hooks"
        if cache.device.type != "cpu":
            if cache.padding is not None:
                return f"the cache holds padding; the fused blocks take none on {cache.device}"
            if cache.batch > 1 and not hasattr(devices.get_backend(cache.device.type), "decode_runner"):
                return f"the cache holds {cache.batch} rows; the fused blocks take one text on {cache.device}"
        if cache.dtype not in ELEMENTS and not (cache.dtype is dtypes.int8 and cache.device.type == "cpu"):
            return f"the cache is {cache.dtype.name}"
        return None

    def fused_step(self, cache: KVCache) -> DecodeStep:
        """Make the step of a model that has a `fused_pattern`, from its arrays and those of the cache."""
        raise NotImplementedError

    # ----------------------------------------------------------------------------------------------------------- text

    @refuses_foreign
    def generate_ids(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int | None = None,
        sample: Sample | None = None,
        num_beams: int | None = None,
        processors: Sequence[LogitsProcessor] = (),
        cache_dtype: Any = None,
    ) -> Iterator[int]:
        """Continue a prompt, as `generate_text`, and yield ids.

        Args:    prompt: its ids, with special tokens
        Raises:  as `generate_text`
        """
        options = {"max_tokens": max_tokens, "sample": sample, "num_beams": num_beams, "cache_dtype": cache_dtype}
        return self.write(self, prompt, processors=processors, **options)

    @refuses_foreign
    def generate_text(
        self,
        prompt: str,
        *,
        max_tokens: int | None = None,
        stop: Collection[str] = (),
        sample: Sample | None = None,
        num_beams: int | None = None,
        processors: Sequence[LogitsProcessor] = (),
        grammar: Grammar | None = None,
        cache_dtype: Any = None,
    ) -> Iterator[str]:
        """Continue a prompt; yield pieces of text as they come.

        Args:
            max_tokens: None means as the model's `generation_config.json` says, or else as many as the context holds.
            stop: strings that end the text and are not part of it, in addition to those of `generation_config.json`
                and the model's stop ids.
            sample: as `tallow.generation.generate`; None means as in `generation_config.json`, which by default takes
                the likeliest token. It stands for the arguments of a Sampler; other entries of the file hold with any.
            num_beams: the number of texts to search with, of which the best is yielded at the end; None means as in
                `generation_config.json`, and 1 with `sample`.
            processors: as `tallow.generation.generate`, after those of `generation_config.json`.
            cache_dtype: as `tallow.generation.generate`
            grammar: the texts that may follow the prompt, from `tallow.generation.constrain`. A text that max_tokens
                ends is only the beginning of one.

        Raises:  as `generate`, at the call; ArgumentError for num_beams with a sample, and for a prompt that is longer
                 than the file's max_length; TokenizerError; CheckpointError as `generation_config`
        """
        tokens = self.tokenizer.encode_prompt(prompt)
        options = {"max_tokens": max_tokens, "sample": sample, "num_beams": num_beams, "cache_dtype": cache_dtype}
        generated = self.generate_ids(tokens, processors=self._constrained(processors, grammar), **options)
        return self._until(self.tokenizer.decode_stream(generated, previous=tokens), stop)

    @refuses_foreign
    def chat(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        stop: Collection[str] = (),
        sample: Sample | None = None,
        num_beams: int | None = None,
        processors: Sequence[LogitsProcessor] = (),
        grammar: Grammar | None = None,
        cache: PromptCache | None = None,
        **variables: Any,
    ) -> Iterator[str]:
        """Answer a conversation; yield pieces of text as they come. Where answers have channels, as those of gpt-oss,
        what is not shown to readers stands between <think> and </think>.

        Args:
            messages: [{"role": "user", "content": "..."}], in the form that the model's chat template takes.
            max_tokens, stop, sample, num_beams, processors, grammar: as `generate_text`
            cache: a PromptCache of this model, which avoids reading the conversation again.
            variables: other arguments of `ChatTemplate.render`, such as tools and continue_final_message, and variables
                of the chat template, such as enable_thinking.

        Raises:  as `generate`, at the call; TokenizerError when the model has no chat template; ArgumentError when the
                 template rejects the messages
        """
        begins = not variables.get("continue_final_message")
        tokens = self.tokenizer.apply_chat_template(messages, add_generation_prompt=begins, **variables)
        options: dict[str, Any] = {"max_tokens": max_tokens, "sample": sample, "num_beams": num_beams, "cache": cache}
        generated = self.write(self, tokens, processors=self._constrained(processors, grammar), **options)
        return self._until(self._readable(generated, plain=grammar is not None or not begins), stop)

    def _readable(self, generated: Iterator[int], *, plain: bool) -> Iterator[str]:
        """Yield the text of an answer.

        Args:  plain: it has no channels, whatever the model
        """
        marks = {} if plain else channels.marks_of(self.tokenizer)
        if not channels.has_channels(marks.values()):
            return self.tokenizer.decode_stream(generated)
        from tallow.generation.harmony import with_reasoning

        return with_reasoning(pieces_of(MarkedDecoder(self.tokenizer.stream_decoder(), marks), generated))


def host_logits(logits: dtypes.Array) -> npt.NDArray[np.float32]:
    """Return logits as a float32 NumPy array."""
    return devices.to_host(dtypes.cast(logits, dtypes.float32))
