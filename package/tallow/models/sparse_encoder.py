"""Sparse vectors of texts by a masked language model (SPLADE): a weight for each token of the vocabulary,
most of them 0.

The weight of a token is the maximum over the positions of the text of log(1 + relu(logit)).

Letters: B texts of a batch, N texts, T positions, V vocabulary.

Source:  Formal et al. 2021, arXiv:2109.10086, equation 2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tallow.autograd.modes import no_grad
from tallow.models.bert import BertForMaskedLM
from tallow.models.distilbert import DistilBertForMaskedLM
from tallow.models.headed_encoder import HeadedEncoder
from tallow.models.modernbert import ModernBertForMaskedLM
from tallow.models.roberta import RobertaForMaskedLM
from tallow.models.text_batches import Vectors
from tallow.nn import functional as F
from tallow.text.tokenizer import Batch


class SparseEncoder(HeadedEncoder):
    """Maps texts to weights of tokens.

    Args:
        model: a masked language model, trained for it.
        max_length: the most tokens of a text; longer texts are truncated. None means the tokenizer's limit.

    Example:
        encoder = SparseEncoder.from_pretrained("naver/splade-cocondenser-ensembledistil")
        weights = encoder.encode(["A cat sleeps.", "A kitten naps."])
        weights[0] @ weights[1]
    """

    kinds = (BertForMaskedLM, DistilBertForMaskedLM, ModernBertForMaskedLM, RobertaForMaskedLM)
    lacks = "has no masked language modelling head"
    choose = "choose a SPLADE model"
    batch_tokens: ClassVar[int] = 512  # the logits of a batch take `vocab_size` numbers for each

    def encode(self, texts: str | Sequence[str], *, batch_size: int = 8) -> Vectors:
        """Return the weights of texts.

        Args:    batch_size: how many texts, of about the same length, to compute at once
        Shapes:  (N, V) for N texts, (V,) for a single string
        Raises:  ArgumentError for a batch_size below 1; TokenizerError for a text that cannot be encoded; NumericError
                 when a weight is NaN or infinite
        """
        rows = self.tokenize([texts] if isinstance(texts, str) else texts)
        weights = self.compute_each(rows, self.weigh, most=batch_size, width=self.model.config.vocab_size)
        return weights[0] if isinstance(texts, str) else weights

    def weigh(self, batch: Batch) -> Vectors:
        """Return the weights (B, V) of one batch of tokenized texts."""
        logits_BTV, mask_BT = self.run(batch)
        with no_grad():
            weights_BTV = F.relu(logits_BTV.float()).log1p() * mask_BT.unsqueeze(-1)
            return weights_BTV.amax(1).cpu().numpy()
