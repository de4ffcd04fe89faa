"""Text generation: choose the next token, feed it back to the model, and turn tokens into text as they come.

Everything here works on NumPy arrays and ints, not on Tensors: a step takes microseconds, where a small model computes
a whole token in less than a millisecond.

    tokens = tokenizer.encode("Once upon a time")
    sample = Sampler(temperature=0.8, top_p=0.9, seed=1)
    for piece in tokenizer.decode_stream(generate(model, tokens, max_tokens=256, sample=sample), previous=tokens):
        print(piece, end="", flush=True)

`generate_batch` continues several texts at once, `beam_search` searches for the likeliest continuation, `speculate`
lets a small model draft tokens for a large one, and `PromptCache` reuses the cache for the prefix of the last prompt.
`open_slots` decodes texts together that begin and end at different times, as those of a server do. `timed` measures
the speed of tokens.
"""

from typing import TYPE_CHECKING

from tallow.generation.batch import generate_batch
from tallow.generation.beam import Beam, beam_search
from tallow.generation.processors import (
    FrequencyPenalty,
    LogitBias,
    LogitsProcessor,
    PresencePenalty,
    RepetitionPenalty,
    Text,
)
from tallow.generation.prompt_cache import PromptCache
from tallow.generation.sampling import Sample, Sampler, greedy
from tallow.generation.sequence import Choice, LanguageModel, generate, generate_with_logprobs
from tallow.generation.slots import Slots, open_slots
from tallow.generation.speculative import PromptLookup, speculate
from tallow.generation.streaming import ByteTokenizer, decode_stream, until
from tallow.generation.timing import timed
from tallow.lazy_names import names_of

if TYPE_CHECKING:
    from tallow.generation.mirostat import Mirostat
    from tallow.generation.repeats import DryPenalty

__all__ = [
    "Beam",
    "ByteTokenizer",
    "Choice",
    "DryPenalty",
    "FrequencyPenalty",
    "LanguageModel",
    "LogitBias",
    "LogitsProcessor",
    "Mirostat",
    "PresencePenalty",
    "PromptCache",
    "PromptLookup",
    "RepetitionPenalty",
    "Sample",
    "Sampler",
    "Slots",
    "Text",
    "beam_search",
    "decode_stream",
    "generate",
    "generate_batch",
    "generate_with_logprobs",
    "greedy",
    "open_slots",
    "speculate",
    "timed",
    "until",
]

# Pages start without these.
_LAZY = {"DryPenalty": "tallow.generation.repeats:DryPenalty", "Mirostat": "tallow.generation.mirostat:Mirostat"}
__getattr__, __dir__ = names_of(__name__, _LAZY)
