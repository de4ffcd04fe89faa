"""Texts that continue a prompt, and answers to chats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import tallow as tl
from tallow.errors import ArgumentError
from tallow.lazy_names import import_name
from tallow.transformers.pipelines.base import Chat, Pipeline
from tallow.transformers.pipelines.generating import generation_arguments, set_arguments

IDS, NEW, FULL = "ids", "new", "full"  # what a result holds


class TextGenerationPipeline(Pipeline):
    """Continues prompts: [{"generated_text": ...}]. A chat, a list of messages, comes back with an answer.

    Args of the constructor and of calls:
        return_full_text: with the prompt; True by default.
        return_tensors: return `generated_token_ids` instead of a text.
        return_text: return a text, which is the default.
        clean_up_tokenization_spaces, skip_special_tokens: as in the tokenizer's `decode`.
        prefix: written before each prompt, and left out of the result.
        handle_long_generation: "hole" cuts the beginning of a prompt that leaves too little room.
        stop_sequence: strings that end a text; they are part of it.
        continue_final_message: continue the last message of a chat; by default if it is the assistant's.
        tools, documents: for the chat template.
        add_special_tokens, padding, truncation, max_length, tokenizer_encode_kwargs: arguments of the tokenizer.
        assistant_model: a smaller model of the same vocabulary, or its name; see `generate`.
        Others are of `generate`. Without a generation config: max_new_tokens=256, do_sample=True, temperature=0.7.
    """

    defaults: ClassVar[Mapping[str, Any]] = {"max_new_tokens": 256, "do_sample": True, "temperature": 0.7}

    def __init__(self, model: Any, tokenizer: Any = None, **arguments: Any) -> None:
        assistant = arguments.get("assistant_model")
        if isinstance(assistant, str):
            auto = import_name("tallow.transformers:AutoModelForCausalLM")
            arguments["assistant_model"] = auto.from_pretrained(assistant)
        super().__init__(model, tokenizer, **arguments)
        self.tokenizer.padding_side = "left"  # the model continues the last position

    def _sanitize_parameters(
        self,
        return_full_text: bool | None = None,
        return_tensors: bool | None = None,
        return_text: bool | None = None,
        stop_sequence: Any = None,
        max_length: int | None = None,
        **arguments: Any,
    ) -> Any:
        chosen = {"return_full_text": return_full_text, "return_tensors": return_tensors, "return_text": return_text}
        if len(given := [name for name, value in chosen.items() if value is not None]) > 1:
            raise ArgumentError(f"{' and '.join(given)} exclude each other", hint="pass one of them")
        if return_full_text is not None:
            arguments["returned"] = FULL if return_full_text else NEW
        if return_tensors:
            arguments["returned"] = IDS
        if stop_sequence is not None:
            arguments["stop_strings"] = [stop_sequence] if isinstance(stop_sequence, str) else stop_sequence
        if {"stop_strings", "assistant_tokenizer"} & arguments.keys():
            arguments["tokenizer"] = self.tokenizer
        before, during, after = super()._sanitize_parameters(**arguments)
        if max_length is not None:  # of the tokenizer if it truncates, and of `generate`
            before["max_length"] = during["max_length"] = max_length
        if arguments.get("handle_long_generation") == "hole":
            before["generate_kwargs"] = during
        return before, during, after

    def __call__(self, text_inputs: Any, **arguments: Any) -> Any:  # type: ignore[override]
        """Return the texts for a prompt or a chat: a list of dicts with `generated_text`; for several, lists of these.

        Raises:  as `Pipeline`, and as the model's `generate`
        """
        return super().__call__(text_inputs, **arguments)

    def preprocess(
        self,
        prompt: str | Chat,
        prefix: str | None = None,
        handle_long_generation: str | None = None,
        add_special_tokens: bool | None = None,
        padding: Any = None,
        truncation: Any = None,
        max_length: int | None = None,
        tokenizer_encode_kwargs: dict[str, Any] | None = None,
        continue_final_message: bool | None = None,
        tools: Any = None,
        documents: Any = None,
        generate_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        options = {"add_special_tokens": add_special_tokens, "padding": padding, "truncation": truncation}
        options |= {"max_length": max_length if truncation else None}
        options = {name: value for name, value in options.items() if value is not None} | (
            tokenizer_encode_kwargs or {}
        )
        if isinstance(prompt, Chat):
            options.pop("add_special_tokens", None)  # the template writes them
            continues = continues_last(prompt, continue_final_message)
            encoded = self.tokenizer.apply_chat_template(
                prompt.messages,
                add_generation_prompt=not continues,
                continue_final_message=continues,
                return_dict=True,
                return_tensors="pt",
                tools=tools,
                documents=documents,
                **options,
            )
        else:
            if not isinstance(prompt, str):
                raise ArgumentError(
                    f"a prompt is {type(prompt).__name__}: {prompt!r:.80}",
                    hint='pass a string, or a chat: a list of {"role": ..., "content": ...}',
                )
            prefix = getattr(self.model.config, "prefix", None) if prefix is None else prefix
            encoded = self.tokenizer((prefix or "") + prompt, return_tensors="pt", **options)
        row = {name: encoded[name] for name in ("input_ids", "attention_mask") if name in encoded}
        if handle_long_generation is not None:
            row = self._shortened(row, handle_long_generation, generate_kwargs or {})
        return {**row, "prompt": prompt}

    def _shortened(self, row: dict[str, Any], how: str, given: dict[str, Any]) -> dict[str, Any]:
        """Cut the beginning of a prompt so that the model has room for new tokens."""
        if how != "hole":
            raise ArgumentError(f"handle_long_generation={how!r:.80}", hint='use "hole", or leave it out')
        length, limit = row["input_ids"].shape[-1], self.tokenizer.model_max_length
        known = set_arguments(self.model, generation_arguments(self.model, self.tokenizer, given, self.defaults))
        new = known["max_new_tokens"] if known.get("max_new_tokens") is not None else known["max_length"] - length
        if not 0 <= new < limit:
            raise ArgumentError(f"{new} new tokens with texts of {limit}", hint="pass a smaller max_new_tokens")
        if length + new <= limit:
            return row
        return {name: value[:, new - limit :] for name, value in row.items()}

    def _forward(self, model_inputs: Any, **generate_kwargs: Any) -> Any:
        ids, mask = model_inputs["input_ids"], model_inputs.get("attention_mask")
        count = ids.shape[0]
        if ids.shape[1] == 0:  # `generate` starts with the first token of texts
            ids = mask = None
        arguments = generation_arguments(self.model, self.tokenizer, generate_kwargs, self.defaults)
        written = self.model.generate(input_ids=ids, attention_mask=mask, **arguments)
        others = {}
        if isinstance(written, Mapping):
            others = {name: value for name, value in written.items() if name not in ("sequences", "past_key_values")}
            written = written["sequences"]
        each = written.shape[0] // count
        result = {"sequences": written.reshape(count, each, *written.shape[1:]), "input_ids": ids}
        for name, value in others.items():
            rows = _by_rows(value, written.shape[0])
            if rows is not None:
                result[name] = rows.reshape(count, each, *rows.shape[1:])
        return result

    def postprocess(
        self,
        model_outputs: Any,
        returned: str = FULL,
        clean_up_tokenization_spaces: bool | None = None,
        skip_special_tokens: bool | None = None,
        continue_final_message: bool | None = None,
        tools: Any = None,
    ) -> list[dict[str, Any]]:
        sequences = model_outputs["sequences"][0].tolist()
        if returned == IDS:
            return [{"generated_token_ids": ids} for ids in sequences]
        ids, prompt = model_outputs["input_ids"], model_outputs["prompt"]
        begin = 0 if ids is None else ids.shape[-1]
        others = {
            name: value[0].tolist()
            for name, value in model_outputs.items()
            if isinstance(value, tl.Tensor) and name not in ("sequences", "input_ids", "attention_mask")
        }
        template = getattr(self.tokenizer, "response_template", None)  # its delimiters may be special
        options = {"skip_special_tokens": skip_special_tokens is not False and not template}
        if clean_up_tokenization_spaces is not None:
            options["clean_up_tokenization_spaces"] = clean_up_tokenization_spaces
        records = []
        for i, sequence in enumerate(sequences):
            text = self.tokenizer.decode(sequence[begin:], **options)
            if returned == FULL:
                answer = None
                if (
                    template is not None
                    and isinstance(prompt, Chat)
                    and not continues_last(prompt, continue_final_message)
                ):
                    before = self.tokenizer.decode(sequence[:begin], **options)
                    answer = self.tokenizer.parse_response(text, prefix=before, tools=tools)
                text = completed(prompt, text, continue_final_message, answer)
            records.append({"generated_text": text} | {name: values[i] for name, values in others.items()})
        return records


def continues_last(chat: Chat, asked: bool | None) -> bool:
    """Return whether the answer continues the last message: if asked, or else if that is the assistant's."""
    return chat.messages[-1]["role"] == "assistant" if asked is None else asked


def completed(prompt: str | Chat, text: str, continues: bool | None = None, answer: Any = None) -> Any:
    """Return a prompt with the text that continues it; a chat with an answer, or with a longer last message.

    Args:  answer: the message that the text is; None for one of content alone
    """
    if isinstance(prompt, str):
        return prompt + text
    *before, last = prompt.messages
    if continues_last(prompt, continues):
        return [*before, {"role": last["role"], "content": last["content"] + text}]
    return [*before, last, {"role": "assistant", "content": text} if answer is None else answer]


def _by_rows(value: Any, rows: int) -> Any:
    """Return a tensor of values for each row; None if a value is not for rows."""
    if isinstance(value, tl.Tensor) and value.ndim and value.shape[0] == rows:
        return value
    if isinstance(value, tuple) and value and isinstance(value[0], tl.Tensor) and value[0].shape[0] == rows:
        return tl.stack(value, dim=1)  # one tensor for each step
    return None
