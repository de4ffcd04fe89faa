"""What language models share: logits of the next token, and the cache of what they have read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.autograd.modes import no_grad
from tallow.errors import ArgumentError, TokenizerError
from tallow.generation import LogitsProcessor, PromptCache, Sample, Sampler, generate, until
from tallow.models.decoder import DERIVED, DecoderHead
from tallow.models.generation_config import GenerationConfig
from tallow.nn import functional as F
from tallow.nn.cache import KVCache
from tallow.nn.linear import Linear
from tallow.tensor import Tensor, wrap
from tallow.text.chat import Message
from tallow.text.tokenizer import Tokenizer


class CacheShape(NamedTuple):
    """What a KVCache of a model holds for each position: layers, G and K."""

    layers: int
    kv_heads: int
    head_dim: int


class CausalLM(DecoderHead):
    """A language model: logits of the next token for each position. `tallow.generation` continues texts with it.

    Letters: B batch, T positions, D width, V vocabulary, G key/value heads, K head width.

    Example:
        lm = AutoModel.from_pretrained("Qwen/Qwen3-0.6B")
        for piece in lm.chat([{"role": "user", "content": "Why is the sky blue?"}], max_tokens=200):
            print(piece, end="", flush=True)
    """

    cache_class: ClassVar[type[KVCache]] = KVCache

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        vocabulary, width = self.base_model.token_embedding.weight.shape
        # With tied embeddings the head is the embedding's weight, and nothing of its own.
        self.lm_head = None if config.tie_word_embeddings else Linear(width, vocabulary, False, device, dtype)
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        return name == "lm_head.weight" or name.endswith(DERIVED)  # the first is the embedding once more

    def hidden(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        """What the head reads, (B, T, D). With a cache, the tokens follow those it has seen, and are appended."""
        return self.base_model(tokens_BT, cache=cache)

    @property
    def head_weight(self) -> Tensor:
        """(V, D): of a head of its own, or the embedding of tokens."""
        return self.base_model.token_embedding.weight if self.lm_head is None else self.lm_head.weight

    @property
    def context_length(self) -> int:
        """The most positions the model can read."""
        return self.base_model.context_length

    @property
    @abstractmethod
    def cache_shape(self) -> CacheShape: ...

    @property
    def vocab_size(self) -> int:
        return self.config.vocab_size

    def forward(self, tokens_BT: Tensor, cache: KVCache | None = None) -> Tensor:
        """Logits (B, T, V) for tokens (B, T). With a cache, the tokens follow those it has seen."""
        return self.logits(self.hidden(tokens_BT, cache))

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """(B, T, V), of what the head reads."""
        return F.linear(hidden_BTD, self.head_weight)

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many positions a query of each layer sees at most, itself included; None for all."""
        return (None,) * self.cache_shape.layers

    @property
    def prefill_chunk(self) -> int | None:
        """How many tokens of a prompt are read at once, which bounds the memory that attention takes; None for all."""
        return 512

    def new_cache(
        self,
        *,
        length: int | None = None,
        batch: int = 1,
        padding: Sequence[int] | None = None,
        growing: bool = False,
        sliding: bool = True,
    ) -> KVCache:
        """An empty cache, for `length` positions (the whole context if None) of `batch` sequences.

        Args:
            padding: how many tokens at the left of each sequence are no text; whatever they are, no query sees them.
            growing: take memory as positions come.
            sliding: keep no more than layers with a sliding window see; False keeps all, so that any may be truncated.

        Raises:  ArgumentError for more than the context
        """
        length = self.context_length if length is None else length
        if not 0 <= length <= self.context_length:
            raise ArgumentError(
                f"a cache of {length} positions; the model's context is {self.context_length}",
                mend="make it as long as the text at most, and no longer than the context",
            )
        layers, kv_heads, head_dim = self.cache_shape
        weight = self.head_weight
        widened = weight.device.type == "cpu" and weight.dtype is not dtypes.float64
        return self.cache_class(
            layers,
            batch,
            kv_heads,
            length,
            head_dim,
            windows=self.windows if sliding else None,
            padding=padding,
            growing=growing,
            dtype=dtypes.float32 if widened else weight.dtype,
            device=weight.device,
        )

    def next_logits(self, tokens: Sequence[int], cache: Any) -> dtypes.Array:
        """Append `tokens`, one sequence, to the cache; the logits (V,) of what follows, as `last_logits`."""
        return self.last_logits([tokens], cache)[0, 0]

    def last_logits(self, tokens: Sequence[Sequence[int]], cache: KVCache, last: int = 1) -> dtypes.Array:
        """Append tokens (B, T) to the cache; the logits (B, last, V) of what follows the last ones.

        They are float32, on the model's device. A long text is read in chunks of `prefill_chunk`.
        """
        device = self.head_weight.device
        tokens_BT = devices.move(np.array(tokens, dtype=np.int64), device)
        total = tokens_BT.shape[1]
        chunk = max(self.prefill_chunk or total, last)
        with no_grad():
            # The last chunk is a whole one: it holds the `last` tokens, and the first takes what is left over.
            for start in range(total % chunk - chunk if total % chunk else 0, total, chunk):
                hidden_BTD = self.hidden(wrap(tokens_BT[:, max(start, 0) : start + chunk]), cache)
            return dtypes.cast(self.logits(hidden_BTD[:, -last:]).array, dtypes.float32)

    # ----------------------------------------------------------------------------------------------------------- text

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Of the folder that the model was loaded from, read when it is first asked for; or what it is set to.

        Raises:  TokenizerError when there is none; MissingPackageError
        """
        if self.folder is None:
            raise TokenizerError(
                "the model was not loaded from a folder, so it has no tokenizer",
                mend="set one: model.tokenizer = Tokenizer.from_pretrained(folder)",
            )
        return Tokenizer.from_pretrained(self.folder)

    @cached_property
    def generation_config(self) -> GenerationConfig:
        """How the folder that the model was loaded from wants its texts made.

        Raises:  CheckpointError when its `generation_config.json` is not to be used
        """
        return GenerationConfig.from_folder(self.folder)

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a text, by the model's config, its `generation_config.json` and its tokenizer.

        Raises:  CheckpointError, TokenizerError when a file of the two is not to be used
        """
        ids = [*self.config.eos_token_id, *self.generation_config.eos_token_id, self.tokenizer.eos_token_id]
        return frozenset(token for token in ids if isinstance(token, int))

    def generate_text(
        self,
        prompt: str,
        *,
        max_tokens: int | None = None,
        stop: Collection[str] = (),
        sample: Sample | None = None,
        processors: Sequence[LogitsProcessor] = (),
    ) -> Iterator[str]:
        """Pieces of the text that follows the prompt, as they come.

        Args:
            max_tokens: None means as many as the context holds.
            stop: strings that end the text, and are no part of it; the model's own stop ids always do.
            sample: as `tallow.generation.generate`; None means as the model's `generation_config.json` says, which is
                the likeliest token unless it says otherwise.
            processors: as `tallow.generation.generate`

        Raises:  as `generate`, at the call; TokenizerError; CheckpointError as `generation_config`
        """
        tokens = self.tokenizer.encode(prompt)
        made = generate(self, tokens, max_tokens=max_tokens, **self._choice(sample, processors))
        return until(self.tokenizer.decode_stream(made, previous=tokens), stop)

    def chat(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        stop: Collection[str] = (),
        sample: Sample | None = None,
        processors: Sequence[LogitsProcessor] = (),
        cache: PromptCache | None = None,
        **variables: Any,
    ) -> Iterator[str]:
        """Pieces of the answer to a conversation, as they come.

        Args:
            messages: [{"role": "user", "content": "..."}], as the model's chat template knows them.
            max_tokens, stop, sample, processors: as `generate_text`
            cache: of this model, which spares it what it has read of the conversation before.
            variables: what else the chat template reads, such as tools.

        Raises:  as `generate`, at the call; TokenizerError when the model has no chat template; ArgumentError when the
                 template refuses the messages
        """
        tokens = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, **variables)
        options = {"max_tokens": max_tokens, **self._choice(sample, processors)}
        made = generate(self, tokens, **options) if cache is None else cache.generate(tokens, **options)
        return until(self.tokenizer.decode_stream(made), stop)

    def _choice(self, sample: Sample | None, processors: Sequence[LogitsProcessor]) -> dict[str, Any]:
        """What `generate` chooses tokens by, and ends with."""
        sample = sample or Sampler(**self.generation_config.sampling)
        return {"sample": sample, "processors": processors, "stop_ids": self.stop_ids}


def to_host(logits: dtypes.Array) -> npt.NDArray[np.float32]:
    logits = dtypes.cast(logits, dtypes.float32)
    return devices.backend_of(logits).to_host(logits)
