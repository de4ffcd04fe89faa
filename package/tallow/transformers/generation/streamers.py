"""Streamers: what `generate` hands its tokens to, as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from queue import Queue
from typing import Any

from tallow.errors import ArgumentError

# Characters of Chinese, which are written without spaces: CJK Unified Ideographs, their extensions A to E, and
# compatibility ideographs.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class BaseStreamer:
    """The base of streamers."""

    def put(self, value: Any) -> None:
        """Take the prompt, a Tensor (1, T), and then the tokens that follow, (1,)."""
        raise NotImplementedError

    def end(self) -> None:
        """Take the end of the text."""
        raise NotImplementedError


class TextStreamer(BaseStreamer):
    """Prints a text as it comes, in whole words.

    Args:
        tokenizer: decodes tokens.
        skip_prompt: do not print the prompt.
        decode_kwargs: arguments of its `decode`.
    """

    def __init__(self, tokenizer: Any, skip_prompt: bool = False, **decode_kwargs: Any) -> None:
        self.tokenizer = tokenizer
        self.skip_prompt = skip_prompt
        self.decode_kwargs = decode_kwargs
        self.token_cache: list[int] = []
        self.print_len = 0
        self.next_tokens_are_prompt = True

    def put(self, value: Any) -> None:
        """Take tokens, and pass on what is complete of their text.

        Raises:  ArgumentError for more than one text
        """
        if value.ndim > 1:
            if value.shape[0] > 1:
                raise ArgumentError(f"{type(self).__name__}: {value.shape[0]} texts", hint="stream one text at a time")
            value = value[0]
        if self.skip_prompt and self.next_tokens_are_prompt:
            self.next_tokens_are_prompt = False
            return
        self.token_cache.extend(value.tolist())
        text = self.tokenizer.decode(self.token_cache, **self.decode_kwargs)
        if text.endswith("\n"):
            complete = text[self.print_len :]
            self.token_cache, self.print_len = [], 0
        else:
            # A word is complete at the next space, a Chinese character at once.
            end = len(text) if text and is_ideograph(text[-1]) else text.rfind(" ") + 1
            complete = text[self.print_len : end]
            self.print_len += len(complete)
        self.on_finalized_text(complete)

    def end(self) -> None:
        """Pass on the rest of the text."""
        rest = ""
        if self.token_cache:
            rest = self.tokenizer.decode(self.token_cache, **self.decode_kwargs)[self.print_len :]
            self.token_cache, self.print_len = [], 0
        self.next_tokens_are_prompt = True
        self.on_finalized_text(rest, stream_end=True)

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Print a piece of text."""
        print(text, flush=True, end=None if stream_end else "")


class TextIteratorStreamer(TextStreamer):
    """An iterator of the pieces of a text, for another thread than the one that generates.

    Args:    timeout: seconds to wait for a piece, after which `queue.Empty` is raised; None means for ever

    Example:
        streamer = TextIteratorStreamer(tokenizer, skip_prompt=True)
        Thread(target=model.generate, kwargs={**inputs, "streamer": streamer}).start()
        for piece in streamer:
            print(piece, end="")
    """

    def __init__(
        self, tokenizer: Any, skip_prompt: bool = False, timeout: float | None = None, **decode_kwargs: Any
    ) -> None:
        super().__init__(tokenizer, skip_prompt, **decode_kwargs)
        self.text_queue: Queue[str | None] = Queue()
        self.stop_signal = None
        self.timeout = timeout

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Put a piece of text into the queue."""
        self.text_queue.put(text, timeout=self.timeout)
        if stream_end:
            self.text_queue.put(self.stop_signal, timeout=self.timeout)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = self.text_queue.get(timeout=self.timeout)
        if piece is self.stop_signal:
            raise StopIteration
        return piece


class AsyncTextIteratorStreamer(TextStreamer):
    """An asynchronous iterator of the pieces of a text; it is made within the event loop that reads it.

    Args:    timeout: seconds to wait for a piece, after which TimeoutError is raised; None means for ever
    """

    def __init__(
        self, tokenizer: Any, skip_prompt: bool = False, timeout: float | None = None, **decode_kwargs: Any
    ) -> None:
        import asyncio  # takes long to import

        super().__init__(tokenizer, skip_prompt, **decode_kwargs)
        self.text_queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.stop_signal = None
        self.timeout = timeout
        self.loop = asyncio.get_running_loop()

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Put a piece of text into the queue, from any thread."""
        self.loop.call_soon_threadsafe(self.text_queue.put_nowait, text)
        if stream_end:
            self.loop.call_soon_threadsafe(self.text_queue.put_nowait, self.stop_signal)

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        import asyncio

        async with asyncio.timeout(self.timeout):
            piece = await self.text_queue.get()
        if piece is self.stop_signal:
            raise StopAsyncIteration
        return piece


def is_ideograph(character: str) -> bool:
    """Return whether a character is Chinese."""
    return any(first <= ord(character) <= last for first, last in IDEOGRAPHS)
