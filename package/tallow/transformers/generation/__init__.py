"""`generate` under transformers' names, over `tallow.generation`."""

from __future__ import annotations

from tallow.lazy_names import names_of

# The modules that define the names.
HOMES = {
    "configuration_utils": "GenerationConfig GenerationMode",
    "guidance": "ClassifierFreeGuidanceLogitsProcessor UnbatchedClassifierFreeGuidanceLogitsProcessor",
    "logits_process": (
        "AlternatingCodebooksLogitsProcessor EncoderNoRepeatNGramLogitsProcessor "
        "EncoderRepetitionPenaltyLogitsProcessor ExponentialDecayLengthPenalty ForcedBOSTokenLogitsProcessor "
        "ForcedEOSTokenLogitsProcessor InfNanRemoveLogitsProcessor LogitNormalization LogitsProcessor "
        "LogitsProcessorList MinLengthLogitsProcessor MinNewTokensLengthLogitsProcessor NoBadWordsLogitsProcessor "
        "NoRepeatNGramLogitsProcessor PrefixConstrainedLogitsProcessor RepetitionPenaltyLogitsProcessor "
        "SequenceBiasLogitsProcessor SuppressTokensAtBeginLogitsProcessor SuppressTokensLogitsProcessor"
    ),
    "mixin": "GenerationMixin",
    "outputs": (
        "GenerateBeamDecoderOnlyOutput GenerateBeamEncoderDecoderOutput GenerateDecoderOnlyOutput "
        "GenerateEncoderDecoderOutput"
    ),
    "stopping_criteria": (
        "EosTokenCriteria MaxLengthCriteria MaxTimeCriteria StopStringCriteria StoppingCriteria StoppingCriteriaList "
        "validate_stopping_criteria"
    ),
    "streamers": "AsyncTextIteratorStreamer BaseStreamer TextIteratorStreamer TextStreamer",
    "whisper": "WhisperGenerationMixin WhisperTimeStampLogitsProcessor",
    "watermarking": (
        "BaseWatermarkingConfig SynthIDTextWatermarkLogitsProcessor SynthIDTextWatermarkingConfig "
        "WatermarkLogitsProcessor WatermarkingConfig"
    ),
    "warpers": (
        "EpsilonLogitsWarper EtaLogitsWarper MinPLogitsWarper TemperatureLogitsWarper TopHLogitsWarper "
        "TopKLogitsWarper TopPLogitsWarper TypicalLogitsWarper"
    ),
}
LAZY = {
    name: f"tallow.transformers.generation.{home}:{name}" for home, names in HOMES.items() for name in names.split()
}

# Modules of transformers whose names have other homes here.
LAZY["utils"] = "tallow.transformers.generation.mixin"

__all__ = list(LAZY)

__getattr__, __dir__ = names_of(__name__, LAZY)
