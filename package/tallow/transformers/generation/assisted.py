"""Assisted decoding: a small model, or the prompt itself, drafts tokens that the model checks several at once.

Texts are those of the model alone, so whatever `speculate` does not take is left to the other loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.core.tensor import wrap
from tallow.generation.processors import Logits, LogitsProcessor, Text
from tallow.generation.sampling import Sampler, greedy
from tallow.generation.speculative import ModelDraft, PromptLookup, check_draft, speculate
from tallow.models.causal_lm import CausalLM
from tallow.transformers.generation.logits_process import RowProcessor
from tallow.transformers.generation.openings import is_fused
from tallow.transformers.generation.requests import Request
from tallow.transformers.generation.search import Plan
from tallow.transformers.generation.stopping_criteria import RowCriteria, ending


def assisted_texts(
    model: Any, request: Request, plan: Plan, texts: list[Text], assistant: Any, assistant_tokenizer: Any
) -> bool:
    """Extend the only text in place until it has ended; return False if another loop has to.

    Raises:  ArgumentError for an assistant with another vocabulary, unless it has a tokenizer, and a short context
    """
    core, config = model, request.config
    is_plain = isinstance(core, CausalLM) and is_fused(model, request, plan.records.wanted) and request.cache is None
    rows_only = all(isinstance(each, RowProcessor) for each in plan.processors)
    rows_only &= all(isinstance(each, RowCriteria) for each in plan.criteria)
    is_one = len(texts) == 1 and request.padding is None
    if not (is_plain and rows_only and is_one) or plan.closing or config.return_dict_in_generate:
        return False
    (text,) = texts
    processors = [_row_rule(each) for each in plan.processors]
    draft = _draft(core, config, assistant, assistant_tokenizer, processors)
    if draft is None:
        return False
    tokens = speculate(
        core,
        draft,
        text,
        max_tokens=config.max_length - len(text),
        lookahead=config.prompt_lookup_num_tokens or config.num_assistant_tokens,
        sample=Sampler(temperature=0) if plan.sample is greedy else plan.sample,  # type: ignore[arg-type]
        processors=processors,
    )
    for token in tokens:
        text.append(token)
        if plan.streamer is not None:
            plan.streamer.put(wrap(np.array([token], np.int64)))
        if all(ending(plan.criteria, texts)):
            break
    return True


def _draft(
    core: Any, config: Any, assistant: Any, tokenizer: Any, processors: list[LogitsProcessor]
) -> ModelDraft | PromptLookup | None:
    if assistant is None:
        if config.prompt_lookup_num_tokens is None:
            return None  # assistant_early_exit: the whole model gives the same text
        return PromptLookup(core.vocab_size, config.max_matching_ngram_size or 2)
    other = assistant
    if not isinstance(other, CausalLM) or (tokenizer is not None and other.vocab_size != core.vocab_size):
        return None  # an assistant with other tokens: the model alone gives the same text
    check_draft(core, other, config.max_length - 1)
    least = config.assistant_confidence_threshold or 0.0
    return ModelDraft(other, config.max_length - 1, processors, least)


def _row_rule(processor: RowProcessor) -> LogitsProcessor:
    def rule(logits_V: Logits, tokens: Any) -> Logits:
        return processor.change_all([tokens], logits_V[None])[0]

    return rule
