"""`forward` of the decoders of BART, its relatives and Whisper as language models, under transformers' names.

Letters: B batch, T positions, A sources (B is a multiple of A), S positions of a source, D width, V vocabulary.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.seq2seq.model import Sources
from tallow.nn.attention import key_mask
from tallow.transformers import losses
from tallow.transformers.forward_common import Options
from tallow.transformers.forward_decoders import CausalLMForward
from tallow.transformers.modeling_outputs import CausalLMOutputWithCrossAttentions, ModelOutput


class TextDecoderForward(CausalLMForward):
    """A decoder of texts that can attend to sources; labels are the next tokens themselves."""

    output_class = CausalLMOutputWithCrossAttentions
    model: Any

    def _loss(self, logits: Tensor, labels: Tensor, options: Options, shifted: Tensor | None) -> Tensor:
        return losses.cross_entropy(logits, labels)

    def _attending(self, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the language model, whose decoder attends to sources unless they are None."""
        if sources is None:
            return super().forward(*args, **kwargs)
        as_dict = kwargs.pop("return_dict", None)
        decoder = self.model.decoder
        caller = get_ident()  # other threads may run the model meanwhile, with sources of their own

        def attend(_: Any, given: tuple[Any, ...]) -> Any:
            return (given[0], sources, *given[2:]) if get_ident() == caller else None

        hook = decoder.register_forward_pre_hook(attend)
        try:
            result = super().forward(*args, **kwargs, return_dict=True)  # type: ignore[misc]
        finally:
            hook.remove()
        if weights := result.attentions:  # each layer has two, of which the second reads the source
            result.attentions, result.cross_attentions = weights[::2], weights[1::2]
        is_object = self.config.return_dict if as_dict is None else as_dict
        return result if is_object else result.to_tuple()


class BartLMForward(TextDecoderForward):
    """The decoder of BART and of its relatives."""

    def _adopt(self, config: Any, name: str = "") -> Any:
        config.is_decoder, config.is_encoder_decoder = True, False
        return super()._adopt(config, name)  # type: ignore[misc]

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, V) of the next token, and with labels the loss.

        Args:
            encoder_hidden_states: (A, S, D), what an encoder made of sources; None means without any.
            encoder_attention_mask: (A, S), 1 for text and 0 for padding of the sources.
            others: as of other language models; with a cache, pass the sources again.

        Raises:  ArgumentError
        """
        sources = None
        if encoder_hidden_states is not None:
            layers = self.model.decoder.layers
            keys = [layer.encoder_attn.keys_and_values(encoder_hidden_states) for layer in layers]
            sources = Sources(keys, None if encoder_attention_mask is None else key_mask(encoder_attention_mask))
        elif encoder_attention_mask is not None:
            raise ArgumentError("encoder_attention_mask without encoder_hidden_states")
        return self._attending(sources, input_ids, attention_mask, **kwargs)


class WhisperLMForward(TextDecoderForward):
    """Whisper's decoder."""

    main_input_name = "input_ids"

    def _adopt(self, config: Any, name: str = "") -> Any:
        config.is_encoder_decoder = False
        return super()._adopt(config, name)  # type: ignore[misc]

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, V) of the next token, and with labels the loss.

        Args:
            encoder_outputs: (A, S, D), what an encoder made of sounds, or its result; None means without any.
            others: as of other language models; with a cache, pass the sounds again.

        Raises:  ArgumentError
        """
        if isinstance(encoder_outputs, tuple | list | ModelOutput):
            encoder_outputs = encoder_outputs[0]
        sources = None if encoder_outputs is None else self.model.decoder.listen(encoder_outputs)
        return self._attending(sources, input_ids, attention_mask, **kwargs)
