"""SentenceTransformer: vectors of texts, for similarity and search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.creation import from_numpy
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, TallowWarning, UnsupportedError, warn
from tallow.hub import local_model
from tallow.io.model_folder import load_folder
from tallow.models.config import read_entries
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sentence_folder import MODULES, PROMPTS, STATIC, modules_of
from tallow.models.encoders.sentence_parts import SENTENCE
from tallow.nn.container import Sequential
from tallow.nn.module import Module
from tallow.sentence_transformers.models import Features, Pooling, Transformer, wrapped, write_json
from tallow.sentence_transformers.util.quantization import quantize_embeddings
from tallow.sentence_transformers.util.similarity import SimilarityFunction, named
from tallow.tape.modes import no_grad
from tallow.text.tokenizer import Tokenizer

QUERIES = ("query",)
DOCUMENTS = ("document", "passage", "corpus")  # names of prompts, the first that exists


class SentenceTransformer(Sequential):
    """Maps texts with similar meaning to nearby vectors.

    Args:
        model_name_or_path: a folder, a GGUF file, or `owner/repository` of the Hub. An encoder alone gets mean pooling.
        modules: in place of a name: a `models.Transformer`, a `models.Pooling`, and what follows.
        device: None means the CPU, or a GPU if there is one.
        prompts: texts to write before others, by name; None means the folder's.
        default_prompt_name: the one for texts that name none.
        similarity_fn_name: "cosine", "dot", "euclidean" or "manhattan"; None means as the folder says.
        truncate_dim: keep the first numbers of each vector; None keeps all.
        revision, token: of the Hub repository.
        model_kwargs: {"dtype": ...} of the model, and {"quant": "q8_0"} for quantised weights.

    Raises:  CheckpointError, TokenizerError, HubError; ArgumentError without a model; UnsupportedError for options

    Example:
        model = SentenceTransformer("sentence-transformers/all-MiniLM-L6-v2")
        vectors = model.encode(["A cat sleeps.", "A kitten naps.", "The bank is closed."])
        model.similarity(vectors, vectors)
    """

    main_input_name = "input_ids"
    accepts_loss_kwargs = False

    def __init__(
        self,
        model_name_or_path: str | Path | None = None,
        *,
        modules: Sequence[Module] | None = None,
        device: Any = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | SimilarityFunction | None = None,
        truncate_dim: int | None = None,
        revision: str | None = None,
        token: str | None = None,
        model_kwargs: Mapping[str, Any] | None = None,
        backend: str = "torch",
        **others: Any,
    ) -> None:
        check_options(backend, others)
        settings: dict[str, Any] = {}
        if modules is None:
            if model_name_or_path is None:
                raise ArgumentError("SentenceTransformer needs a name, a folder or modules")
            modules, settings = _loaded(model_name_or_path, device, dict(model_kwargs or {}), revision, token)
        super().__init__(*modules)
        if device is not None:
            self.to(devices.device(device))
        self.prompts: dict[str, str] = dict(settings.get("prompts", {}) if prompts is None else prompts)
        self.default_prompt_name = default_prompt_name or settings.get("default_prompt")
        self.similarity_fn_name = similarity_fn_name or settings.get("similarity_fn_name") or "cosine"
        self.truncate_dim = settings.get("truncate_dim") if truncate_dim is None else truncate_dim
        self._prompt(None, self.default_prompt_name)

    # --------------------------------------------------------------------------------------------------------- vectors

    def encode(
        self,
        inputs: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        sentences: str | Sequence[str] | None = None,
    ) -> Any:
        """Return the vectors of texts.

        Args:
            prompt_name, prompt: what to write before each text: the name of one of `prompts`, or a text.
            batch_size: how many texts, of about the same length, to compute at once.
            show_progress_bar: print the progress; None means False.
            output_value: "token_embeddings" returns the vectors of positions, a tensor for each text; None returns all
                features, a dictionary for each text.
            precision: "int8", "uint8", "binary" or "ubinary": as `quantize_embeddings`.
            convert_to_numpy: an array; False returns a list of tensors.
            convert_to_tensor: one tensor.
            device: move the model there first.
            normalize_embeddings: scale vectors to length 1.
            truncate_dim: keep the first numbers; None means as the model says.
            sentences: the former name of `inputs`.

        Shapes:  (N, D) for N texts, (D,) for a single string
        Raises:  ArgumentError for an unknown name, precision or output; TokenizerError; NumericError
        """
        inputs = inputs if sentences is None else sentences
        if device is not None:
            self.to(devices.device(device))
        text = self._prompt(prompt, prompt_name)
        single = isinstance(inputs, str)
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        self.eval()
        if output_value != SENTENCE:
            rows = self._features(texts, text, batch_size, output_value)
            return rows[0] if single else rows
        vectors = self._vectors(texts, text, batch_size, bool(show_progress_bar))
        vectors = vectors[:, : self.truncate_dim if truncate_dim is None else truncate_dim]
        if normalize_embeddings:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        if precision != "float32" and (len(vectors) or precision not in ("int8", "uint8")):
            vectors = quantize_embeddings(vectors, precision)
        found: Any = vectors
        if convert_to_tensor or not convert_to_numpy:
            found = from_numpy(np.ascontiguousarray(vectors)).to(self.device)
            found = found if convert_to_tensor else list(found)
        return found[0] if single else found

    def encode_query(self, inputs: str | Sequence[str], prompt_name: str | None = None, **options: Any) -> Any:
        """As `encode`, with the prompt "query" if there is one."""
        return self.encode(inputs, self._task_prompt(QUERIES, prompt_name, options), **options)

    def encode_document(self, inputs: str | Sequence[str], prompt_name: str | None = None, **options: Any) -> Any:
        """As `encode`, with the first of the prompts "document", "passage" and "corpus" if there is one."""
        return self.encode(inputs, self._task_prompt(DOCUMENTS, prompt_name, options), **options)

    def _task_prompt(self, names: Sequence[str], given: str | None, options: Mapping[str, Any]) -> str | None:
        if given is not None or options.get("prompt") is not None:
            return given
        return next((name for name in names if name in self.prompts), None)

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        """Return the text to write before others.  Raises: ArgumentError for an unknown name"""
        if prompt is not None:
            return prompt
        name = self.default_prompt_name if name is None else name
        if name is not None and name not in self.prompts:
            known = ", ".join(map(repr, self.prompts)) or "none"
            raise ArgumentError(f"the model has no prompt {name!r:.80}", hint=f"its prompts: {known}")
        return self.prompts[name] or "" if name is not None else ""

    def _encoder(self) -> SentenceEncoder:
        """Return the encoder of `tallow.models` with the same modules."""
        first, heads = self[0], [each.part for each in list(self)[1:] if not isinstance(each, Pooling)]
        pooling = next((each.part for each in self if isinstance(each, Pooling)), None)
        return SentenceEncoder(
            first.tokenizer,
            first.auto_model,
            pooling,
            heads,
            max_length=first.max_seq_length,
            lowercase=first.do_lower_case,
        )

    def _vectors(self, texts: list[str], prompt: str, batch_size: int, show: bool) -> np.ndarray[Any, Any]:
        encoder = self._encoder()
        rows = encoder.tokenize([prompt + text for text in texts])
        progress = (lambda done, count: print(f"encoded {done} of {count} texts", flush=True)) if show else None
        embed = partial(encoder.embed, skip=encoder.prompt_tokens(prompt))
        return encoder.compute_each(
            rows, embed, most=batch_size, width=self.get_embedding_dimension() or 0, progress=progress
        )

    @no_grad()
    def _features(self, texts: list[str], prompt: str, batch_size: int, wanted: str | None) -> list[Any]:
        """Return what the modules compute for each text: one entry without padding, or with None all of them."""
        rows: list[Any] = []
        for start in range(0, len(texts), batch_size):
            found = self(self.preprocess(texts[start : start + batch_size], prompt=prompt))
            if wanted is not None and wanted not in found:
                raise ArgumentError(f"output_value={wanted!r:.80}", hint=f"pass one of {', '.join(found)}")
            for i, length in enumerate(found["attention_mask"].sum(1).tolist()):
                each = {name: value[i] if isinstance(value, Tensor) else value for name, value in found.items()}
                rows.append(each if wanted is None else each[wanted][:length])
        return rows

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, task: str | None = None) -> Features:
        """Return the features of texts, as the modules and losses take them.

        Args:
            prompt: a text to write before each.
            task: "query" or "document"; all texts are computed alike.
        """
        del task
        features = self[0].tokenize([(prompt or "") + text if isinstance(text, str) else text for text in inputs])
        if prompt:
            features["prompt_length"] = self._encoder().prompt_tokens(prompt)
        return {name: each.to(self.device) if isinstance(each, Tensor) else each for name, each in features.items()}

    def tokenize(self, texts: Sequence[Any]) -> Features:
        """Return the features of texts; as `preprocess`."""
        return self.preprocess(texts)

    def forward(self, input: Features) -> Features:
        """Return the features with `token_embeddings` and `sentence_embedding`."""
        for module in self:
            input = module(input)
        return input

    # ------------------------------------------------------------------------------------------------------ similarity

    @property
    def similarity_fn_name(self) -> str:
        """The name of the similarity."""
        return self._similarity

    @similarity_fn_name.setter
    def similarity_fn_name(self, value: str | SimilarityFunction) -> None:
        self._similarity = named(value)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Return the similarities of all pairs (N, M) of vectors (N, D) and (M, D)."""
        return SimilarityFunction.to_similarity_fn(self.similarity_fn_name)(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Return the similarity of each pair (N,) of vectors (N, D) and (N, D)."""
        return SimilarityFunction.to_similarity_pairwise_fn(self.similarity_fn_name)(embeddings1, embeddings2)

    # -------------------------------------------------------------------------------------------------------- settings

    @property
    def device(self) -> devices.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self[0].tokenizer

    @property
    def max_seq_length(self) -> int | None:
        """The most tokens of a text; longer texts are truncated."""
        return self[0].max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self[0].max_seq_length = value

    def get_max_seq_length(self) -> int | None:
        """Return the most tokens of a text."""
        return self.max_seq_length

    def get_embedding_dimension(self) -> int | None:
        """Return the width of the vectors."""
        sizes = [each.get_sentence_embedding_dimension() for each in self if hasattr(each, SIZE)]
        width = sizes[-1] if sizes else self[0].get_word_embedding_dimension()
        return width if self.truncate_dim is None else min(width, self.truncate_dim)

    def get_sentence_embedding_dimension(self) -> int | None:
        """Return the width of the vectors; the former name."""
        return self.get_embedding_dimension()

    @contextmanager
    def truncate_sentence_embeddings(self, truncate_dim: int | None) -> Iterator[None]:
        """Return a context in which vectors keep their first numbers."""
        before, self.truncate_dim = self.truncate_dim, truncate_dim
        try:
            yield
        finally:
            self.truncate_dim = before

    def set_pooling_include_prompt(self, include_prompt: bool) -> None:
        """Set whether the pooling includes the prompt."""
        for module in self:
            if isinstance(module, Pooling):
                module.include_prompt = include_prompt

    def evaluate(self, evaluator: Any, output_path: str | None = None) -> Any:
        """Return what an evaluator says of the model."""
        return evaluator(self, output_path)

    # ----------------------------------------------------------------------------------------------------------- files

    def save_pretrained(self, path: str | Path, safe_serialization: bool = True) -> None:
        """Write a folder that this class, and sentence-transformers, load.

        Raises:  UnsupportedError for weights as a pickle; OSError
        """
        if not safe_serialization:
            raise UnsupportedError("safe_serialization=False", hint="leave it out: weights are written as safetensors")
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        entries = []
        is_static = getattr(self[0], "is_static", False)
        # A table of vectors has its own mean.
        for i, module in enumerate(each for each in self if not (is_static and isinstance(each, Pooling))):
            kind = STATIC if is_static and i == 0 else type(module).__name__
            place = "" if i == 0 and kind != STATIC else f"{i}_{kind}"
            module.save(folder / place)
            entries.append({"idx": i, "name": str(i), "path": place, "type": f"sentence_transformers.models.{kind}"})
        write_json(folder / MODULES, entries)
        settings: dict[str, Any] = {"model_type": "SentenceTransformer", "prompts": self.prompts}
        settings |= {"default_prompt_name": self.default_prompt_name, "similarity_fn_name": self.similarity_fn_name}
        write_json(
            folder / PROMPTS, settings | ({} if self.truncate_dim is None else {"truncate_dim": self.truncate_dim})
        )

    def save(self, path: str | Path, safe_serialization: bool = True) -> None:
        """As `save_pretrained`."""
        self.save_pretrained(path, safe_serialization)


SIZE = "get_sentence_embedding_dimension"
# Arguments with one meaning here: the values that are fine.
USUAL: dict[str, tuple[Any, ...]] = {
    "cache_folder": (None,),
    "trust_remote_code": (False, None),
    "local_files_only": (False, None),
    "processor_kwargs": (None, {}),
    "tokenizer_kwargs": (None, {}),
    "config_kwargs": (None, {}),
}


def check_options(backend: str, others: Mapping[str, Any]) -> None:
    """Raise UnsupportedError for an option that is not supported, and ArgumentError for one that does not exist."""
    if backend != "torch":
        raise UnsupportedError(f"backend={backend!r:.80}", hint="leave it out; tallow computes")
    for name, value in others.items():
        if name == "model_card_data":
            if value is not None:
                warn("no effect: model_card_data; tallow writes no cards", TallowWarning)
            continue
        if name not in USUAL:
            raise ArgumentError(f"unknown argument {name!r:.80}")
        if value not in USUAL[name]:
            raise UnsupportedError(f"{name}={value!r:.80} is not supported", hint=f"leave out {name}")


def weights_of(model_kwargs: Mapping[str, Any] | None) -> tuple[Any, Any]:
    """Return the dtype and the quantisation in `model_kwargs`.  Raises: UnsupportedError for anything else in it"""
    options = dict(model_kwargs or {})
    dtype, quant = options.pop("dtype", options.pop("torch_dtype", None)), options.pop("quant", None)
    if options:
        raise UnsupportedError(f"model_kwargs: {', '.join(options)}", hint="pass dtype and quant alone")
    return dtype, quant


def _loaded(
    name: str | Path, device: Any, options: dict[str, Any], revision: str | None, token: str | None
) -> tuple[list[Module], dict[str, Any]]:
    """Return the modules of a folder or file, and its settings."""
    options.pop("attn_implementation", None)
    dtype, quant = weights_of(options)
    path = local_model(name, revision=revision, token=token)
    if path.is_file():
        encoder, place = SentenceEncoder.from_pretrained(path, dtype, device, quant=quant), path.parent
    else:
        encoder = SentenceEncoder.assemble(path, load_folder, dtype, device, quant)
        place = next((place for _, place in modules_of(path)), path)
    first = Transformer.made(encoder.model, encoder.tokenizer, encoder.max_length, encoder.lowercase, place)
    width = first.get_word_embedding_dimension()
    pooling = Pooling(width, encoder.pooling.modes, encoder.pooling.include_prompt)
    settings = read_entries(path / PROMPTS) if path.is_dir() and (path / PROMPTS).exists() else {}
    kept = {key: settings.get(key) for key in ("similarity_fn_name", "truncate_dim")}
    modules = [first, pooling, *map(wrapped, encoder.heads)]
    return modules, {"prompts": encoder.prompts, "default_prompt": encoder.default_prompt, **kept}
