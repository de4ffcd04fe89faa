"""Heads that follow by rule from other classes of a family; each class is made at its first use.

    BertForMultipleChoice, ...           the family's classifier of texts with one logit, the score of a text
    MistralForTokenClassification, ...   the heads that all decoders share
    MPNetForTokenClassification, ...     BERT's or RoBERTa's heads, over a relative of BERT
    MBartForSequenceClassification, ...  the heads of BART and T5 that do not write, over a relative

Source:  names as in transformers
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tallow import models
from tallow.lazy_names import missing
from tallow.models.decoders.decoder_heads import (
    DecoderForQuestionAnswering,
    DecoderForSequenceClassification,
    DecoderForTokenClassification,
)
from tallow.models.encoders.bert import BertForSequenceClassification, BertPretrainedModel

# Families whose checkpoints have other names than the rest: of the decoder in the head for answers, and of the last
# layer of the head for tokens.
TRANSFORMER: tuple[str, ...] = ("Arcee", "Exaone4", "Llama", "Ministral", "Qwen2", "Qwen3", "Qwen3Moe", "Qwen3Next")
TRANSFORMER += ("SeedOss", "SmolLM3")
CLASSIFIER = ("Falcon", "GPT2", "GPTNeoX")
BERT_NAMES = {"BertForCausalLM": "BertLMHeadModel"}
DECODERS: dict[str, type] = {
    "ForSequenceClassification": DecoderForSequenceClassification,
    "ForTokenClassification": DecoderForTokenClassification,
    "ForQuestionAnswering": DecoderForQuestionAnswering,
}


class ForMultipleChoice:
    """Scores texts, of which one is to be chosen: logits (B, 1) of texts (B, T). The base of each family's class.

    Args:    as the family's classifier of texts, whose labels have no effect
    """

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(replace(config, labels=("score",)), device, dtype)  # type: ignore[call-arg]


def _made(name: str) -> type:
    family = name.partition("For")[0]
    head = name.removeprefix(family)
    contents: dict[str, Any] = {"__module__": __name__}
    if family in models.PAIR_RELATIVES:
        like: Any = getattr(models, models.PAIR_RELATIVES[family][0] + head)
        contents |= {"__doc__": like.__doc__, "config_class": getattr(models, f"{family}Config")}
        return type(name, (like,), contents)
    base: Any = getattr(models, f"{family}Model")
    if head == models.CHOICE:
        classifier: Any = getattr(models, f"{family}ForSequenceClassification")
        parts: tuple[type, ...] = (classifier,)
        if issubclass(base, BertPretrainedModel) and not issubclass(classifier, BertForSequenceClassification):
            parts = (base.__bases__[0], BertForSequenceClassification)  # BERT's relatives score the pooled text, too
        contents["__doc__"] = ForMultipleChoice.__doc__
        return type(name, (ForMultipleChoice, *parts), contents)
    if issubclass(base, BertPretrainedModel):
        shared: Any = getattr(models, BERT_NAMES.get(base.head_family + head, base.head_family + head))
        contents["__doc__"] = shared.__doc__
        return type(name, (base.__bases__[0], shared), contents)
    kind = DECODERS[head]
    contents |= {"__doc__": f"{kind.__doc__}", "model_class": base}
    if head == "ForQuestionAnswering" and family in TRANSFORMER:
        contents["base_model_prefix"] = "transformer"
    if head == "ForTokenClassification" and family in CLASSIFIER:
        contents["classifier_name"] = "classifier"
    return type(name, (kind,), contents)


def __getattr__(name: str) -> Any:
    if name not in models.DERIVED:
        raise missing(__name__, name)
    made = globals()[name] = _made(name)
    return made
