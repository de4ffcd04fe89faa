"""`generate`, for models with the interface of transformers' PreTrainedModel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

import numpy as np

import tallow
from tallow.core.tensor import Tensor, wrap
from tallow.devices import move, to_host
from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.generation import Sampler, greedy
from tallow.generation.processors import Text
from tallow.random import default_generator
from tallow.tape.modes import no_grad
from tallow.transformers.generation import lists
from tallow.transformers.generation.assisted import assisted_texts
from tallow.transformers.generation.configuration_utils import DEFAULTS, OUTPUTS, GenerationConfig, GenerationMode
from tallow.transformers.generation.logits_process import OF_BATCHES, RowProcessor
from tallow.transformers.generation.openings import open_steps
from tallow.transformers.generation.outputs import (
    GenerateBeamDecoderOnlyOutput,
    GenerateBeamEncoderDecoderOutput,
    GenerateDecoderOnlyOutput,
    GenerateEncoderDecoderOutput,
)
from tallow.transformers.generation.requests import Request, check_names, prepared_config, read_request
from tallow.transformers.generation.search import BeamPlan, Plan, Records, beam_texts, sample_texts
from tallow.transformers.generation.steps import Steps
from tallow.transformers.generation.stopping_criteria import RowCriteria

BEAMS = (GenerationMode.BEAM_SEARCH, GenerationMode.BEAM_SAMPLE)
MODES = (*BEAMS, GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE, GenerationMode.ASSISTED_GENERATION)

# Entries that are not used, and what a caller has to know of that; neutral values are None and False.
UNUSED = {
    ("compile_config", "disable_compile"): "no effect: nothing is compiled",
    ("token_healing",): "no effect: texts continue the last token of the prompt as it is",
    ("prefill_chunk_size",): "no effect on texts: the prompt is read at once, which takes more memory",
    ("cache_config",): 'no effect: a cache holds the model\'s dtype, with cache_implementation="quantized" int8',
    ("continuous_batching_config",): "no effect: the batch is that of the prompts",
    ("num_assistant_tokens_schedule",): "no effect on texts: each draft has num_assistant_tokens",
    ("assistant_lookbehind", "target_lookbehind", "assistant_early_exit"): (
        "no effect: without an assistant of the same vocabulary the model writes the same text alone"
    ),
    ("diversity_penalty", "num_beam_groups"): "no effect without groups of beams",
    ("penalty_alpha",): "no effect without top_k above 1",
    ("low_memory",): "no effect: no search that has it is here, as in transformers 5",
}


class GenerationMixin:
    """Gives a model `generate`.

    The model has transformers' `config` and `forward`. Where it is also a model of `tallow.models`, its fused decoder
    computes texts.
    """

    config: Any
    generation_config: Any
    keeps_rows: ClassVar[bool] = False  # texts that have ended stay in the batch

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        is_first_iteration: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the arguments of `forward` for the next token, for loops that programs write themselves.

        Args:
            input_ids: (B, T), all tokens so far.
            next_sequence_length: how many of the last tokens to read; None means all, whatever is in the cache.
            inputs_embeds: (B, T, D), in place of ids, before there is anything in the cache.
            is_first_iteration: the cache, if there is one, has been filled before: the embeddings are read.
            kwargs: further arguments of `forward`
        """
        held = 0 if past_key_values is None else past_key_values.get_seq_length()
        if next_sequence_length is not None:
            input_ids = input_ids[:, input_ids.shape[1] - next_sequence_length :]
        name = "decoder_input_ids" if self.config.is_encoder_decoder else "input_ids"
        inputs: dict[str, Any] = {name: input_ids}
        if inputs_embeds is not None and (not held or is_first_iteration):
            inputs = {name.replace("input_ids", "inputs_embeds"): inputs_embeds}
        inputs |= {"past_key_values": past_key_values, "attention_mask": attention_mask}
        return {key: value for key, value in (inputs | kwargs).items() if value is not None}

    def generate(
        self,
        inputs: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        prefix_allowed_tokens_fn: Callable[[int, Tensor], Sequence[int]] | None = None,
        synced_gpus: bool | None = None,
        assistant_model: Any = None,
        streamer: Any = None,
        negative_prompt_ids: Tensor | None = None,
        negative_prompt_attention_mask: Tensor | None = None,
        custom_generate: str | Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Continue prompts, or write texts about sources; the arguments, defaults and results are transformers'.

        Args:
            inputs: ids of the prompts (B, T), padded on the left, or of sources; None means `input_ids` of `kwargs`.
            generation_config: entries that come before those of the model's `generation_config`.
            logits_processor, stopping_criteria: in addition to those of the config.
            prefix_allowed_tokens_fn: returns the tokens that may follow, from the batch index and the ids so far (T,).
            synced_gpus: True is refused: models are not spread over processes here.
            assistant_model: drafts tokens that this model checks several at once.
            streamer: takes the prompt and each token.
            negative_prompt_ids, negative_prompt_attention_mask: the prompt that `guidance_scale` moves away from.
            custom_generate: a function of the model that is called instead; a repository's code is refused.
            kwargs: entries of GenerationConfig, which come before all others; `tokenizer`, for stop_strings; and
                arguments of `forward`: `attention_mask`, `inputs_embeds`, `past_key_values`, ...

        Returns: ids (B, T) with the prompts, or a result with `return_dict_in_generate=True`
        Raises:  ArgumentError for arguments that are unknown, invalid or exclude each other
        Warns:   TallowWarning for what has no effect
        """
        if synced_gpus:
            raise ArgumentError("generate: synced_gpus=True", hint="generate in one process")
        if type(self).prepare_inputs_for_generation is not GenerationMixin.prepare_inputs_for_generation:
            raise ArgumentError(
                f"generate: {type(self).__name__}.prepare_inputs_for_generation is not called here",
                hint="compute the inputs in forward, or write the loop: forward takes and returns past_key_values",
            )
        kwargs.pop("trust_remote_code", None)
        tokenizer = kwargs.pop("tokenizer", None)
        assistant_tokenizer = kwargs.pop("assistant_tokenizer", None)
        if assistant_tokenizer is not None and assistant_model is None:
            warn("generate: assistant_tokenizer: no effect without assistant_model", TallowWarning)
        config, rest = prepared_config(self, generation_config, kwargs)
        mode = config.get_generation_mode(assistant_model)
        if streamer is not None and not (hasattr(streamer, "put") and hasattr(streamer, "end")):
            raise ArgumentError(f"generate: streamer is a {type(streamer).__name__}", hint="pass a TextStreamer")
        if assistant_model is not None and not hasattr(assistant_model, "forward"):
            raise ArgumentError(f"generate: assistant_model is a {type(assistant_model).__name__}", hint="pass a model")
        _check_mode(config, mode, streamer)
        if isinstance(custom_generate, str):
            raise ArgumentError(f"custom_generate={custom_generate!r}: code of a repository", hint="pass a function")
        check_names(self, list(rest))
        request = read_request(self, inputs, config, rest)
        plan = self._plan(
            request,
            processors=logits_processor,
            criteria=stopping_criteria,
            prefix_fn=prefix_allowed_tokens_fn,
            negative=(negative_prompt_ids, negative_prompt_attention_mask),
            tokenizer=tokenizer,
            streamer=streamer,
        )
        if callable(custom_generate):
            ids = wrap(request.ids)
            return custom_generate(self, ids, plan.processors, plan.criteria, config, **request.others)
        with no_grad():
            if streamer is not None:
                streamer.put(wrap(request.ids))
            if mode in BEAMS:
                return self._search_beams(request, plan, mode is GenerationMode.BEAM_SAMPLE)
            draft = None
            if mode is GenerationMode.ASSISTED_GENERATION:
                draft = (assistant_model, assistant_tokenizer)
            return self._sample(request, plan, draft)

    # ---------------------------------------------------------------------------------------------------------- plans

    def _plan(
        self,
        request: Request,
        *,
        processors: Any,
        criteria: Any,
        prefix_fn: Any,
        negative: tuple[Any, Any],
        tokenizer: Any,
        streamer: Any,
    ) -> Plan:
        config, is_encoder_decoder = request.config, bool(self.config.is_encoder_decoder)
        vocab_size = int(getattr(self.config, "vocab_size", 0))
        source = request.source if is_encoder_decoder else wrap(request.ids)
        has_ids = source is not None and source.ndim == 2 and not source.is_floating_point() and source.shape[1]
        given = lists.Given(
            prompt_length=request.ids.shape[1],
            padding=None if request.mask is None or is_encoder_decoder else _first_text(request),
            source=source if has_ids else None,
            end=request.end,
            vocab_size=vocab_size,
            is_encoder_decoder=is_encoder_decoder,
        )
        guidance = lists.guidance_of(config, self, *negative)
        own = [*guidance, *lists.processors_of(config, given, prefix_fn)]
        all_processors = lists.merged(own, processors)
        all_criteria = lists.merged(lists.criteria_of(config, request.end, tokenizer), criteria)
        plain = all(isinstance(each, RowProcessor) for each in all_processors)
        plain &= all(isinstance(each, RowCriteria) for each in all_criteria)
        records = Records(wanted=_wanted(config, is_encoder_decoder))
        return Plan(
            processors=all_processors,
            warpers=lists.warpers_of(config, len(request.end)),
            closing=lists.closing_of(config, vocab_size),
            sample=_sampler(config) if config.do_sample else greedy,
            plain=Sampler(seed=_seed()) if config.do_sample else greedy,
            criteria=all_criteria,
            pad=request.pad if request.end else None,
            streamer=streamer,
            # Those who look at whole batches see texts that have ended, as in transformers.
            keeps_rows=self.keeps_rows
            or streamer is not None
            or bool(records.wanted)
            or not plain
            or _is_per_row(all_processors),
            records=records,
        )

    def _open_steps(self, request: Request, copies: int, wanted: Collection[str]) -> tuple[Steps, list[list[int]]]:
        """Return the steps of a call, as `open_steps`; for models with other ones."""
        return open_steps(self, request, copies, wanted)

    def _sample(self, request: Request, plan: Plan, draft: tuple[Any, Any] | None) -> Any:
        copies = request.config.num_return_sequences
        prompts = [Text(row) for row in request.ids.tolist() for _ in range(copies)]
        if draft is not None and assisted_texts(self, request, plan, prompts, *draft):
            steps = None
        else:
            steps, first = self._open_steps(request, copies, plan.records.wanted)
            expands = 1 if len(first) == len(prompts) else copies
            sample_texts(steps, prompts, plan, first, expands)
        if plan.streamer is not None:
            plan.streamer.end()
        sequences = _padded(prompts, plan.pad)
        return self._result(request, plan, steps, sequences, {})

    def _search_beams(self, request: Request, plan: Plan, draws: bool) -> Any:
        config = request.config
        length = request.ids.shape[1]
        beams = BeamPlan(
            num_beams=config.num_beams,
            length_penalty=config.length_penalty,
            early_stopping=config.early_stopping,
            end_ids=len(request.end),
            longest=config.max_length - length,
            draws=draws,
        )
        prompts = [Text(row) for row in request.ids.tolist()]
        steps, first = self._open_steps(request, config.num_beams, plan.records.wanted)
        found = beam_texts(steps, prompts, plan, beams, first)
        best = [(group, each) for group, texts in enumerate(found) for each in texts[: config.num_return_sequences]]
        # As in transformers, where the padding token 0 counts as none.
        fill = (request.pad or request.end[0]) if request.end else -1
        rows = {
            "sequences_scores": wrap(np.array([each.score for _, each in best], np.float32)),
            "beam_indices": _padded(
                [[group * config.num_beams + row for row in each.path] for group, each in best], -1, np.int32
            ),
        }
        if not config.output_scores:
            del rows["sequences_scores"]
        return self._result(request, plan, steps, _padded([each.text for _, each in best], fill), rows)

    def _result(
        self, request: Request, plan: Plan, steps: Steps | None, sequences: Tensor, beams: dict[str, Tensor]
    ) -> Any:
        sequences = wrap(move(sequences.array, request_device(self)))
        if not request.config.return_dict_in_generate:
            return sequences
        is_encoder_decoder = bool(self.config.is_encoder_decoder)
        kinds = {
            (False, False): GenerateDecoderOnlyOutput,
            (False, True): GenerateEncoderDecoderOutput,
            (True, False): GenerateBeamDecoderOnlyOutput,
            (True, True): GenerateBeamEncoderDecoderOutput,
        }
        kept: dict[str, Any] = dict(plan.records.results())
        for name in ("encoder_attentions", "encoder_hidden_states"):
            if name in kept:
                kept[name] = kept[name][0] if kept[name] else None  # the same in each step
        cache = steps.cache if steps is not None and request.config.use_cache else None
        return kinds["beam_indices" in beams, is_encoder_decoder](
            sequences=sequences, past_key_values=cache, **beams, **kept
        )

    def compute_transition_scores(
        self,
        sequences: Tensor,
        scores: tuple[Tensor, ...],
        beam_indices: Tensor | None = None,
        normalize_logits: bool = False,
    ) -> Tensor:
        """Return the scores of the tokens that were chosen.

        Args:
            sequences, scores, beam_indices: of the result of `generate`; beam_indices only with beams.
            normalize_logits: make scores log-probabilities first.

        Shapes:  (B, N) for N generated tokens; 0 after the end of a text that beams have found
        """
        scores_NRV = tallow.stack(list(scores))
        if normalize_logits:
            scores_NRV = tallow.log_softmax(scores_NRV, -1)
        count = len(scores)
        if beam_indices is None:
            rows_BN = np.broadcast_to(np.arange(scores[0].shape[0])[:, None], (scores[0].shape[0], count))
        else:
            rows_BN = to_host(beam_indices.array)
        has_ended = rows_BN < 0
        longest = int((~has_ended).sum(1).max())
        rows_BN, has_ended = np.where(has_ended, 0, rows_BN)[:, :longest], has_ended[:, :longest]
        tokens_BN = to_host(sequences.array)[:, sequences.shape[1] - longest :]
        chosen_BN = scores_NRV[np.arange(longest), rows_BN, tokens_BN]
        return chosen_BN.masked_fill(wrap(has_ended), 0)


def request_device(model: Any) -> Any:
    """Return the device of a model."""
    return model.device


def _check_mode(config: GenerationConfig, mode: GenerationMode, streamer: Any) -> None:
    if mode not in MODES:
        raise ArgumentError(
            f"generate: {mode.value} is not part of transformers 5 either",
            hint="remove penalty_alpha, dola_layers, num_beam_groups, constraints and force_words_ids",
        )
    if mode in BEAMS and streamer is not None:
        raise ArgumentError("generate: a streamer with beams", hint="pass num_beams=1, or no streamer")
    if mode is GenerationMode.ASSISTED_GENERATION and config.num_return_sequences > 1:
        raise ArgumentError("generate: num_return_sequences with an assistant", hint="pass one of them")
    if config.is_assistant:
        raise ArgumentError("generate: is_assistant=True", hint="pass the model that drafts as assistant_model")
    if config.use_mtp or config.speculation_type:
        raise ArgumentError("generate: use_mtp and speculation_type", hint="no model of tallow drafts for itself")
    if config.assistant_ensemble_weight is not None:
        raise ArgumentError("generate: assistant_ensemble_weight", hint="remove it: drafts do not change the texts")
    for names, effect in UNUSED.items():
        if given := [name for name in names if getattr(config, name) not in (None, False, DEFAULTS.get(name))]:
            warn(f"generate: {' and '.join(given)}: {effect}", TallowWarning)


def _sampler(config: GenerationConfig) -> Sampler:
    """Return the Sampler of a config; `manual_seed` decides on its draws."""
    return Sampler(
        temperature=config.temperature,
        top_k=config.top_k or None,
        top_p=config.top_p or np.finfo(np.float64).tiny,  # 0 leaves the likeliest token
        seed=_seed(),
        min_p=config.min_p or 0.0,
        typical_p=config.typical_p,
        epsilon_cutoff=config.epsilon_cutoff or 0.0,
        eta_cutoff=config.eta_cutoff or 0.0,
        top_h=config.top_h,
    )


def _seed() -> int:
    return int(default_generator.numpy.integers(2**63))


def _wanted(config: GenerationConfig, is_encoder_decoder: bool) -> frozenset[str]:
    """Return the names of what the result holds of each step."""
    if not config.return_dict_in_generate:
        return frozenset()
    wanted = {name.removeprefix("output_") for name in OUTPUTS if getattr(config, name)}
    if not is_encoder_decoder:
        return frozenset(wanted)
    names = {
        "attentions": ("encoder_attentions", "decoder_attentions", "cross_attentions"),
        "hidden_states": ("encoder_hidden_states", "decoder_hidden_states"),
    }
    return frozenset(name for each in wanted for name in names.get(each, (each,)))


def _first_text(request: Request) -> list[int]:
    """Return the place of the first token of each row that is no padding."""
    assert request.mask is not None
    return [int(row.argmax()) for row in request.mask[:, : request.ids.shape[1]] != 0]


def _is_per_row(processors: Sequence[Any]) -> bool:
    """Return whether a processor depends on the place of a row in the batch."""
    return any(
        isinstance(each, OF_BATCHES) or getattr(each, "prompt_ignore_length", None) is not None for each in processors
    )


def _padded(rows: Sequence[Sequence[int]], fill: int | None, dtype: Any = np.int64) -> Tensor:
    """Return rows as a Tensor, filled on the right."""
    longest = max(map(len, rows))
    filled = np.full((len(rows), longest), -1 if fill is None else fill, dtype)
    for row, tokens in zip(filled, rows, strict=True):
        row[: len(tokens)] = tokens
    return wrap(filled)
