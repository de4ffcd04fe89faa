"""The engine: one thread that generates the texts of all requests, a token of each per step.

A step reads the last token of each text that is being generated, and a chunk of one prompt or several short prompts,
in one call where the model allows it (`tallow.generation.slots`). Between two steps, texts that have ended or were
cancelled leave, and waiting requests take their slots. A long prompt therefore delays the others by one chunk at most.

A grammar's tokens may take long to find. That is done between two steps, for half the time of a step, and its text sits
out the steps until they are found. In a thread it would hold Python's lock for milliseconds whenever a kernel returns.
Grammars are read in a thread, which computes in slices of the same length (`tallow.serving.slices`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from tallow.errors import ArgumentError
from tallow.generation.prefix_pages import PAGE, PrefixPages
from tallow.generation.sequence import check_prompt
from tallow.generation.slots import LEAST_ROWS, Slots, open_slots
from tallow.serving.queue import Busy, Closed, WaitingLine
from tallow.serving.requests import CANCELLED, LENGTH, Generation, TextRequest, Update
from tallow.serving.slices import Slices
from tallow.serving.text_model import TextModel

CHUNK, IDLE_CHUNK = 64, 256  # tokens of a prompt per step, while other texts wait for their next token and if none does

ALONE_S = 0.01  # that texts prepare at once if no other is generated: then new requests and those that left are seen


@dataclass
class Counters:
    """Counts of an engine since its start.

    Attributes:
        hits: texts whose prompt began with known tokens.
        cached: tokens of prompts that were known from earlier requests.
        first_token_s, generation_s: the sums of the times to the first token, and to the last.
    """

    requests: int = 0
    failed: int = 0
    cancelled: int = 0
    prompt_tokens: int = 0
    hits: int = 0
    cached: int = 0
    generated_tokens: int = 0
    steps: int = 0
    first_token_s: float = 0.0
    generation_s: float = 0.0


class TextEngine:
    """Generates texts with one model.

    Args:
        slots: how many texts to generate at once.
        queue: how many more requests of a client may wait.
        length: the most tokens of a text, prompt included; None means the model's context.
        cache_dtype: of the keys and values in memory, as `dtype` of the model's `new_cache`.
        time_limit_s: a text ends there, as at its last token; a request that waits for longer is refused.
        prefix_bytes: of keys and values of beginnings of prompts, which are kept for other requests.
        batch_invariant: the bits of a text's logits do not depend on the other texts.
        by_priority: requests wait in the order of their `priority`; else all are equal.
        shares_prefixes: known beginnings of prompts are for all clients, not only for the one who sent them.
        reports_cached: tell how many tokens of a prompt were known: of shared ones, this confirms a guess.
        open_slots: returns the memory of the texts, as `tallow.generation.slots.open_slots` does.

    Attributes:
        slices: the time between two steps, for what else computes.

    Raises:  ArgumentError for no slots, for a length beyond the context, and if a model cannot be `batch_invariant`
    """

    def __init__(
        self,
        served: TextModel,
        *,
        slots: int = 8,
        queue: int = 128,
        length: int | None = None,
        cache_dtype: object = None,
        time_limit_s: float | None = None,
        prefix_bytes: int = 0,
        batch_invariant: bool = False,
        by_priority: bool = False,
        shares_prefixes: bool = False,
        reports_cached: bool = True,
        open_slots: Callable[..., Slots] = open_slots,
    ) -> None:
        self.served = served
        self.counters = Counters()
        self.slices = Slices()
        self.by_priority = by_priority
        self.reports_cached = reports_cached
        self._shares_prefixes = shares_prefixes
        self.line: WaitingLine[Generation] = WaitingLine(
            queue, lambda each: each.request.client, lambda each: each.request.priority if by_priority else 0
        )
        self._slots = open_slots(
            served.model,
            slots,
            length,
            cache_dtype=cache_dtype,
            pages=PrefixPages(prefix_bytes),
            batch_invariant=batch_invariant,
        )
        self._stop_ids = served.stop_ids
        self._active: list[Generation] = []
        self._thread = threading.Thread(target=self._run, name=f"tallow {served.name}", daemon=True)
        self._next_prompt = 0  # prompts are read in turns
        self._is_stopping = False
        self._steps_s = deque([0.0], maxlen=8)  # the times of the last steps; some took longer, as others computed
        self._time_limit_s = inf if time_limit_s is None else time_limit_s

    @property
    def length(self) -> int:
        """The most tokens of a text, prompt included."""
        return self._slots.length

    @property
    def slots(self) -> int:
        """The number of texts that can be generated at once."""
        return self._slots.count

    @property
    def active(self) -> int:
        """The number of texts that are being generated."""
        return len(self._active)

    @property
    def pages(self) -> PrefixPages:
        """The known beginnings of prompts."""
        return self._slots.pages

    @property
    def most_pages(self) -> int:
        """The number of pages that fit into the memory for them."""
        return self.pages.most_bytes // max(1, self._slots.page_bytes)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Refuse further requests, cancel those in progress, and wait for the thread to end."""
        for generation in self.line.close():
            generation.fail(Closed())
        self._is_stopping = True
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def max_tokens(self, prompt: Sequence[int], requested: int | None) -> int:
        """Return how many tokens may follow a prompt: as many as requested, or fewer if the length ends before.

        Raises:  ArgumentError for an empty prompt, ids outside the vocabulary, and a prompt that is too long
        """
        count = check_prompt(self.served.model, prompt, requested)
        if len(prompt) > self.length:
            raise ArgumentError(
                f"the prompt takes {len(prompt)} tokens, the server's limit is {self.length}", hint="shorten the prompt"
            )
        return min(count, self.length - len(prompt) + 1)

    def submit(self, request: TextRequest, deliver: Callable[[Update], None]) -> Generation:
        """Enqueue a request.  Raises: as `submit_all`; ArgumentError as `max_tokens`"""
        self.max_tokens(request.tokens, request.max_tokens)
        return self.submit_all([(request, deliver)])[0]

    def submit_all(self, requests: Sequence[tuple[TextRequest, Callable[[Update], None]]]) -> list[Generation]:
        """Enqueue requests of one client, all or none.

        Their prompts were checked when they were read: an event loop calls this, and a prompt takes a millisecond.

        Args:  requests: whose prompts and numbers of tokens `max_tokens` takes; each with a function that is called in
               the engine's thread with each Update of its text

        Raises:  Busy if too many wait; Closed after `stop`
        """
        self.line.require_room(requests[0][0].client, len(requests))
        generations = []
        for request, deliver in requests:
            decoder = self.served.decoder(
                request.tokens, show_special=request.show_special, show_marks=request.show_marks
            )
            generations.append(Generation(request, deliver, decoder, self._stop_ids))
        self.line.put(*generations)
        return generations

    def _run(self) -> None:
        while (admitted := self._take()) is not None or self._active:
            for generation in admitted or ():
                self._admit(generation)
            self._retire()
            if self._active:
                self._prepare()
                self._step()
                self._retire()
            self._refuse_late()
        self._slots.close()
        self.slices.free()

    def _take(self) -> list[Generation] | None:
        """Remove and return the next requests from the line; wait for one if no text is generated."""
        if not self._active:
            self.slices.free()
        return self.line.take(self._slots.count - self.active, wait=not self._active)

    def _refuse_late(self) -> None:
        """Remove waiting requests whose client is gone, or whose time is over."""
        if not self.line:
            return
        begun_by = time.monotonic() - self._time_limit_s
        for generation in self.line.remove(lambda each: each.is_cancelled or each.submitted < begun_by):
            if generation.is_cancelled:
                self.counters.cancelled += 1
                generation.finish(CANCELLED)
            else:
                generation.fail(Busy(len(self.line), self.line.retry_after_s))

    def _admit(self, generation: Generation) -> None:
        taken = {other.slot for other in self._active}
        generation.slot = next(slot for slot in range(self._slots.count) if slot not in taken)
        owner = "" if self._shares_prefixes else generation.request.client
        self._slots.begin(generation.slot, f"{owner}\n{generation.request.salt}")
        self.counters.requests += 1
        self.counters.prompt_tokens += len(generation.request.tokens)
        if not generation.needs_model:
            generation.finish(LENGTH)
        self._active.append(generation)

    def _prepare(self) -> None:
        """Let the texts that are not ready prepare in turns, for half the time of a step; if none is, until one is.

        Then let grammars be read for as long.
        """
        waiting = deque(generation for generation in self._active if not generation.is_ready)
        alone = len(waiting) == len(self._active)
        seconds = ALONE_S if alone else min(self._steps_s) / 2
        self._prepare_in_turns(waiting, time.monotonic() + seconds, alone=alone)
        self.slices.give(seconds)

    def _prepare_in_turns(self, waiting: deque[Generation], until: float, *, alone: bool) -> None:
        while waiting:
            generation = waiting.popleft()
            try:
                generation.prepare()
            except Exception as error:  # of this text's processors; the others go on
                self._fail(generation, error)
            if not (generation.is_ready or generation.has_ended):
                waiting.append(generation)
            elif alone:
                return
            if time.monotonic() >= until:
                return

    def _step(self) -> None:
        """Read the last token of each text that is ready, and a part of the prompts; choose the next tokens."""
        begun = time.monotonic()
        ready = [generation for generation in self._active if generation.is_ready and not generation.has_ended]
        if ready:
            self._generate(ready)
            self._steps_s.append(time.monotonic() - begun)

    def _generate(self, ready: Sequence[Generation]) -> None:
        group = [generation for generation in ready if len(generation.pending) == 1]
        new = {generation.slot: generation.pending for generation in group}
        reading: list[Generation] = []
        try:
            for generation, chunk in self._chunks(ready, CHUNK if group else IDLE_CHUNK):
                reading.append(generation)
                new[generation.slot] = chunk
            logits = self._slots.read(new, [each.slot for each in reading if each.scores_prompt])
        except Exception as error:  # of the model, such as too little memory: no text of this step can go on
            for generation in group + reading:
                self._fail(generation, error)
            return
        self.counters.steps += 1
        for generation, logits_V in zip(group + reading, logits, strict=True):
            try:
                if generation in reading and generation.scores_prompt:
                    generation.score(logits_V)
                    logits_V = logits_V[-1]
                if generation in group or not generation.pending:
                    generation.advance(logits_V)
            except Exception as error:  # of this text's logits or processors; the others go on
                self._fail(generation, error)

    def _chunks(self, ready: Sequence[Generation], size: int) -> Iterator[tuple[Generation, Sequence[int]]]:
        """Yield the prompts of a step and what to read of them: up to `size` tokens of one, and further prompts whose
        rest is shorter than a page, so that waiting for another to read it first saves nothing.
        """
        prompts = [generation for generation in ready if len(generation.pending) > 1]
        if not prompts:
            return
        self._next_prompt += 1
        first = self._next_prompt % len(prompts)
        left = CHUNK
        for number, generation in enumerate(prompts[first:] + prompts[:first]):
            if number == 0 or len(generation.pending) < min(left, PAGE):
                chunk = self._chunk(generation, size)
                left -= len(chunk)
                yield generation, chunk

    def _chunk(self, generation: Generation, size: int) -> Sequence[int]:
        """Take the next tokens of a prompt, after those whose keys and values are known by now."""
        if generation.scores_prompt:  # each token is read, and not too many at once: their logits are large
            return generation.take(len(generation.pending) if self.served.model.prefill_chunk is None else CHUNK)
        known = generation.skip(self._slots.copy_known(generation.slot, generation.request.tokens))
        self.counters.cached += known
        self.counters.hits += known > 0 and known == generation.cached
        left = len(generation.pending)
        if self.served.model.prefill_chunk is None:
            size = left  # the model reads a prompt as a whole
        elif size < left < size + LEAST_ROWS:
            size -= PAGE  # so that no chunk is shorter than LEAST_ROWS
        return generation.take(size)

    def _fail(self, generation: Generation, error: Exception) -> None:
        self._slots.truncate(generation.slot, 0)  # it may hold NaN, which another prompt must not inherit
        self.counters.failed += 1
        generation.fail(error)

    def _retire(self) -> None:
        """Remove texts that have ended or were cancelled."""
        for generation in self._active:
            if (generation.is_cancelled or self._is_stopping) and not generation.has_ended:
                self.counters.cancelled += 1
                generation.finish(CANCELLED)
            if time.monotonic() - generation.submitted > self._time_limit_s and not generation.has_ended:
                generation.finish(LENGTH)
            if generation.has_ended:
                seconds = time.monotonic() - generation.submitted
                self.line.served(seconds / self._slots.count)
                self.counters.generation_s += seconds
                self.counters.generated_tokens += generation.generated
                if generation.first_token is not None:
                    self.counters.first_token_s += generation.first_token - generation.submitted
        self._active = [generation for generation in self._active if not generation.has_ended]
