"""Words in place of masks, by a masked language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.transformers.pipelines.base import Pipeline
from tallow.transformers.pipelines.scores import floats, softmax


class FillMaskPipeline(Pipeline):
    """Fills masks in texts: {"score", "token", "token_str", "sequence"}, the best first.

    Args of the constructor and of calls:
        top_k: how many tokens for a mask; 5 by default.
        targets: words to choose among. A word that is not a token counts as its first token.
        tokenizer_kwargs: arguments of the tokenizer.

    Raises:  ArgumentError for a tokenizer without a mask token
    """

    def __init__(self, model: Any, tokenizer: Any = None, **arguments: Any) -> None:
        super().__init__(model, tokenizer, **arguments)
        if self.tokenizer.mask_token_id is None:
            raise ArgumentError("the tokenizer has no mask_token", hint="choose a masked language model, such as BERT")

    def __call__(self, inputs: Any, **arguments: Any) -> Any:
        """Return the fillings of a text: a list, or with several masks a list for each.

        Raises:  ArgumentError for a text without a mask; as `Pipeline`
        """
        result = super().__call__(inputs, **arguments)
        return result[0] if isinstance(inputs, list) and len(inputs) == 1 else result

    def preprocess(self, inputs: str, tokenizer_kwargs: dict[str, Any] | None = None) -> Any:
        encoded = self.tokenizer(inputs, return_tensors="pt", **(tokenizer_kwargs or {}))
        if not (encoded["input_ids"] == self.tokenizer.mask_token_id).any():
            raise ArgumentError(f"the text has no {self.tokenizer.mask_token}: {inputs!r:.200}")
        return encoded

    def _forward(self, model_inputs: Any) -> Any:
        return {"input_ids": model_inputs["input_ids"], "logits": self.run(model_inputs).logits}

    def postprocess(self, model_outputs: Any, top_k: int = 5, targets: str | Sequence[str] | None = None) -> Any:
        ids_T = model_outputs["input_ids"][0].numpy()
        masks = np.flatnonzero(ids_T == self.tokenizer.mask_token_id)
        probabilities = softmax(floats(model_outputs["logits"][0])[masks])
        allowed = np.arange(probabilities.shape[-1]) if targets is None else np.array(self.target_ids(targets))
        found = []
        for mask, weights in zip(masks, probabilities, strict=True):
            order = np.argsort(-weights[allowed], kind="stable")[:top_k]
            found.append(
                [self._filling(ids_T, int(mask), int(allowed[i]), float(weights[allowed[i]]), masks) for i in order]
            )
        return found[0] if len(found) == 1 else found

    def _filling(self, ids_T: Any, mask: int, token: int, score: float, masks: Any) -> dict[str, Any]:
        filled = ids_T.copy()
        filled[mask] = token
        filled = filled[filled != self.tokenizer.pad_token_id]
        text = self.tokenizer.decode(filled.tolist(), skip_special_tokens=len(masks) == 1)  # other masks stay
        return {"score": score, "token": token, "token_str": self.tokenizer.decode([token]), "sequence": text}

    def target_ids(self, targets: str | Sequence[str]) -> list[int]:
        """Return the tokens of words.

        Raises:  ArgumentError if none has any
        Warns:   TallowWarning for words that are not tokens
        """
        vocabulary = self.tokenizer.get_vocab()
        ids = set()
        for word in [targets] if isinstance(targets, str) else targets:
            if word in vocabulary:
                ids.add(vocabulary[word])
                continue
            first = self.tokenizer(word, add_special_tokens=False)["input_ids"][:1]
            stands = f"{self.tokenizer.convert_ids_to_tokens(first)[0]!r} stands for it" if first else "it is left out"
            warn(f"the target {word!r:.80} is not a token of the model: {stands}", TallowWarning)
            ids.update(first)
        if not ids:
            raise ArgumentError("no target is a token of the model", hint="pass other words as targets")
        return list(ids)
