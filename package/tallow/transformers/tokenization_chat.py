"""Conversations to ids, by the tokenizer's chat template.

Source:  transformers 5.24, `PreTrainedTokenizerBase.apply_chat_template` and `parse_response`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tallow.errors import ArgumentError, MissingNameError, warn
from tallow.text.chat import ChatTemplate, Message, choose_template
from tallow.transformers.batch_encoding import BatchEncoding
from tallow.transformers.control_tokens import control_tokens, encode_marked, marked
from tallow.transformers.padding import TruncationStrategy, lengths_of
from tallow.transformers.special_tokens import SpecialTokens
from tallow.transformers.tensor_types import TensorType, plain

Span = tuple[int, int]


class ChatMethods(SpecialTokens):
    """The methods of a tokenizer that read conversations."""

    chat_template: Any
    chat_control_tokens: Sequence[str] | None
    response_template: Any
    _compiled: ChatTemplate | None = None
    _without_added: Any = None

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        sanitize_control_tokens: bool = False,
        padding: Any = False,
        truncation: Any = False,
        max_length: int | None = None,
        return_tensors: str | TensorType | None = None,
        return_dict: bool = True,
        return_assistant_tokens_mask: bool = False,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return a conversation as a model was trained on it: ids by name, or the text.

        Args:
            conversation: messages, as {"role": "user", "content": "Hello"}; or a list of conversations.
            tools: functions that the model may call: JSON schemas, or Python functions with annotations and docstrings.
            documents: texts that the model may quote, as {"title": ..., "text": ...}.
            chat_template: the source of a template, or the name of one of the tokenizer's.
            add_generation_prompt: end with the start of an answer.
            continue_final_message: end within the last message, so that the model continues its `content`, or the text
                of another key.
            tokenize: return ids; False returns the text.
            sanitize_control_tokens: control tokens in messages, tools, documents and `kwargs` are encoded as text: the
                special tokens, and of the other added ones `chat_control_tokens`, or those that the template writes.
            padding, truncation, max_length, return_tensors: as in the call.
            return_dict: return what the call returns; False returns only the ids.
            return_assistant_tokens_mask: add `assistant_masks`, 1 for the tokens of answers, which the template marks
                by {% generation %}.
            tokenizer_kwargs: further arguments of the call.
            kwargs: further variables that the template reads, such as enable_thinking.

        Raises:  ArgumentError without a template or messages, for messages that the template refuses, and for arguments
                 that contradict each other; TokenizerError for a template that fails
        """
        if sanitize_control_tokens and (return_assistant_tokens_mask or not tokenize):
            raise ArgumentError("sanitize_control_tokens needs tokenize=True, and return_assistant_tokens_mask=False")
        if return_assistant_tokens_mask and not (tokenize and return_dict):
            raise ArgumentError("return_assistant_tokens_mask needs tokenize=True and return_dict=True")
        if return_assistant_tokens_mask and continue_final_message:
            raise ArgumentError("return_assistant_tokens_mask with continue_final_message", hint="use one of them")
        template = self._template(chat_template, tools)
        if return_assistant_tokens_mask and "generation" not in template.source:
            warn("return_assistant_tokens_mask: the chat template marks no answers; it has no {% generation %}")
        chats, is_batch = _chats(conversation)
        if sanitize_control_tokens:
            tokens = control_tokens(self, template)
            chats, tools, documents, kwargs = (marked(each, tokens) for each in (chats, tools, documents, kwargs))
        options = {"tools": tools, "documents": documents, "add_generation_prompt": add_generation_prompt, **kwargs}
        rendered = [
            template.render_marked(chat, continue_final_message=continue_final_message, **options) for chat in chats
        ]
        texts = [text for text, _ in rendered]
        if not tokenize:
            return texts if is_batch else texts[0]
        settings = {"add_special_tokens": False, "return_tensors": return_tensors} | dict(tokenizer_kwargs or {})
        call: Any = self
        if sanitize_control_tokens:
            del settings["add_special_tokens"]
            rows = self._encode_marked(texts, padding, truncation, max_length)
            as_rows = is_batch or return_tensors is not None
            ids = {"input_ids": rows if as_rows else rows[0]}
            encoded = call.pad(ids, padding=padding, max_length=max_length, **settings)
            return encoded if return_dict else encoded["input_ids"]
        encoded = call(
            texts if is_batch else texts[0], padding=padding, truncation=truncation, max_length=max_length, **settings
        )
        if return_assistant_tokens_mask:
            masks = [_mask(encoded, i, spans) for i, (_, spans) in enumerate(rendered)]
            encoded["assistant_masks"] = masks if is_batch or return_tensors else masks[0]
            encoded.convert_to_tensors(return_tensors)
        return encoded if return_dict else encoded["input_ids"]

    def _encode_marked(self, texts: Sequence[str], padding: Any, truncation: Any, most: int | None) -> list[list[int]]:
        """Return the ids of conversations with marks, cut as the arguments of a call say."""
        lengths = lengths_of(self, padding, truncation, most)
        rows = [encode_marked(self, text) for text in texts]
        if lengths.truncation is TruncationStrategy.DO_NOT_TRUNCATE or lengths.max_length is None:
            return rows
        of_end = self.truncation_side == "left"
        return [ids[-lengths.max_length :] if of_end else ids[: lengths.max_length] for ids in rows]

    def get_chat_template(self, chat_template: str | None = None, tools: Sequence[Any] | None = None) -> str:
        """Return the source of a chat template: the one given, the one of this name, or the tokenizer's.

        Args:    tools: a tokenizer with several templates has one for conversations with tools
        Raises:  ArgumentError if there is none
        """
        own = self.chat_template
        if isinstance(own, Mapping):
            if chat_template in own or chat_template is None:
                entries = [{"name": name, "template": source} for name, source in own.items()]
                return choose_template(entries, name=chat_template, tools=tools is not None) or ""
        elif chat_template is None:
            if own is None:
                raise ArgumentError(
                    "the tokenizer has no chat_template",
                    hint="pass chat_template=, or load the tokenizer of a chat model",
                )
            return own
        return chat_template

    def encode_message_with_chat_template(
        self, message: Message, conversation_history: Sequence[Message] | None = None, **kwargs: Any
    ) -> list[int]:
        """Return the ids that a message adds to a conversation.

        Args:    kwargs: further arguments of `apply_chat_template`
        Raises:  ArgumentError for add_generation_prompt
        """
        if "add_generation_prompt" in kwargs:
            raise ArgumentError(
                "encode_message_with_chat_template with add_generation_prompt", hint="add it afterwards"
            )
        history = list(conversation_history or ())
        ids = self.apply_chat_template([*history, message], return_dict=False, **kwargs)
        if not history:
            return ids
        before = self.apply_chat_template(history, return_dict=False, **kwargs)
        same = (i for i, (old, new) in enumerate(zip(before, ids, strict=False)) if old != new)
        return ids[next(same, min(len(before), len(ids))) :]

    def parse_response(self, response: Any, schema: Any = None, *, prefix: Any = None, tools: Any = None) -> Any:
        """Return the message that a model's answer is: its content, its calls of tools, and other fields.

        Args:
            response: a text or its ids; or several, as a list of texts or rows of ids.
            schema: a response template, as `ResponseTemplate`; None means the tokenizer's `response_template`.
            prefix: the prompt or its ids, in which the answer may have begun; one for each answer, or one for all;
                "" for none.
            tools: functions that the model may call, as in `apply_chat_template`: arguments get their types.

        Returns: a dict, or a list of dicts for several answers
        Raises:  MissingNameError without a template; ArgumentError for a malformed one, without a prefix, and for an
                 answer of another form
        """
        from tallow.text.response_parser import parse_response  # chats alone need it

        template = self._response_template(schema)
        if prefix is None:
            raise ArgumentError("parse_response without prefix", hint='pass the prompt, or prefix="" for none')
        answers, are_many = self._texts_of(response)
        prompts, each_has_one = self._texts_of(prefix)
        if not each_has_one:
            prompts = prompts * len(answers)
        if len(prompts) != len(answers):
            raise ArgumentError(f"{len(answers)} answers, but {len(prompts)} in prefix", hint="pass one, or one each")
        pairs = zip(answers, prompts, strict=True)
        parsed = [parse_response(text, template, prefix=prompt, tools=tools) for text, prompt in pairs]
        return parsed if are_many else parsed[0]

    def get_response_parser(self, response_template: Any = None, *, prefix: Any = None, tools: Any = None) -> Any:
        """Return a `ResponseParser`, which reads an answer piece by piece.  Args, raises: as `parse_response`"""
        from tallow.text.response_parser import ResponseParser  # chats alone need it

        prompts, are_many = ([None], False) if prefix is None else self._texts_of(prefix)
        if are_many:
            raise ArgumentError(f"{len(prompts)} prompts in prefix", hint="pass one")
        return ResponseParser(self._response_template(response_template), prompts[0] if prompts else "", tools=tools)

    def _response_template(self, given: Any) -> Any:
        template = self.response_template if given is None else given
        if template is None:
            raise MissingNameError("the tokenizer has no response_template", hint="pass one")
        return template

    def _texts_of(self, value: Any) -> tuple[list[Any], bool]:
        """Return texts, given as one, several, or ids; and whether there are several."""
        value = value if isinstance(value, str) else plain(value)
        if isinstance(value, list | tuple) and value and isinstance(value[0], str):
            return list(value), True
        tokenizer: Any = self
        texts = value if isinstance(value, str) else tokenizer.decode(value)
        return ([texts], False) if isinstance(texts, str) else (texts, True)

    def _template(self, chat_template: str | None, tools: Sequence[Any] | None) -> ChatTemplate:
        source = self.get_chat_template(chat_template, tools)
        tokens = self.special_tokens_map
        kept = self._compiled
        if kept is None or kept.source != source or kept.tokens != tokens:
            kept = vars(self)["_compiled"] = ChatTemplate(source, tokens)
        return kept


def _chats(conversation: Any) -> tuple[list[Any], bool]:
    """Return conversations, and whether there was a list of them.  Raises: ArgumentError for no messages"""
    if isinstance(conversation, list | tuple):
        if not conversation:
            raise ArgumentError("a conversation without messages", hint="pass one or more")
        if isinstance(conversation[0], list | tuple) or hasattr(conversation[0], "messages"):
            return [getattr(chat, "messages", chat) for chat in conversation], True
    return [getattr(conversation, "messages", conversation)], False


def _mask(encoded: BatchEncoding, row: int, spans: Sequence[Span]) -> list[int]:
    """Return 1 for each token of a row that is in one of the spans of characters."""
    mask = [0] * len(encoded.encodings[row]) if encoded.encodings else []
    for start, end in spans:
        first, last = encoded.char_to_token(row, start), encoded.char_to_token(row, end - 1)
        if first is None:  # cut off
            break
        for i in range(first, len(mask) if not last else last + 1):
            mask[i] = 1
    return mask
