"""`forward` of VITS, under transformers' names.

Letters: B batch, T tokens, N samples.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, UnsupportedError
from tallow.transformers.forward_common import Options, check_texts
from tallow.transformers.modeling_outputs import VitsModelOutput


class VitsForward:
    """Speaks texts."""

    text_encoder: Any
    main_input_name = "input_ids"

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        speaker_id: int | Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        labels: Tensor | None = None,
        speaking_rate: float | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return `waveform` (B, N), and in `sequence_lengths` (B,) how many samples of it are of each text.

        Args:
            input_ids, attention_mask: (B, T); 0 for padding.
            speaker_id: the voice, of a model with several.
            output_attentions, output_hidden_states, return_dict: None means as the config says.
            labels: must be None: the model is not trained here.
            speaking_rate: 1 for the usual speed; None means `self.speaking_rate`.

        Raises:  ArgumentError, UnsupportedError
        """
        if labels is not None:
            raise UnsupportedError("VitsModel with labels: it is not trained here", hint="leave labels out")
        if input_ids is None:
            raise ArgumentError("VitsModel: no input_ids", hint="pass the ids of texts, (B, T)")
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        check_texts(self, input_ids, None, attention_mask)
        last: list[Tensor] = []
        encoder = self.text_encoder.encoder
        note = encoder.register_forward_hook(lambda _, __, output: last.append(output))
        try:
            with options.capture(encoder.layers) as captured:
                result = self.core_forward(input_ids, attention_mask, speaker_id, speaking_rate)  # type: ignore[attr-defined]
        finally:
            note.remove()
        states = {"hidden_states": captured.hidden_states(last[0]), "attentions": captured.attentions()}
        return options.result(VitsModelOutput, **result._asdict(), **states)
