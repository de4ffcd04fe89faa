"""The base of models that generate text: the tokenizer, the settings of the folder, and constraints."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallow.errors import ArgumentError, TokenizerError
from tallow.generation import LogitsProcessor, PromptCache, Sample, Sampler, beam_search, generate, until
from tallow.generation.batch import BatchModel
from tallow.generation.rules import Renormalized
from tallow.generation.sequence import check_prompt
from tallow.models.generation_config import GenerationConfig
from tallow.text.text_tokenizer import TextTokenizer
from tallow.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # pages and commands that constrain nothing do not import it
    from tallow.generation.constrain import Constraint, Grammar, Vocabulary


class TextGeneration:
    """The files of a model that generates text, read at first use, and how its texts come to be."""

    config: Any
    folder: Path | None

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """The tokenizer of the folder that the model was loaded from, read at first use. It can be set.

        Raises:  TokenizerError when there is none; MissingPackageError
        """
        if self.folder is None:
            raise TokenizerError(
                "the model was not loaded from a folder, so it has no tokenizer",
                hint="set one: model.tokenizer = Tokenizer.from_pretrained(folder)",
            )
        return Tokenizer.from_pretrained(self.folder)

    @cached_property
    def generation_config(self) -> GenerationConfig:
        """The generation settings of the folder that the model was loaded from. They can be set.

        Raises:  CheckpointError when its `generation_config.json` is invalid
        Warns:   TallowWarning as `GenerationConfig.from_folder`
        """
        return GenerationConfig.from_folder(self.folder)

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a text, from the model's config, its `generation_config.json` and its tokenizer.

        Raises:  CheckpointError, TokenizerError when one of those files is invalid
        """
        return frozenset([*self.config.eos_token_id, *self.generation_config.eos_token_id]) | self.tokenizer.stop_ids

    def write(
        self,
        model: BatchModel,
        prompt: Sequence[int],
        *,
        max_tokens: int | None,
        sample: Sample | None,
        num_beams: int | None,
        processors: Sequence[LogitsProcessor] = (),
        source: Sequence[int] | None = None,
        cache: PromptCache | None = None,
        cache_dtype: Any = None,
    ) -> Iterator[int]:
        """Continue a prompt as `generation_config.json` says, where the arguments do not, and yield ids.

        Args:
            model: computes logits.
            max_tokens: None means as the file says, or else as many as the context holds.
            source: what the encoder reads; None for a model without one.
            cache: for one text without beams.
            sample, num_beams, processors, cache_dtype: as `CausalLM.generate_text`

        Raises:  as `generate`; ArgumentError for num_beams with a sample or a cache
        """
        config = self.generation_config
        if num_beams is None:
            num_beams = 1 if sample is not None or config.do_sample or cache is not None else config.num_beams
            if sample is None and cache is not None:
                config.warn_of_beams("a chat with a PromptCache")
        elif num_beams != 1 and (sample is not None or cache is not None):
            raise ArgumentError(
                f"num_beams={num_beams} with {'sampling' if cache is None else 'a PromptCache'}", hint="use one of them"
            )
        most = config.most_tokens(len(prompt)) if max_tokens is None else max_tokens
        room = check_prompt(model, prompt, most)
        entries = config if sample is None else config.without_sampling
        rules = [*entries.rules(prompt, room, self.stop_ids, model.vocab_size, source), *processors]
        options: dict[str, Any] = {"stop_ids": self.stop_ids, "processors": rules}
        if num_beams != 1:
            if config.renormalize_logits:
                rules.append(Renormalized())
            options |= {"length_penalty": config.length_penalty, "early_stopping": config.early_stopping}
            beams = beam_search(model, prompt, num_beams=num_beams, max_tokens=most, cache_dtype=cache_dtype, **options)
            return iter(beams[0].tokens)
        options["sample"] = sample or Sampler(**config.sampling | {"repetition_penalty": 1.0})  # the penalty is a rule
        # A limit of the file may be much longer than the text: the cache grows as needed.
        if cache is None:
            tokens = generate(model, prompt, max_tokens=max_tokens, cache_dtype=cache_dtype, **options)
        else:
            tokens = cache.generate(prompt, max_tokens=max_tokens, **options)
        return islice(tokens, room)

    def _constrained(self, processors: Sequence[LogitsProcessor], grammar: Grammar | None) -> Sequence[LogitsProcessor]:
        return processors if grammar is None else [*processors, self.constraint(grammar)]

    def _until(self, pieces: Iterable[str], stop: Collection[str]) -> Iterator[str]:
        """Yield pieces of text up to the first stop string of the caller or of `generation_config.json`."""
        stop = (stop,) if isinstance(stop, str) else stop
        return until(pieces, [*stop, *self.generation_config.stop_strings])

    def constraint(self, grammar: Grammar) -> Constraint:
        """Return the logits processor that keeps texts within a grammar, for `generate` and its relatives.

        Raises:  TokenizerError as `tokenizer.token_bytes`; ArgumentError for a model without stop ids
        """
        from tallow.generation.constrain import Constraint

        return Constraint(grammar, self._vocabulary, self.stop_ids)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """The bytes of the tokenizer's tokens, for constraints."""
        from tallow.generation.constrain import Vocabulary

        return Vocabulary(self.tokenizer.token_bytes())
