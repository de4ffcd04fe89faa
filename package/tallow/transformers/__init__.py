"""transformers' names over tallow's own models, tokenizers and training.

    from tallow.transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-0.6B")
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-0.6B")

Names, arguments, defaults and results are those of transformers; the computation is that of `tallow.models`,
`tallow.text`, `tallow.generation` and `tallow.training`. Names are imported at first use.
"""

from __future__ import annotations

from tallow.lazy_names import names_of

# The modules that define the names.
HOMES = {
    "modeling_outputs": (
        "BaseModelOutput BaseModelOutputWithPast BaseModelOutputWithPooling "
        "BaseModelOutputWithPastAndCrossAttentions BaseModelOutputWithPoolingAndCrossAttentions "
        "CausalLMOutput CausalLMOutputWithPast CausalLMOutputWithCrossAttentions ImageClassifierOutput MaskedLMOutput "
        "ModelOutput MoeCausalLMOutputWithPast MoeModelOutputWithPast MultipleChoiceModelOutput "
        "NextSentencePredictorOutput QuestionAnsweringModelOutput Seq2SeqLMOutput Seq2SeqModelOutput "
        "Seq2SeqQuestionAnsweringModelOutput Seq2SeqSequenceClassifierOutput SequenceClassifierOutput "
        "SequenceClassifierOutputWithPast TokenClassifierOutput"
    ),
}
_MODULES = {"modeling_outputs": "tallow.transformers.modeling_outputs"}
_LAZY = {name: f"tallow.transformers.{home}:{name}" for home, names in HOMES.items() for name in names.split()}
_LAZY |= _MODULES

__all__ = list(_LAZY)

__getattr__, __dir__ = names_of(__name__, _LAZY)
