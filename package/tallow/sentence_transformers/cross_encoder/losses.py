"""Losses for training a CrossEncoder, under sentence-transformers' names.

A loss is called with the columns of a batch, lists of texts, and the labels.

Letters: B queries, N texts of a query, L labels of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn import loss as nn_loss
from tallow.nn.activation import Sigmoid
from tallow.nn.linear import Identity
from tallow.nn.module import Module

Columns = Sequence[Sequence[Any]]
Activation = Callable[[Tensor], Tensor]
SIGMOID = Sigmoid()
NO_TEXT = -1e16  # the logit where a query has fewer texts than others


class PairLoss(Module):
    """The base of losses of the scores of pairs.

    Args:
        model: the CrossEncoder that is trained.
        activation_fn: applied to the logits first.

    Attributes:
        has_one_label: the model needs one label.

    Raises:  ArgumentError for a model with several labels, where the loss takes one
    """

    has_one_label = True

    def __init__(self, model: Any, activation_fn: Activation | None = None) -> None:
        super().__init__()
        self.model = model
        self.activation_fn: Any = activation_fn or Identity()
        if self.has_one_label and model.num_labels != 1:
            raise ArgumentError(
                f"{type(self).__name__}: a model with {model.num_labels} labels",
                hint="load the model with num_labels=1",
            )

    def logits(self, queries: Sequence[str], texts: Sequence[str], prompt: str | None, task: str | None) -> Tensor:
        """Return the activation of the logits (B, L) of pairs."""
        return self.activation_fn(self.raw(list(zip(queries, texts, strict=True)), prompt, task))

    def raw(self, pairs: Sequence[tuple[str, str]], prompt: str | None, task: str | None) -> Tensor:
        """Return the logits (B, L) of pairs."""
        return self.model(self.model.preprocess(pairs, prompt=prompt, task=task))["scores"]

    def pair(self, inputs: Columns) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the two columns of a batch.  Raises: ArgumentError for another number"""
        if len(inputs) != 2:
            raise ArgumentError(f"{type(self).__name__}: {len(inputs)} columns of texts", hint="pass two")
        return inputs[0], inputs[1]


def one_for_each(labels: Tensor | None, count: int, loss: PairLoss) -> Tensor:
    """Return one label for each pair, as floats.  Raises: ArgumentError for another number"""
    if labels is None or labels.numel() != count:
        found = "none" if labels is None else str(labels.numel())
        raise ArgumentError(f"{type(loss).__name__} needs {count} labels, one for each row; found {found}")
    return labels.reshape(-1).detach().float()


class BinaryCrossEntropyLoss(PairLoss):
    """Compares the probability of each pair with its label, 0 to 1.

    Args:
        pos_weight: of pairs with label 1.
        kwargs: as BCEWithLogitsLoss.
    """

    def __init__(
        self, model: Any, activation_fn: Activation | None = None, pos_weight: Tensor | None = None, **kwargs: Any
    ) -> None:
        super().__init__(model, activation_fn)
        self.loss_fct = nn_loss.BCEWithLogitsLoss(pos_weight=pos_weight, **kwargs)

    def forward(
        self, inputs: Columns, labels: Tensor | None = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            inputs: the columns, lists of texts.
            labels: of each row.
            prompt, task: as `CrossEncoder.preprocess`.

        Raises:  ArgumentError for another number of columns or labels
        """
        logits = self.logits(*self.pair(inputs), prompt, task).reshape(-1)
        return self.loss_fct(logits, one_for_each(labels, len(logits), self))


class MSELoss(PairLoss):
    """Mean square of the differences between scores and labels, such as the scores of a teacher.

    Args:  kwargs: as MSELoss of `tallow.nn`
    """

    def __init__(self, model: Any, activation_fn: Activation | None = None, **kwargs: Any) -> None:
        super().__init__(model, activation_fn)
        self.loss_fct = nn_loss.MSELoss(**kwargs)

    def forward(
        self, inputs: Columns, labels: Tensor | None = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the loss of a batch.  Args, raises: as `BinaryCrossEntropyLoss`"""
        logits = self.logits(*self.pair(inputs), prompt, task).reshape(-1)
        return self.loss_fct(logits, one_for_each(labels, len(logits), self))


class CrossEntropyLoss(PairLoss):
    """Classifies pairs.  Args: kwargs: as CrossEntropyLoss of `tallow.nn`"""

    has_one_label = False

    def __init__(self, model: Any, activation_fn: Activation | None = None, **kwargs: Any) -> None:
        super().__init__(model, activation_fn)
        self.loss_fct = nn_loss.CrossEntropyLoss(**kwargs)

    def forward(
        self, inputs: Columns, labels: Tensor | None = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            labels: (B,), integers; or (B, L), probabilities.
            others: as `BinaryCrossEntropyLoss`.

        Raises:  ArgumentError for another number of columns, and without labels
        """
        logits = self.logits(*self.pair(inputs), prompt, task)
        if labels is None:
            raise ArgumentError("CrossEntropyLoss needs labels")
        is_column = not labels.is_floating_point() and labels.ndim == 2
        return self.loss_fct(logits, labels.reshape(-1) if is_column else labels)


class MultipleNegativesRankingLoss(PairLoss):
    """Ranks the second column's text first among some of other rows, and the texts of further columns.

    Args:
        num_negatives: how many texts of other rows to draw for each row; None takes all.
        scale: the scores are multiplied by it.
    """

    def __init__(
        self,
        model: Any,
        num_negatives: int | None = 4,
        scale: float = 10.0,
        activation_fn: Activation | None = SIGMOID,
    ) -> None:
        super().__init__(model, activation_fn)
        self.num_negatives, self.scale = num_negatives, scale

    def forward(
        self, inputs: Columns, labels: Tensor | None = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the loss of a batch; labels have no effect.  Args: as `BinaryCrossEntropyLoss`"""
        del labels
        queries, columns = inputs[0], inputs[1:]
        texts = [columns[0], *self.drawn(len(queries), columns), *columns[1:]]
        scores = tl.cat([self.raw(list(zip(queries, each, strict=True)), prompt, task) for each in texts], 1)
        scores = self.activation_fn(scores) * (self.scale or 1.0)
        return F.cross_entropy(scores, tl.zeros(len(queries), dtype=tl.int64, device=scores.device))

    def drawn(self, count: int, columns: Columns) -> list[list[str]]:
        """Return texts of other rows, one for each row at a time."""
        every = [text for column in columns for text in column]
        others = ~tl.eye(count, dtype=tl.bool).repeat(1, len(columns))
        left = len(every) - len(columns)
        if self.num_negatives is not None and self.num_negatives < left:
            places = tl.multinomial(others.float(), self.num_negatives).numpy()
        else:
            places = np.tile(np.arange(len(every)), (count, 1))[others.numpy()].reshape(count, -1)
        return [[every[i] for i in row] for row in places.T.tolist()]


class MarginMSELoss(PairLoss):
    """Compares the margin between the second and further columns with that of a teacher.

    Args:  kwargs: as MSELoss of `tallow.nn`

    Source:  Hofstätter et al. 2020, arXiv:2010.02666
    """

    def __init__(self, model: Any, activation_fn: Activation | None = None, **kwargs: Any) -> None:
        super().__init__(model, activation_fn)
        self.loss_fct = nn_loss.MSELoss(**kwargs)

    def forward(
        self, inputs: Columns, labels: Any = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            labels: margins (B,) or (B, N), or the teacher's scores of all texts (B, N + 1).
            others: as `BinaryCrossEntropyLoss`.

        Raises:  ArgumentError for another number of labels
        """
        queries, *columns = inputs
        scores = [self.logits(queries, each, prompt, task).reshape(-1) for each in columns]
        margins = tl.stack([scores[0] - each for each in scores[1:]], 1)
        labels = tl.stack(labels) if isinstance(labels, list) else labels
        if labels is not None and tuple(labels.shape) == (len(queries), len(columns)):
            labels = labels[:, :1] - labels[:, 1:]
        if labels is None or labels.numel() != margins.numel():
            raise ArgumentError(f"MarginMSELoss needs {len(columns) - 1} or {len(columns)} labels for each row")
        return self.loss_fct(margins, labels.reshape(margins.shape).detach().float())


class ListLoss(PairLoss):
    """The base of losses of lists of texts: the second column has several texts for each query, and labels of each.

    Args:  mini_batch_size: pairs that are scored at once; None means as many as queries, 0 or less all
    """

    def __init__(self, model: Any, activation_fn: Activation | None = None, mini_batch_size: int | None = None) -> None:
        super().__init__(model, activation_fn)
        self.mini_batch_size = mini_batch_size

    def forward(
        self, inputs: Columns, labels: Sequence[Tensor] | None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            labels: a tensor for each query, with one label for each of its texts.
            others: as `BinaryCrossEntropyLoss`.

        Raises:  ArgumentError for labels that are no lists, or of another length
        """
        queries, lists = self.pair(inputs)
        if not isinstance(labels, list | tuple) or [len(each) for each in labels] != [len(each) for each in lists]:
            raise ArgumentError(f"{type(self).__name__} needs a list of labels for each query, one for each text")
        pairs = [(query, text) for query, texts in zip(queries, lists, strict=True) for text in texts]
        step = len(queries) if self.mini_batch_size is None else self.mini_batch_size
        step = step if step > 0 else len(pairs)
        parts = [self.raw(pairs[i : i + step], prompt, task).reshape(-1) for i in range(0, len(pairs), step)]
        logits = self.activation_fn(tl.cat(parts).float())
        rows = [i for i, texts in enumerate(lists) for _ in texts]
        places = [j for texts in lists for j in range(len(texts))]
        shape = len(queries), max(map(len, lists))
        logits_BN = tl.full(shape, NO_TEXT, device=logits.device).index_put(_indices(rows, places, logits), logits)
        given = tl.cat([each.to(logits.device) for each in labels]).float()
        labels_BN = tl.full(shape, -math.inf, device=logits.device).index_put(_indices(rows, places, logits), given)
        return self.of_lists(logits_BN, labels_BN)

    def of_lists(self, logits_BN: Tensor, labels_BN: Tensor) -> Tensor:
        """Return the loss of the logits of lists, NO_TEXT behind their ends, and labels, -inf behind them."""
        raise NotImplementedError


def _indices(rows: list[int], places: list[int], like: Tensor) -> tuple[Tensor, Tensor]:
    return tl.tensor(rows, device=like.device), tl.tensor(places, device=like.device)


class ListNetLoss(ListLoss):
    """Compares the softmax of the scores of a list with that of its labels.

    Source:  Cao et al. 2007, Learning to Rank: From Pairwise Approach to Listwise Approach
    """

    def of_lists(self, logits_BN: Tensor, labels_BN: Tensor) -> Tensor:
        return F.cross_entropy(logits_BN, labels_BN.softmax(1))


class BaseWeightingScheme(Module):
    """The weights of pairs of texts in a LambdaLoss."""

    strict = True  # pairs with the same label do not count

    def forward(self, gain: Tensor, discount: Tensor, true_sorted: Tensor) -> Tensor:
        """Return weights (B, N, N), or what is broadcast to it.

        Args:
            gain: (B, N), of the labels in the order of the scores, as parts of the best.
            discount: (1, N), of the places.
            true_sorted: (B, N), the labels in the order of the scores.
        """
        raise NotImplementedError


class NoWeightingScheme(BaseWeightingScheme):
    """All pairs count alike."""

    def forward(self, gain: Tensor, discount: Tensor, true_sorted: Tensor) -> Tensor:
        del discount, true_sorted
        return gain.new_ones(())


class NDCGLoss1Scheme(BaseWeightingScheme):
    """Weights of the first text's gain."""

    strict = False

    def forward(self, gain: Tensor, discount: Tensor, true_sorted: Tensor) -> Tensor:
        del true_sorted
        return (gain / discount)[:, :, None]


class NDCGLoss2Scheme(BaseWeightingScheme):
    """Weights by the distance of places, and the difference of gains."""

    def forward(self, gain: Tensor, discount: Tensor, true_sorted: Tensor) -> Tensor:
        del true_sorted
        count = gain.shape[1]
        places = tl.arange(1, count + 1, device=gain.device)
        apart = (places[:, None] - places[None, :]).abs()
        inverse = 1 / discount[0].abs()
        deltas = (inverse[apart - 1] - inverse[apart]).abs()
        deltas = deltas.masked_fill(tl.eye(count, dtype=tl.bool, device=gain.device), 0.0)
        return deltas[None] * (gain[:, :, None] - gain[:, None, :]).abs()


class LambdaRankScheme(BaseWeightingScheme):
    """Weights by the difference that swapping two texts makes."""

    def forward(self, gain: Tensor, discount: Tensor, true_sorted: Tensor) -> Tensor:
        del true_sorted
        inverse = 1 / discount
        return (inverse[:, :, None] - inverse[:, None, :]).abs() * (gain[:, :, None] - gain[:, None, :]).abs()


class NDCGLoss2PPScheme(BaseWeightingScheme):
    """`mu` times NDCGLoss2Scheme, and LambdaRankScheme."""

    def __init__(self, mu: float = 10.0) -> None:
        super().__init__()
        self.mu, self.ndcg_loss2, self.lambda_rank = mu, NDCGLoss2Scheme(), LambdaRankScheme()

    def forward(self, gain: Tensor, discount: Tensor, true_sorted: Tensor) -> Tensor:
        values = gain, discount, true_sorted
        return self.mu * self.ndcg_loss2(*values) + self.lambda_rank(*values)


USUAL_SCHEME = NDCGLoss2PPScheme()


class LambdaLoss(ListLoss):
    """Puts the texts of each list in the order of their labels, with a weight for each pair.

    Args:
        weighting_scheme: of pairs; NDCGLoss2PPScheme by default, None means alike.
        k: only pairs with a text among the first k count; None means all.
        sigma: the differences of scores are multiplied by it.
        eps: the least gain of a list.
        reduction_log: "binary" or "natural" logarithms.

    Raises:  ArgumentError for another logarithm

    Source:  Wang et al. 2018, The LambdaLoss Framework for Ranking Metric Optimization
    """

    def __init__(
        self,
        model: Any,
        weighting_scheme: BaseWeightingScheme | None = USUAL_SCHEME,
        k: int | None = None,
        sigma: float = 1.0,
        eps: float = 1e-10,
        reduction_log: str = "binary",
        activation_fn: Activation | None = None,
        mini_batch_size: int | None = None,
    ) -> None:
        super().__init__(model, activation_fn, mini_batch_size)
        if reduction_log not in ("binary", "natural"):
            raise ArgumentError(f"reduction_log={reduction_log!r:.80}", hint='pass "binary" or "natural"')
        self.weighting_scheme = weighting_scheme or NoWeightingScheme()
        self.k, self.sigma, self.eps, self.reduction_log = k, sigma, eps, reduction_log

    def of_lists(self, logits_BN: Tensor, labels_BN: Tensor) -> Tensor:
        count = logits_BN.shape[1]
        best = self.k or count
        sorted_BN, order_BN = logits_BN.sort(descending=True, dim=-1)
        given_BN = labels_BN.gather(1, order_BN)
        differences = given_BN[:, :, None] - given_BN[:, None, :]
        counts = differences.isfinite()
        if self.weighting_scheme.strict:
            counts = counts & (differences > 0)
        places = tl.arange(count, device=logits_BN.device)
        counts = counts & ((places[:, None] < best) | (places[None, :] < best))
        given_BN, ideal_BN = given_BN.clamp(min=0.0), labels_BN.sort(descending=True, dim=-1)[0].clamp(min=0.0)
        discount_1N = (2.0 + places.float()).log2()[None]
        most_B = ((2**ideal_BN - 1) / discount_1N)[:, :best].sum(-1).clamp(min=self.eps)
        weights = self.weighting_scheme((2**given_BN - 1) / most_B[:, None], discount_1N, given_BN)
        apart = (sorted_BN[:, :, None] - sorted_BN[:, None, :]).clamp(-1e8, 1e8)
        losses = weights * F.logsigmoid(self.sigma * apart)
        if self.reduction_log == "binary":
            losses = losses / math.log(2)
        kept = losses[counts]
        return -kept.sum() / max(kept.numel(), 1)


class RankNetLoss(LambdaLoss):
    """A LambdaLoss whose pairs count alike.  Args: as LambdaLoss

    Source:  Burges et al. 2005, Learning to Rank using Gradient Descent
    """

    def __init__(
        self,
        model: Any,
        k: int | None = None,
        sigma: float = 1.0,
        eps: float = 1e-10,
        reduction_log: str = "binary",
        activation_fn: Activation | None = None,
        mini_batch_size: int | None = None,
    ) -> None:
        super().__init__(model, None, k, sigma, eps, reduction_log, activation_fn, mini_batch_size)
