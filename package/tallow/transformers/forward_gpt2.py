"""`forward` of GPT-2, under transformers' names.

Letters: B batch, C choices, T positions, V vocabulary.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.nn.cache import KVCache
from tallow.transformers import losses
from tallow.transformers.decoder_masks import texts_of
from tallow.transformers.forward_common import Options, one_input
from tallow.transformers.forward_decoders import CachedForward, CausalLMForward, DecoderModelForward, Inputs
from tallow.transformers.modeling_outputs import (
    BaseModelOutputWithPastAndCrossAttentions,
    CausalLMOutputWithCrossAttentions,
)
from tallow.transformers.modeling_outputs_models import GPT2DoubleHeadsModelOutput


class TypedForward:
    """Adds `token_type_ids` to a decoder whose types are tokens: their embeddings are added to those of the texts."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """As without types, in the order of arguments that GPT-2 has.

        Args:
            token_type_ids: (B, T)
            others: as the language model's.
        """
        table: Any = self.get_input_embeddings()  # type: ignore[attr-defined]
        if token_type_ids is not None and (input_ids is None) != (inputs_embeds is None):
            embeds = table(input_ids) if inputs_embeds is None else inputs_embeds
            input_ids, inputs_embeds = None, embeds + table(token_type_ids)
        return super().forward(  # type: ignore[misc]
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            **kwargs,
        )


class GPT2ModelForward(TypedForward, DecoderModelForward):  # type: ignore[misc]  # GPT-2's order of arguments
    """GPT-2 without a head."""

    output_class = BaseModelOutputWithPastAndCrossAttentions


class GPT2Forward(TypedForward, CausalLMForward):  # type: ignore[misc]  # GPT-2's order of arguments
    """GPT-2."""

    output_class = CausalLMOutputWithCrossAttentions


class DoubleHeadsForward(CachedForward):
    """GPT-2 that also scores texts, of which one is to be chosen."""

    multiple_choice_head: Any

    def _adopt(self, config: Any, name: str = "") -> Any:
        config.num_labels = 1
        return super()._adopt(config, name)  # type: ignore[misc]

    def forward(
        self,
        input_ids: Tensor | None = None,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        mc_token_ids: Tensor | None = None,
        labels: Tensor | None = None,
        mc_labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, C, T, V) of the next token and scores (B, C) of the choices, and with labels the losses.

        Args:
            input_ids: (B, C, T), or (B, T).
            attention_mask, token_type_ids: of the same shape; types are tokens.
            mc_token_ids: (B, C), the place that a choice is scored by; None means the last.
            labels: of the same shape as input_ids, the tokens themselves; -100 does not count.
            mc_labels: (B,), the right choices.
            others: as the language model's.

        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        one_input(self, input_ids, inputs_embeds)
        table: Any = self.get_input_embeddings()  # type: ignore[attr-defined]
        if token_type_ids is not None:
            embeds = table(input_ids) if inputs_embeds is None else inputs_embeds
            input_ids, inputs_embeds = None, embeds + table(token_type_ids)
        texts: Any = input_ids if inputs_embeds is None else inputs_embeds[..., 0]
        # A mask is longer than the texts where a cache has those before.
        ids, mask = (None if each is None else each.flatten(0, -2) for each in (input_ids, attention_mask))
        if inputs_embeds is not None:
            inputs_embeds = inputs_embeds.reshape(-1, *inputs_embeds.shape[-2:])
        inputs = Inputs(ids, mask, position_ids, past_key_values, inputs_embeds, use_cache)
        done, past = self._read(inputs, options)
        hidden = done.result.reshape(*texts.shape, -1)
        logits = self.logits(hidden)  # type: ignore[attr-defined]
        scores = self.multiple_choice_head(hidden, mc_token_ids).squeeze(-1)
        states = done.states
        if states["hidden_states"]:
            states["hidden_states"] = (*states["hidden_states"][:-1], hidden)
        return options.result(
            GPT2DoubleHeadsModelOutput,
            loss=None if labels is None else losses.next_token(logits, labels),
            mc_loss=None if mc_labels is None else losses.cross_entropy(scores, mc_labels),
            logits=logits,
            mc_logits=scores,
            past_key_values=past,
            **states,
        )

    def _run(self, ids: Tensor, mask: Tensor | None, memory: KVCache | None) -> Tensor:
        if memory is None and mask is not None:
            memory = texts_of(mask)
        return self.hidden(ids, memory)  # type: ignore[attr-defined]
