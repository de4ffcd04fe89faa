"""`/v1/chat/completions`, and the conversation of a request."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

from tallow.errors import TallowError
from tallow.generation.sequence import Choice
from tallow.serving.engine import TextEngine
from tallow.serving.http.completions import WHOLE, Cut, TextApi, require_length
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.http.grammars import text_grammar
from tallow.serving.http.running import Done
from tallow.serving.http.sampling import MAX_LOGPROBS, Texts, choices_of, prompt_logprobs, texts_of
from tallow.serving.http.tools import MAX_TOOLS, CallDeltas, Tools, merged, reasoning_of, tools_of
from tallow.serving.requests import STOP, Update
from tallow.serving.text_model import Rendering

MAX_MESSAGES, MAX_PARTS, MAX_DOCUMENTS, MAX_VARIABLES = 4096, 256, 256, 64
RESERVED = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "continue_final_message", "chat_template"}
)
ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
REASONING = ("reasoning_content", "reasoning", "thinking")  # of an earlier answer; templates read one of them


class ChatCompletion(TextApi):
    """`/v1/chat/completions`: answer a conversation."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"
    blank: ClassVar[dict[str, Any]] = {"delta": {}, "logprobs": None}

    def parse(self, fields: Fields) -> Texts:
        self._tools = tools_of(fields)
        top = fields.integer("top_logprobs", 0, MAX_LOGPROBS)
        wanted = fields.flag("logprobs")
        if top and not wanted:
            raise ApiError("top_logprobs needs logprobs: true", "top_logprobs")
        messages = messages_of(fields, "messages")
        require_chat(self.engine, fields)
        form = text_grammar(fields)
        if self._tools is not None and (self._tools.demanded or form is None):
            form = self._tools.grammar()
        self._listed = prompt_logprobs(fields)
        rendering, cut = rendering_of(fields), Cut.of(fields, self.engine)
        texts = texts_of(
            fields,
            self.engine,
            [chat_prompt(self.engine, messages, self._tools, "messages", rendering, cut)],
            choices=choices_of(fields),
            default_tokens=None,
            param="messages",
            top_logprobs=(top or 0) if wanted else None,
            prompt_logprobs=self._listed,
            grammar=form,
        )
        channels = self.engine.served.has_channels and form is None and not rendering.continues_last
        for request in texts.requests:
            request.show_marks = channels or (self._tools is not None and form is None)
        self._readers = [CallDeltas(self._tools, has_channels=channels) for _ in texts.requests]
        return texts

    def besides(self, texts: Sequence[Done]) -> dict[str, Any]:
        return {} if self._listed is None else {"prompt_logprobs": self.prompt_list(texts[0].prompt, self._listed)}

    def openings(self) -> list[dict[str, Any] | None]:
        return [{"delta": {"role": "assistant", "content": ""}, "logprobs": None} for _ in self.texts.requests]

    def whole(self, index: int, text: Done) -> dict[str, Any]:
        reader = self._readers[index]
        deltas = [*reader.push(text.text), *reader.finish()]
        content, calls = merged(deltas)
        message: dict[str, Any] = {"role": "assistant", "content": content if calls else content or "", "refusal": None}
        finish = self._finish(index, text.finish)
        if reasoning := reasoning_of(deltas):
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = calls
        return {"message": message, "logprobs": self._logprobs(index, text.choices), "finish_reason": finish}

    def parts(self, index: int, update: Update) -> list[dict[str, Any]]:
        reader = self._readers[index]
        deltas = reader.push(update.text) + (reader.finish() if update.finish else [])
        if not deltas and (update.choices or update.finish):
            deltas = [{}]
        parts: list[dict[str, Any]] = [{"delta": delta, "logprobs": None} for delta in deltas]
        if parts:
            parts[0]["logprobs"] = self._logprobs(index, update.choices)
            parts[-1]["finish_reason"] = self._finish(index, update.finish)
        return parts

    def _finish(self, index: int, finish: str | None) -> str | None:
        return "tool_calls" if finish == STOP and self._readers[index].calls else finish

    def _logprobs(self, index: int, choices: Sequence[Choice]) -> dict[str, Any] | None:
        if self.texts.requests[index].top_logprobs is None:
            return None
        content = [
            self.token(choice.token, choice.logprob)
            | {"top_logprobs": [self.token(*top) for top in choice.top_logprobs]}
            for choice in choices
        ]
        return {"content": content, "refusal": None}


def require_chat(engine: TextEngine, fields: Fields) -> None:
    """Raise ApiError for a conversation with a model that does not chat, unless the request names the model."""
    served = engine.served
    if served.words.chat_template is None and served.template == "named" and fields.text("model") != served.name:
        raise ApiError(
            f"{served.name} continues texts and cannot chat: serve a chat model with --model, use /v1/completions, or "
            f'send "model": "{served.name}" to have it continue the messages',
            "model",
            code="model_cannot_chat",
        )


def messages_of(fields: Fields, field: str) -> list[dict[str, Any]]:
    """Return the messages of a list, each with one text.  Raises: ApiError"""
    return [_message(each) for each in fields.objects(field, MAX_MESSAGES, least=1)]


def rendering_of(fields: Fields) -> Rendering:
    """Return how the request wants the chat template to be used.  Raises: ApiError"""
    variables = fields.get("chat_template_kwargs") or {}
    if not isinstance(variables, dict) or len(variables) > MAX_VARIABLES:
        raise fields.wrong("chat_template_kwargs", f"an object with at most {MAX_VARIABLES} variables of the template")
    if taken := RESERVED.intersection(variables):
        raise ApiError(f"chat_template_kwargs: {min(taken)} is a field of the request", "chat_template_kwargs")
    documents = fields.items("documents", MAX_DOCUMENTS)
    if not all(isinstance(each, dict) for each in documents):
        raise fields.wrong("documents", "objects")
    continues = fields.flag("continue_final_message")
    begins = fields.flag("add_generation_prompt", not continues)
    if continues and begins:
        raise ApiError("continue_final_message and add_generation_prompt exclude each other", "continue_final_message")
    return Rendering(
        effort_variables(fields.text("reasoning_effort")) | variables,
        documents or None,
        begins,
        continues,
        fields.flag("add_special_tokens"),
    )


def effort_variables(effort: str | None) -> dict[str, Any]:
    """Return the variables of chat templates that say how much a model is to reason, by the names that they read."""
    if effort is None:
        return {}
    return {"reasoning_effort": effort, "enable_thinking": effort != "none", "thinking": effort != "none"}


def chat_prompt(
    engine: TextEngine,
    messages: Sequence[dict[str, Any]],
    tools: Tools | None,
    param: str,
    rendering: Rendering | None = None,
    cut: Cut = WHOLE,
) -> list[int]:
    """Return the tokens of a conversation.

    Args:    param: the field of the messages
    Raises:  ApiError, also for tools of which a model does not learn but may choose
    """
    require_length(engine, sum(len(str(message["content"])) for message in messages), param)
    entries, required = (None, True) if tools is None else (tools.entries, not tools.demanded)

    def encoded(messages: Sequence[dict[str, Any]]) -> list[int]:
        return cut.tokens(engine.served.encode_chat(messages, entries, required=required, rendering=rendering))

    try:
        try:
            return encoded(messages)
        except TallowError:
            if (objects := _with_objects(messages)) == messages:
                raise
            return encoded(objects)
    except TallowError as error:
        raise api_error(error, param) from error


def _with_objects(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages in which all arguments of calls are objects, for templates that take no others."""
    copies = deepcopy(list(messages))
    for message in copies:
        for call in message.get("tool_calls", ()):
            if isinstance(text := call["function"]["arguments"], str):
                call["function"]["arguments"] = {"arguments": text}
    return copies


def _message(fields: Fields) -> dict[str, Any]:
    """Return a message whose content is one text.  Raises: ApiError"""
    role = fields.required_text("role")
    if role not in ROLES:
        raise fields.wrong("role", f"one of {', '.join(ROLES)}")
    content = fields.get("content")
    if isinstance(content, list):
        content = "".join(map(_part, fields.objects("content", MAX_PARTS)))
    calls = _calls(fields) if role == "assistant" else []
    if content is None and role == "assistant":
        content = fields.text("refusal", "")
    if not isinstance(content, str):
        raise fields.wrong("content", 'a string, or parts of type "text"')
    message: dict[str, Any] = {"role": "system" if role == "developer" else role, "content": content}
    names = ("name", "tool_call_id", *(REASONING if role == "assistant" else ()))
    message |= {name: text for name in names if (text := fields.text(name)) is not None}
    return message | ({"tool_calls": calls} if calls else {})


def _part(fields: Fields) -> str:
    """Return the text of a part of a message.  Raises: ApiError"""
    kind = fields.text("type")
    if kind not in TEXT_PARTS:
        raise fields.wrong("type", f"one of {', '.join(TEXT_PARTS)}: models here read text only")
    return fields.required_text("refusal" if kind == "refusal" else "text")


def _calls(fields: Fields) -> list[dict[str, Any]]:
    """Return the calls of an earlier answer, with arguments as templates read them: as objects.  Raises: ApiError"""
    calls = []
    for call in fields.objects("tool_calls", MAX_TOOLS):
        function = call.inner("function")
        if function is None:
            raise call.wrong("function", "an object")
        entry = {"name": function.required_text("name"), "arguments": _arguments(function)}
        calls.append({"type": "function", "id": call.text("id", ""), "function": entry})
    return calls


def _arguments(function: Fields) -> Any:
    """Return the arguments of a call: an object, or the text itself where a model wrote something else.

    OpenAI's API takes any text, as models do not always write JSON, or are cut off.  Raises: ApiError
    """
    given = function.get("arguments")
    if isinstance(given, dict):
        return given
    text = function.text("arguments") or "{}"
    try:
        return dict(Fields.parse(text.encode(errors="surrogatepass")).values)
    except ApiError:
        return text
