"""SparseEncoder: a weight for each token of the vocabulary, most of them 0 (SPLADE)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tallow.core.creation import from_numpy, tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.config import CONFIG
from tallow.models.encoders.sentence_folder import MODULES, PROMPTS
from tallow.models.encoders.sparse_encoder import POOLING, SETTINGS
from tallow.models.encoders.sparse_encoder import SparseEncoder as Encoder
from tallow.sentence_transformers.encoder_module import EncoderModule
from tallow.sentence_transformers.models import Features, Transformer, write_json
from tallow.sentence_transformers.util.similarity import SimilarityFunction, named


class SparseEncoder(EncoderModule):
    """Maps texts to weights of tokens.

    Args:
        model_name_or_path: the folder, or the `owner/repository` of the Hub, of a SPLADE model.
        similarity_fn_name: "dot" by default.
        max_active_dims: keep the greatest weights of each text; None keeps all.
        device, revision, token: as for SentenceTransformer.
        model_kwargs: {"dtype": ...}, {"quant": ...}.

    Raises:  as SentenceTransformer
    """

    encoder_class = Encoder
    encoder: Encoder

    def __init__(
        self,
        model_name_or_path: str | Path,
        *,
        device: Any = None,
        similarity_fn_name: str | SimilarityFunction | None = None,
        max_active_dims: int | None = None,
        revision: str | None = None,
        token: str | None = None,
        model_kwargs: dict[str, Any] | None = None,
        backend: str = "torch",
        **others: Any,
    ) -> None:
        super().__init__(
            model_name_or_path,
            device=device,
            revision=revision,
            token=token,
            model_kwargs=model_kwargs,
            backend=backend,
            others=others,
        )
        self.similarity_fn_name = named(similarity_fn_name or "dot")
        self.max_active_dims = max_active_dims

    @property
    def max_seq_length(self) -> int | None:
        """The most tokens of a text; longer texts are truncated."""
        return self.encoder.max_length

    def get_embedding_dimension(self) -> int:
        """Return the size of the vocabulary."""
        return int(self.encoder.model.config.vocab_size)

    def get_sentence_embedding_dimension(self) -> int:
        """Return the size of the vocabulary; the former name."""
        return self.get_embedding_dimension()

    def encode(
        self,
        inputs: str | Sequence[str],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = True,
        convert_to_sparse_tensor: bool = True,
        max_active_dims: int | None = None,
    ) -> Any:
        """Return the weights of texts.

        Args:
            batch_size: how many texts, of about the same length, to compute at once.
            show_progress_bar: print how many texts there are; None means False.
            convert_to_tensor: one tensor; False returns a list of them.
            convert_to_sparse_tensor: in the format COO.
            max_active_dims: keep the greatest weights of each text; None means as the model says.

        Shapes:  (N, V) for N texts, (V,) for a single string
        Raises:  ArgumentError for a batch_size below 1; TokenizerError; NumericError
        """
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        self.encoder.model.eval()
        if show_progress_bar:
            print(f"encoding {len(texts)} texts", flush=True)
        weights = self.encoder.encode(texts, batch_size=batch_size)
        most = self.max_active_dims if max_active_dims is None else max_active_dims
        if most is not None and most < weights.shape[1]:
            left_out = np.argpartition(-weights, most, axis=1)[:, most:]
            np.put_along_axis(weights, left_out, 0, axis=1)
        found = from_numpy(weights)
        if isinstance(inputs, str):
            found = found[0]
        found = found.to_sparse() if convert_to_sparse_tensor else found
        return found if convert_to_tensor or isinstance(inputs, str) else [found[i] for i in range(len(texts))]

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, task: str | None = None) -> Features:
        """Return the features of texts, as `forward` takes them.

        Args:
            prompt: a text to write before each.
            task: has no effect: all texts are computed alike.
        """
        del task
        rows = self.encoder.tokenize([f"{prompt or ''}{text}" for text in inputs])
        batch = self.encoder.tokenizer.pad(rows, side="right")
        return {name: tensor(getattr(batch, name)).to(self.device) for name in ("input_ids", "attention_mask")}

    def forward(self, features: Features) -> Features:
        """Return the features with `sentence_embedding`, the weights (B, V) of texts."""
        mask = features["attention_mask"]
        weights = self.encoder.pool(self.auto_model(features["input_ids"], mask), mask)
        return features | {"sentence_embedding": weights}

    def save_pretrained(self, path: str | Path) -> None:
        """Write a folder that this class, and sentence-transformers, load.  Raises: OSError"""
        folder, encoder = Path(path), self.encoder
        source = Path(str(self.auto_model.folder))
        Transformer.made(self.auto_model, encoder.tokenizer, encoder.max_length, encoder.lowercase, source).save(folder)
        place = f"1_{POOLING}"
        (folder / place).mkdir(exist_ok=True)
        settings = {name: getattr(encoder, name) for name in SETTINGS}
        write_json(folder / place / CONFIG, settings | {"embedding_dimension": self.get_embedding_dimension()})
        kinds = {"MLMTransformer": "", POOLING: place}
        home = "sentence_transformers.sparse_encoder.models"
        entries = [
            {"idx": i, "name": str(i), "path": own, "type": f"{home}.{kind}"}
            for i, (kind, own) in enumerate(kinds.items())
        ]
        write_json(folder / MODULES, entries)
        name = {"similarity_fn_name": self.similarity_fn_name}
        write_json(folder / PROMPTS, {"model_type": "SparseEncoder", "prompts": {}, **name})

    save = save_pretrained

    def encode_query(self, inputs: str | Sequence[str], **options: Any) -> Any:
        """As `encode`."""
        return self.encode(inputs, **options)

    def encode_document(self, inputs: str | Sequence[str], **options: Any) -> Any:
        """As `encode`."""
        return self.encode(inputs, **options)

    def similarity(self, embeddings1: Tensor, embeddings2: Tensor) -> Tensor:
        """Return the similarities of all pairs (N, M)."""
        return SimilarityFunction.to_similarity_fn(self.similarity_fn_name)(_dense(embeddings1), _dense(embeddings2))

    def similarity_pairwise(self, embeddings1: Tensor, embeddings2: Tensor) -> Tensor:
        """Return the similarity of each pair (N,)."""
        pairwise = SimilarityFunction.to_similarity_pairwise_fn(self.similarity_fn_name)
        return pairwise(_dense(embeddings1), _dense(embeddings2))

    def sparsity(self, embeddings: Tensor) -> dict[str, float]:
        """Return the mean number of weights of a text, and the share of those that are 0."""
        dense = _dense(embeddings)
        rows = dense.unsqueeze(0) if dense.ndim == 1 else dense
        active = (rows != 0).float().sum(1).mean().item()
        return {"active_dims": active, "sparsity_ratio": 1 - active / rows.shape[1]}

    def decode(self, embeddings: Tensor, top_k: int | None = None) -> Any:
        """Return the tokens with a weight, the greatest first: (token, weight).

        Args:    top_k: how many; None means all
        Raises:  ArgumentError for a top_k below 1
        """
        if top_k is not None and top_k < 1:
            raise ArgumentError(f"top_k={top_k}", hint="pass 1 or more")
        dense = _dense(embeddings).numpy()
        rows = []
        for row in np.atleast_2d(dense):
            order = [int(i) for i in np.argsort(-row, kind="stable") if row[i] != 0][:top_k]
            tokens = self.tokenizer.convert_ids_to_tokens(order)
            rows.append([(token, float(row[i])) for token, i in zip(tokens, order, strict=True)])
        return rows if dense.ndim == 2 else rows[0]


def _dense(weights: Tensor) -> Tensor:
    return weights.to_dense() if weights.is_sparse else weights
