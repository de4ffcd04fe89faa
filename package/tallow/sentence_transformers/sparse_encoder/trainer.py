"""SparseEncoderTrainer: a Trainer of texts in columns, and a loss of their weights."""

from __future__ import annotations

from typing import Any

from tallow.nn.module import Module
from tallow.sentence_transformers.sparse_encoder.callbacks import SpladeRegularizerWeightSchedulerCallback
from tallow.sentence_transformers.sparse_encoder.losses import SparseMultipleNegativesRankingLoss, SpladeLoss
from tallow.sentence_transformers.trainer import SentenceTransformerTrainer


class SparseEncoderTrainer(SentenceTransformerTrainer):
    """Trains a SparseEncoder. With a SpladeLoss the weights of its regularizers grow from 0 in the first third.

    Args:
        loss: of `sparse_encoder.losses`; SpladeLoss of SparseMultipleNegativesRankingLoss by default.
        others: as SentenceTransformerTrainer

    Example:
        samples = [{"anchor": "Where do cats sleep?", "positive": "Cats sleep on sofas."}]
        SparseEncoderTrainer(SparseEncoder("distilbert-base-uncased"), train_dataset=samples).train()
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        known = (each for each in self.callback_handler.callbacks if _is_schedule(each, self.loss))
        if isinstance(self.loss, SpladeLoss) and next(known, None) is None:
            self.add_callback(SpladeRegularizerWeightSchedulerCallback(self.loss))

    def default_loss(self, model: Any) -> Module:
        loss = SparseMultipleNegativesRankingLoss(model)
        return SpladeLoss(model, loss, document_regularizer_weight=3e-5, query_regularizer_weight=5e-5)


def _is_schedule(callback: Any, loss: Module) -> bool:
    return isinstance(callback, SpladeRegularizerWeightSchedulerCallback) and callback.loss is loss
