"""Texts made of texts by a model with an encoder and a decoder: translations, summaries and others. Version 5 of
transformers took these tasks out; arguments and results are those of version 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.transformers.pipelines.base import Pipeline
from tallow.transformers.pipelines.generating import generation_arguments


class Text2TextGenerationPipeline(Pipeline):
    """Writes a text for a text: [{"generated_text": ...}].

    Args of the constructor and of calls:
        return_tensors: return `generated_token_ids` instead of a text.
        return_text: return a text, which is the default.
        clean_up_tokenization_spaces: as in the tokenizer's `decode`.
        truncation: as in the tokenizer.
        stop_sequence: a string that ends a text.
        Others are of `generate`. Without a generation config: max_new_tokens=256, num_beams=4. A config that has
        `task_specific_params` for the task sets others, and may have a prefix for texts, as T5's has.
    """

    result_name: ClassVar[str] = "generated"
    defaults: ClassVar[Mapping[str, Any]] = {"max_new_tokens": 256, "num_beams": 4}

    def __init__(self, model: Any, tokenizer: Any = None, task: str = "", **arguments: Any) -> None:
        self._of_task = dict((getattr(model.config, "task_specific_params", None) or {}).get(task, {}))
        own = getattr(model.config, "prefix", None)
        self.prefix: str = self._of_task.pop("prefix", own) or ""
        super().__init__(model, tokenizer, task=task, **arguments)

    def __call__(self, inputs: Any, **arguments: Any) -> Any:
        """Return the texts for a text; for a list, one for each, or lists of them if there are several for each.

        Raises:  as `Pipeline`, and as the model's `generate`
        """
        result = super().__call__(inputs, **arguments)
        if isinstance(inputs, list) and all(len(each) == 1 for each in result):
            return [each[0] for each in result]
        return result

    def _sanitize_parameters(self, **arguments: Any) -> Any:
        return_tensors, return_text = (arguments.pop(name, None) for name in ("return_tensors", "return_text"))
        stop_sequence = arguments.pop("stop_sequence", None)
        if return_tensors is not None and return_text is None:
            arguments["returns_ids"] = return_tensors
        if stop_sequence is not None:
            arguments["stop_strings"] = [stop_sequence] if isinstance(stop_sequence, str) else stop_sequence
            arguments["tokenizer"] = self.tokenizer
        return super()._sanitize_parameters(**arguments)

    def preprocess(self, inputs: str, truncation: Any = False) -> Any:
        if not isinstance(inputs, str):
            raise ArgumentError(
                f"{self.task} needs a text, not {inputs!r:.80}", hint="pass a string, or a list of them"
            )
        encoded = self.tokenizer(self.prefix + inputs, return_tensors="pt", truncation=truncation)
        return {name: encoded[name] for name in ("input_ids", "attention_mask")}

    def _forward(self, model_inputs: Any, **generate_kwargs: Any) -> Any:
        given = {**self._of_task, **generate_kwargs}
        arguments = generation_arguments(self.model, self.tokenizer, given, self.defaults)
        self.check_lengths(model_inputs["input_ids"].shape[-1], arguments)
        written = self.model.generate(
            **{name: model_inputs[name] for name in ("input_ids", "attention_mask")}, **arguments
        )
        written = written["sequences"] if isinstance(written, Mapping) else written
        count = model_inputs["input_ids"].shape[0]
        return {"output_ids": written.reshape(count, written.shape[0] // count, *written.shape[1:])}

    def check_lengths(self, length: int, arguments: Mapping[str, Any]) -> None:
        """Warn of lengths that do not fit the task."""

    def postprocess(
        self, model_outputs: Any, returns_ids: bool = False, clean_up_tokenization_spaces: bool | None = None
    ) -> list[dict[str, Any]]:
        rows = model_outputs["output_ids"][0]
        if returns_ids:
            return [{f"{self.result_name}_token_ids": row} for row in rows]
        options = (
            {}
            if clean_up_tokenization_spaces is None
            else {"clean_up_tokenization_spaces": clean_up_tokenization_spaces}
        )
        decode = self.tokenizer.decode
        return [{f"{self.result_name}_text": decode(row.tolist(), skip_special_tokens=True, **options)} for row in rows]


class SummarizationPipeline(Text2TextGenerationPipeline):
    """Summarises texts: [{"summary_text": ...}]; as `Text2TextGenerationPipeline`.

    Warns:  TallowWarning for a max_length that is longer than the text, and one below min_length
    """

    result_name = "summary"

    def check_lengths(self, length: int, arguments: Mapping[str, Any]) -> None:
        least, most = arguments.get("min_length"), arguments.get("max_length")
        if most is not None and least is not None and most < least:
            warn(f"max_length={most} is below min_length={least}", TallowWarning)
        if most is not None and length < most:
            warn(
                f"max_length={most}, but the text has {length} tokens: a summary is shorter than its text",
                TallowWarning,
            )


class TranslationPipeline(Text2TextGenerationPipeline):
    """Translates texts: [{"translation_text": ...}]; as `Text2TextGenerationPipeline`.

    Raises:  ArgumentError for `src_lang` and `tgt_lang`: the models here have no codes of languages but in the text
    """

    result_name = "translation"

    def _sanitize_parameters(self, **arguments: Any) -> Any:
        if {"src_lang", "tgt_lang"} & arguments.keys():
            raise ArgumentError(
                f"{type(self.model).__name__} takes no src_lang and tgt_lang",
                hint="leave them out; a Marian for several languages reads the language in the text: '>>fra<< Hello'; "
                "a T5 reads the task, of pipeline('translation_en_to_fr', ...)",
            )
        return super()._sanitize_parameters(**arguments)
