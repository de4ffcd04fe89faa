"""CrossEncoder: scores of pairs of texts, such as how well a text answers a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tallow import devices, models
from tallow.core.creation import from_numpy, tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.hub import local_folder
from tallow.models import loading
from tallow.models.architectures import ARCHITECTURES
from tallow.models.auto import model_class
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG, read_entries
from tallow.models.encoders.sentence_folder import MODULES, PROMPTS, prompts_of, text_config
from tallow.models.encoders.text_classifier import TextClassifier
from tallow.models.encoders.token_scorer import LOGITS, SCORE, TokenScorer
from tallow.models.text_batches import length_limit
from tallow.nn import functional as F
from tallow.nn.activation import Sigmoid
from tallow.nn.linear import Identity
from tallow.nn.module import Module
from tallow.sentence_transformers.model import check_options, weights_of
from tallow.sentence_transformers.models import Features, Transformer, write_json
from tallow.tape.modes import no_grad
from tallow.text.tokenizer import Tokenizer


class CrossEncoder(Module):
    """Scores pairs of texts.

    Args:
        model_name_or_path: the folder, or the `owner/repository` of the Hub, of a model for sequence classification; of
            a language model that answers "yes" or "no", such as a Qwen3-Reranker; or of another encoder, which gets a
            new head to be trained.
        num_labels: of the model; another number than its own is an error. A new head has 1 by default.
        max_length: the most tokens of a pair; None means as the folder says.
        activation_fn: maps logits to scores; None means as the folder says, else the sigmoid of a single logit, and the
            logits themselves of several.
        device, revision, token: as for SentenceTransformer.
        model_kwargs: {"dtype": ...}, {"quant": ...}.
        prompts: texts to write before pairs, by name, for a language model its instructions; None means the folder's.
        default_prompt_name: of the one for calls without a prompt; None means the folder's.

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
        prompts: dict[str, str] | None = None,
        default_prompt_name: str | None = None,
        **others: Any,
    ) -> None:
        check_options(backend, others)
        super().__init__()
        dtype, quant = weights_of(model_kwargs)
        folder = local_folder(model_name_or_path, revision=revision, token=token)
        written = prompts_of(folder)
        self.prompts = written["prompts"] if prompts is None else prompts
        self.default_prompt_name = default_prompt_name or written["default_prompt"]
        if issubclass(model_class(folder), (*TextClassifier.kinds, CausalLM)):
            classifier = TextClassifier.from_pretrained(folder, dtype, device, quant=quant)
        else:
            classifier = with_new_head(folder, 1 if num_labels is None else num_labels, dtype, device)
        self.classifier, self.model = classifier, classifier.model
        if num_labels not in (None, self.num_labels):
            raise ArgumentError(f"num_labels={num_labels}; the model has {self.num_labels}", hint="leave it out")
        if max_length is not None:
            self.classifier.max_length = max_length
        default = self.classifier.activation or (Sigmoid() if self.num_labels == 1 else Identity())
        self.activation_fn: Any = default if activation_fn is None else activation_fn

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

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, task: str | None = None) -> Features:
        """Return the features of pairs of texts, as `forward` takes them.

        Args:
            prompt: a text to write before the first of each pair.
            task: has no effect: all pairs are computed alike.
        """
        del task
        pairs = [(first, second) for first, second in inputs]
        batch = self.tokenizer.pad(self.classifier.tokenize_with(pairs, prompt), side="right")
        names = ("input_ids", "attention_mask", *(["token_type_ids"] if self.classifier.takes_segments else []))
        return {name: tensor(getattr(batch, name)).to(self.device) for name in names}

    def forward(self, features: Features) -> Features:
        """Return the features with `scores`, the logits (B, L) of pairs."""
        options = {name: features[name] for name in ("token_type_ids",) if name in features}
        return features | {
            "scores": self.classifier.scores_of(features["input_ids"], features["attention_mask"], **options)
        }

    def _prompt(self, name: str | None, prompt: str | None) -> str | None:
        """Return the prompt of a call.  Raises: ArgumentError for an unknown name"""
        name = self.default_prompt_name if name is None else name
        if prompt is not None or name is None:
            return prompt
        if name not in self.prompts:
            known = ", ".join(map(repr, self.prompts)) or "none"
            raise ArgumentError(f"the model has no prompt {name!r:.80}", hint=f"its prompts: {known}")
        return self.prompts[name]

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
        prompt_name: str | None = None,
        prompt: str | None = None,
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
            prompt_name: which of the model's prompts to write; None means its default.
            prompt: the prompt itself.

        Shapes:  (N,) for a model with one label, (N, L) with several
        Raises:  ArgumentError for a batch_size below 1; TokenizerError; NumericError
        """
        given: Any = inputs if sentences is None else sentences
        single = len(given) > 0 and isinstance(given[0], str)
        pairs = [tuple(pair) for pair in ([given] if single else given)]
        classifier = self.classifier
        rows = classifier.tokenize_with(pairs, self._prompt(prompt_name, prompt))
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

    def save_pretrained(self, path: str | Path) -> None:
        """Write a folder that this class, and sentence-transformers, load.  Raises: OSError"""
        folder = Path(path)
        source, classifier = Path(str(self.model.folder)), self.classifier
        length = classifier.max_length
        Transformer.made(self.model, self.tokenizer, length, classifier.lowercase, source).save(folder)
        entries, labels = read_entries(folder / CONFIG), classifier.labels
        names: dict[str, Any] = {"architectures": [architecture_of(self.model, entries)]}
        if isinstance(classifier, TokenScorer):
            save_modules(classifier, folder)
        else:
            names |= {"id2label": {str(i): label for i, label in enumerate(labels)}}
            names |= {"label2id": {label: i for i, label in enumerate(labels)}}
        kind = type(self.activation_fn).__name__
        activation = f"torch.nn.modules.{'linear' if kind == 'Identity' else 'activation'}.{kind}"
        # Where sentence-transformers looks for it in a folder without modules.json.
        names |= {"sentence_transformers": {"activation_fn": activation}}
        write_json(folder / CONFIG, entries | names)
        written = {"prompts": self.prompts, "default_prompt_name": self.default_prompt_name}
        write_json(folder / PROMPTS, {"model_type": "CrossEncoder", "activation_fn": activation, **written})

    save = save_pretrained

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Any = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the texts that answer a query, the best first: {"corpus_id": ..., "score": ...}.

        Args:
            top_k: how many; None means all.
            return_documents: add "text".
            batch_size, show_progress_bar, activation_fn, prompt_name, prompt: as in `predict`.

        Raises:  ArgumentError for a model with several labels
        """
        if self.num_labels != 1:
            raise ArgumentError(
                f"the model has {self.num_labels} labels: it does not rank", hint="call predict with pairs"
            )
        pairs = [(query, text) for text in documents]
        prompts: Any = {"prompt_name": prompt_name, "prompt": prompt}
        scores = self.predict(pairs, batch_size, show_progress_bar, activation_fn, **prompts)
        order = sorted(range(len(documents)), key=lambda i: -scores[i])[:top_k]
        rows: list[dict[str, Any]] = [{"corpus_id": i, "score": float(scores[i])} for i in order]
        return [row | {"text": documents[i]} for i, row in zip(order, rows, strict=True)] if return_documents else rows


def with_new_head(folder: Path, labels: int, dtype: Any = None, device: Any = None) -> TextClassifier:
    """Return a classifier of pairs with the encoder of a folder, and a new head.

    Raises:  CheckpointError for a model that has no classifier
    """
    base = model_class(folder)
    family = base.__name__.partition("For")[0].removesuffix("Model")
    kind: Any = getattr(models, f"{family}ForSequenceClassification", None)
    if kind is None or not issubclass(kind, TextClassifier.kinds):
        raise CheckpointError(f"{folder}: {base.__name__} {TextClassifier.lacks}", hint=TextClassifier.choose)
    encoder = loading.read(getattr(models, f"{family}Model"), folder, dtype, device, None, False)
    weight = next(encoder.parameters())
    names = tuple(f"LABEL_{i}" for i in range(labels))
    model = kind(replace(encoder.config, labels=names), device=weight.device, dtype=weight.dtype)
    model.base_model.load_state_dict(encoder.state_dict(), strict=False)  # a pooler may be new too
    model.folder = folder
    tokenizer = Tokenizer.from_pretrained(folder)
    _, texts = text_config(folder)
    limit = length_limit(texts.get("max_seq_length"), tokenizer, int(model.base_model.context_length))
    return TextClassifier(tokenizer, model.eval(), max_length=limit, lowercase=texts.get("do_lower_case") is True)


def save_modules(scorer: TokenScorer, folder: Path) -> None:
    """Write the modules of a language model that scores pairs, after its own files.  Raises: OSError"""
    kinds = {"": "base.modules.transformer.Transformer", f"1_{SCORE}": f"cross_encoder.modules.logit_score.{SCORE}"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    write_json(folder / MODULES, modules)
    (folder / f"1_{SCORE}").mkdir(exist_ok=True)
    ids = {"true_token_id": scorer.true_token, "false_token_id": scorer.false_token}
    write_json(folder / f"1_{SCORE}" / CONFIG, ids | {"module_input_name": LOGITS})
    reads: dict[str, Any] = {"method": "forward", "method_output_name": "logits"}
    settings: dict[str, Any] = {"transformer_task": "text-generation", "module_output_name": LOGITS}
    settings |= {"modality_config": {"text": reads, "message": reads | {"format": "flat"}}}
    if scorer.variables:
        settings |= {"processing_kwargs": {"chat_template": scorer.variables}}
    path, entries = text_config(folder)
    write_json(path, entries | settings)


def architecture_of(model: Any, entries: Mapping[str, Any]) -> str:
    """Return the name of a model's class in files: of those of its class, the one of the model type."""
    names = [name for name, own in ARCHITECTURES.items() if own == type(model).__name__]
    kind = str(entries.get("model_type")).replace("-", "").lower()
    return next((name for name in names if name.lower().startswith(f"{kind}for")), names[0])
