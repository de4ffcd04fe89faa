"""CrossEncoder: scores of pairs of texts, such as how well a text answers a query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallow import devices
from tallow.core.creation import from_numpy
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.encoders.text_classifier import TextClassifier
from tallow.nn import functional as F
from tallow.nn.activation import Sigmoid
from tallow.nn.linear import Identity
from tallow.nn.module import Module
from tallow.sentence_transformers.model import check_options, weights_of
from tallow.tape.modes import no_grad


class CrossEncoder:
    """Scores pairs of texts.

    Args:
        model_name_or_path: the folder, or the `owner/repository` of the Hub, of a model for sequence classification.
        num_labels: of the model; another number than its own is an error.
        max_length: the most tokens of a pair; None means as the folder says.
        activation_fn: maps logits to scores; None means as the folder says, else the sigmoid of a single logit, and the
            logits themselves of several.
        device, revision, token: as for SentenceTransformer.
        model_kwargs: {"dtype": ...}, {"quant": ...}.

    Raises:  CheckpointError, TokenizerError, HubError; ArgumentError, UnsupportedError for other options

    Example:
        model = CrossEncoder("cross-encoder/ms-marco-MiniLM-L6-v2")
        model.rank("Where do cats sleep?", ["Cats sleep on sofas.", "The bank is closed."])
    """

    def __init__(
        self,
        model_name_or_path: str | Path,
        num_labels: int | None = None,
        max_length: int | None = None,
        activation_fn: Module | None = None,
        device: Any = None,
        *,
        revision: str | None = None,
        token: str | None = None,
        model_kwargs: dict[str, Any] | None = None,
        backend: str = "torch",
        **others: Any,
    ) -> None:
        check_options(backend, others)
        dtype, quant = weights_of(model_kwargs)
        self.classifier = TextClassifier.from_pretrained(
            model_name_or_path, dtype, device, quant=quant, revision=revision, token=token
        )
        if num_labels not in (None, self.num_labels):
            raise ArgumentError(f"num_labels={num_labels}; the model has {self.num_labels}", hint="leave it out")
        if max_length is not None:
            self.classifier.max_length = max_length
        default = self.classifier.activation or (Sigmoid() if self.num_labels == 1 else Identity())
        self.activation_fn: Any = default if activation_fn is None else activation_fn

    @property
    def model(self) -> Module:
        """The model of `tallow.models`."""
        return self.classifier.model

    @property
    def tokenizer(self) -> Any:
        """The tokenizer."""
        return self.classifier.tokenizer

    @property
    def num_labels(self) -> int:
        """The number of logits of a pair."""
        return len(self.classifier.labels)

    @property
    def max_length(self) -> int | None:
        """The most tokens of a pair."""
        return self.classifier.max_length

    @property
    def device(self) -> devices.device:
        """The device of the weights."""
        return next(self.model.parameters()).device

    def predict(
        self,
        inputs: Sequence[Any] | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Any = None,
        apply_softmax: bool | None = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        sentences: Sequence[Any] | None = None,
    ) -> Any:
        """Return the scores of pairs of texts.

        Args:
            inputs: pairs; or a single pair of texts.
            batch_size: how many pairs, of about the same length, to compute at once.
            show_progress_bar: print the progress; None means False.
            activation_fn: in place of the model's.
            apply_softmax: return probabilities of the labels.
            convert_to_numpy: an array; False returns a list of tensors.
            convert_to_tensor: one tensor.
            sentences: the former name of `inputs`.

        Shapes:  (N,) for a model with one label, (N, L) with several
        Raises:  ArgumentError for a batch_size below 1; TokenizerError; NumericError
        """
        given: Any = inputs if sentences is None else sentences
        single = len(given) > 0 and isinstance(given[0], str)
        pairs = [tuple(pair) for pair in ([given] if single else given)]
        classifier, rows = self.classifier, self.classifier.tokenize(pairs)
        progress = (lambda done, count: print(f"scored {done} of {count}", flush=True)) if show_progress_bar else None
        self.model.eval()
        logits = from_numpy(
            classifier.compute_each(
                rows, classifier.classify, most=batch_size, width=self.num_labels, progress=progress
            )
        )
        with no_grad():
            scores = (self.activation_fn if activation_fn is None else activation_fn)(logits)
            if apply_softmax and self.num_labels > 1:
                scores = F.softmax(scores, dim=1)
        scores = scores[:, 0] if self.num_labels == 1 else scores
        found: Tensor | Any = scores if convert_to_tensor else scores.numpy() if convert_to_numpy else list(scores)
        return found[0] if single else found

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Any = None,
    ) -> list[dict[str, Any]]:
        """Return the texts that answer a query, the best first: {"corpus_id": ..., "score": ...}.

        Args:
            top_k: how many; None means all.
            return_documents: add "text".
            batch_size, show_progress_bar, activation_fn: as in `predict`.

        Raises:  ArgumentError for a model with several labels
        """
        if self.num_labels != 1:
            raise ArgumentError(
                f"the model has {self.num_labels} labels: it does not rank", hint="call predict with pairs"
            )
        scores = self.predict([(query, text) for text in documents], batch_size, show_progress_bar, activation_fn)
        order = sorted(range(len(documents)), key=lambda i: -scores[i])[:top_k]
        rows: list[dict[str, Any]] = [{"corpus_id": i, "score": float(scores[i])} for i in order]
        return [row | {"text": documents[i]} for i, row in zip(order, rows, strict=True)] if return_documents else rows
