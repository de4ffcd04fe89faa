"""Text generation: choosing the next token, the loops that feed it back, and text from tokens as they come.

Everything here works on NumPy arrays and ints, not on Tensors: a step costs microseconds, and a small model's whole
token takes less than a millisecond.

    tokens = tokenizer.encode("Once upon a time")
    sample = Sampler(temperature=0.8, top_p=0.9, seed=1)
    for piece in decode_stream(tokenizer, generate(model, tokens, max_tokens=256, sample=sample, stop_ids={1, 2})):
        print(piece, end="", flush=True)

`generate_batch` continues several texts at once, `beam_search` looks for the likeliest continuation, `speculate` lets a
small model guess what a large one will say, and `PromptCache` reads no prompt twice.
"""

from tallow.generation.batch import generate_batch
from tallow.generation.beam import Beam, beam_search
from tallow.generation.processors import FrequencyPenalty, LogitsProcessor, PresencePenalty, RepetitionPenalty, Text
from tallow.generation.prompt_cache import PromptCache
from tallow.generation.sampling import Sample, Sampler, greedy
from tallow.generation.sequence import Choice, LanguageModel, generate, generate_with_logprobs
from tallow.generation.speculative import speculate
from tallow.generation.streaming import ByteTokenizer, decode_stream, until

__all__ = [
    "Beam",
    "ByteTokenizer",
    "Choice",
    "FrequencyPenalty",
    "LanguageModel",
    "LogitsProcessor",
    "PresencePenalty",
    "PromptCache",
    "RepetitionPenalty",
    "Sample",
    "Sampler",
    "Text",
    "beam_search",
    "decode_stream",
    "generate",
    "generate_batch",
    "generate_with_logprobs",
    "greedy",
    "speculate",
    "until",
]
