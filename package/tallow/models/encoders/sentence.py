"""Sentence embeddings: an encoder or decoder, a pooling of its positions to one vector, and further modules.

Loads sentence-transformers folders: `modules.json` lists the modules, each in a subfolder. A folder without that file
is an encoder, with mean pooling. A table of static embeddings stands in place of an encoder and its pooling.

Letters: B texts of a batch, N texts, T positions, D width.

Source:  Reimers & Gurevych 2019, arXiv:1908.10084; files as sentence-transformers writes them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.hub import local_model
from tallow.io.gguf import GGUF
from tallow.io.model_folder import load_folder
from tallow.io.source import Source
from tallow.models import loading
from tallow.models.decoders.decoder import DecoderHead, DecoderModel
from tallow.models.encoders.bert import BertModel
from tallow.models.encoders.distilbert import DistilBertModel
from tallow.models.encoders.sentence_folder import (
    STATIC,
    encoder_class,
    prompts_of,
    transformer_class,
    transformer_settings,
)
from tallow.models.encoders.sentence_parts import Loader, Normalize, Pooling, read_parts
from tallow.models.encoders.static_embedding import StaticEmbedding
from tallow.models.gguf import models as gguf_models
from tallow.models.gguf.names import POOLINGS as GGUF_POOLINGS
from tallow.models.text_batches import Progress, Text, TextBatches, length_limit
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.text.marks import Encoded
from tallow.text.tokenizer import Batch, Tokenizer


class SentenceEncoder(TextBatches, loading.FromPretrained):
    """Maps texts with similar meaning to nearby vectors.

    Args:
        tokenizer, model: an encoder, such as a BERT; a decoder without a head, such as a Qwen3Model; or a
            StaticEmbedding, which gets no special tokens.
        pooling: pools the positions of a text to one vector; None means the mean.
        heads: modules to apply after pooling, in order.
        max_length: the most tokens of a text; longer texts are truncated. None means the tokenizer's limit.
        lowercase: convert texts to lower case first.
        prompts: what to write before texts, by name, such as {"query": "query: "}.
        default_prompt: the name of the one for texts that name none.

    Example:
        encoder = SentenceEncoder.from_pretrained("sentence-transformers/all-MiniLM-L6-v2")
        vectors = encoder.encode(["A cat sleeps.", "A kitten naps.", "The bank is closed."])
        vectors @ vectors.T
    """

    locate = staticmethod(local_model)

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Module,
        pooling: Pooling | None = None,
        heads: Sequence[Module] = (),
        *,
        max_length: int | None = None,
        lowercase: bool = False,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
    ) -> None:
        # Poolings ignore padding.
        options = {"skip_padding": True} if isinstance(model, BertModel | DistilBertModel) else {}
        super().__init__(tokenizer, model, max_length, options, lowercase=lowercase)
        self.pooling = pooling or Pooling("mean")
        self.heads = tuple(heads)
        self.prompts = dict(prompts or {})
        self.default_prompt = default_prompt
        self._marks = not isinstance(model, StaticEmbedding)  # special tokens, which only an encoder makes use of

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        if path.is_file():
            encoder = cls.from_gguf(path, dtype, device)
            loading.quantized(encoder.model, quant, dtype)
            return encoder
        return cls.assemble(path, load_folder, dtype, device, quant, strict=strict)

    @classmethod
    def from_gguf(cls, source: Source, dtype: Any = None, device: Any = None) -> Self:
        """Load the encoder, or the decoder for embeddings, of a GGUF file. Files do not say whether vectors are
        normalized; `encode` has an option.

        Args:  dtype: as in `AutoModel`

        Raises:  CheckpointError, TokenizerError, MissingPackageError
        """
        model = gguf_models.load(source, dtype, device)
        pooling = gguf_pooling(GGUF(source))
        tokenizer = Tokenizer.from_gguf(source)
        model = model.base_model if isinstance(model, DecoderHead) else model
        if not isinstance(model, BertModel | DistilBertModel | DecoderModel):
            raise CheckpointError(
                f"{type(model).__name__} does not compute embeddings of texts", hint="load it with AutoModel"
            )
        return cls(tokenizer, model, Pooling(pooling), max_length=length_limit(None, tokenizer, model.context_length))

    @classmethod
    def assemble(
        cls,
        folder: Path,
        load: Loader,
        dtype: Any = None,
        device: Any = None,
        quant: str | None = None,
        *,
        strict: bool = False,
    ) -> Self:
        """Build the encoder that the JSON files of a folder describe, with weights that may be stored elsewhere.

        Args:
            load: returns the tensors of a module from its folder, which is `folder` or a subfolder.
            dtype, quant, strict: as in `from_pretrained`.

        Raises:  CheckpointError, TokenizerError, MissingPackageError; as `PretrainedModel.quantize`
        """
        first, place, pooling, heads = read_parts(folder, load)
        head_dtype = dtypes.float32 if dtype is None and quant is not None else dtype
        heads = [head.to(devices.chosen(device), dtype=head_dtype).eval() for head in heads]
        written = prompts_of(folder)
        if first == STATIC:
            table = StaticEmbedding.assemble(load(place), dtype, device, str(place))
            loading.quantized(table, quant, dtype)
            return cls(Tokenizer.from_pretrained(place), table, pooling, heads, **written)
        kind = encoder_class(place) if pooling is None else transformer_class(place)
        tokenizer = Tokenizer.from_pretrained(place)
        texts = transformer_settings(place)
        unused = {"add_pooling_layer": False} if issubclass(kind, BertModel) else {}
        model = loading.read(kind, place, dtype, device, quant, strict, load(place), **unused)
        return cls(
            tokenizer,
            model,
            pooling,
            heads,
            max_length=length_limit(texts.get("max_seq_length"), tokenizer, getattr(model, "context_length", None)),
            lowercase=texts.get("do_lower_case") is True,
            **written,
        )

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text before it is truncated.  Raises: TokenizerError"""
        return len(self.tokenizer.encode(text.lower() if self.lowercase else text, add_special_tokens=self._marks))

    def explain(self) -> None:
        """Print for each layer of the model whether it runs fused, and if not, why; see `PretrainedModel.explain`."""
        self.model.explain()

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int = 32,
        normalize: bool = False,
        prompt_name: str | None = None,
        progress: Progress | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return the vectors of texts.

        Args:
            batch_size: how many texts, of about the same length, to compute at once.
            normalize: scale vectors to length 1, even if the model does not.
            prompt_name: which of the model's `prompts` to write before each text; None means its default.
            progress: called after each batch with the number of texts done and the number of all texts.

        Shapes:  (N, D) for N texts, (D,) for a single string
        Raises:  ArgumentError for a batch_size below 1 and an unknown prompt; TokenizerError for a text that cannot be
                 encoded; NumericError when a vector holds NaN or infinities
        """
        rows = self.tokenize(self.prompted([texts] if isinstance(texts, str) else texts, prompt_name))
        embed = partial(self.embed, normalize=normalize, skip=self.left_out(prompt_name))
        vectors = self.compute_each(rows, embed, most=batch_size, progress=progress)
        return vectors[0] if isinstance(texts, str) else vectors

    def prompted(self, texts: Sequence[str], prompt_name: str | None = None) -> list[str]:
        """Return texts after the prompt of a name, or the default one.  Raises: ArgumentError for an unknown name"""
        name = self.default_prompt if prompt_name is None else prompt_name
        if name is None:
            return list(texts)
        if name not in self.prompts:
            known = ", ".join(map(repr, self.prompts)) or "none"
            raise ArgumentError(f"the model has no prompt {name!r:.80}", hint=f"its prompts: {known}")
        return [self.prompts[name] + text for text in texts]

    def left_out(self, prompt_name: str | None = None) -> int:
        """Return the number of first tokens, those of the prompt, that the pooling leaves out.

        Raises:  ArgumentError for an unknown name; TokenizerError
        """
        (prompt,) = self.prompted([""], prompt_name)
        return self.prompt_tokens(prompt)

    def prompt_tokens(self, prompt: str) -> int:
        """Return the number of first tokens, those of a prompt, that the pooling leaves out.  Raises: TokenizerError"""
        if self.pooling.include_prompt or not prompt:
            return 0
        (text,) = self.prepare([prompt])
        tokens = self.tokenizer.split(str(text), add_special_tokens=self._marks)
        return len(tokens) - (tokens[-1].is_special if tokens else 0)

    def tokenize(
        self, texts: Sequence[Text], *, truncate: bool = True, special: bool = True, side: str | None = None
    ) -> list[Encoded]:
        return super().tokenize(texts, truncate=truncate, special=special and self._marks, side=side)

    def positions(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Return the vectors (B, T, D) of each position of a batch, before pooling."""
        return self._hidden(batch)[0].float().cpu().numpy()

    def embed(self, batch: Batch, *, normalize: bool = False, skip: int = 0) -> npt.NDArray[np.float32]:
        """Return the vectors (B, D) of one batch of tokenized texts; as `encode`.

        Args:  skip: the number of first tokens that the pooling leaves out
        """
        x_BTD, mask_BT = self._hidden(batch)
        with no_grad():
            x_BD = self.pooling(x_BTD, mask_BT, skip)
            for head in self.heads:
                x_BD = head(x_BD)
            if normalize and not self._normalizes:
                x_BD = F.normalize(x_BD.float(), dim=-1)
            return x_BD.float().cpu().numpy()

    @property
    def _normalizes(self) -> bool:
        return bool(self.heads) and isinstance(self.heads[-1], Normalize)

    def _hidden(self, batch: Batch) -> tuple[Tensor, Tensor]:
        hidden, mask_BT = self.run(batch)
        return hidden if isinstance(hidden, Tensor) else hidden.last_hidden_state, mask_BT


def gguf_pooling(file: GGUF) -> str:
    """Return the pooling of a GGUF file: by default the mean for an encoder.

    Raises:  CheckpointError for a file without a pooling, or with an unsupported one
    """
    key = f"{file.metadata.get('general.architecture')}.pooling_type"
    kind = file.metadata.get(key, 1 if key in ("bert.pooling_type", "nomic-bert.pooling_type") else None)
    if type(kind) is not int or kind not in GGUF_POOLINGS:
        raise CheckpointError(
            f"{file.name}: {key} is {kind!r:.80}; tallow supports {', '.join(map(str, GGUF_POOLINGS))}",
            hint="it may be a model for other tasks; load it with AutoModel",
        )
    return GGUF_POOLINGS[kind]
