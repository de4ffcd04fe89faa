"""Labels of tokens, and of the entities that they form: names of people, places, parts of speech."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from tallow.errors import ArgumentError
from tallow.transformers.pipelines.base import ChunkPipeline
from tallow.transformers.pipelines.scores import floats, softmax

Entity = dict[str, Any]


class AggregationStrategy(Enum):
    """Ways from tokens to entities: none, by equal labels, or by words first. Each word has the label of its first
    token, of the average of its tokens, or of the token with the highest score.
    """

    NONE = "none"
    SIMPLE = "simple"
    FIRST = "first"
    AVERAGE = "average"
    MAX = "max"

    @classmethod
    def of(cls, value: Any) -> AggregationStrategy:
        """Return the strategy of a name.  Raises: ArgumentError"""
        if isinstance(value, cls):
            return value
        name = str(getattr(value, "value", value)).lower()
        if name not in {each.value for each in cls}:
            known = ", ".join(each.value for each in cls)
            raise ArgumentError(f"aggregation_strategy={value!r:.80}", hint=f"use one of {known}")
        return cls(name)


BY_WORDS = (AggregationStrategy.FIRST, AggregationStrategy.AVERAGE, AggregationStrategy.MAX)


class TokenClassificationPipeline(ChunkPipeline):
    """Labels the tokens of texts: {"entity", "score", "index", "word", "start", "end"}; or with an aggregation the
    entities: {"entity_group", "score", "word", "start", "end"}. `start` and `end` are places in the text.

    Args of the constructor and of calls:
        aggregation_strategy: "none" by default, "simple", "first", "average" or "max".
        grouped_entities: True stands for "simple" (version 4).
        ignore_labels: labels that are left out; ["O"] by default.
        stride: read a text that is too long in parts that overlap by so many tokens.
        is_split_into_words: texts are lists of words; `delimiter` stands between them in the text of the places.
        offset_mapping: the places of the tokens, instead of the tokenizer's.
    """

    def __call__(self, inputs: Any, **arguments: Any) -> Any:
        """Return the labels of a text as a list; for several texts, a list of them.

        Raises:  ArgumentError for no texts; as `Pipeline`
        """
        if isinstance(inputs, list | tuple):
            if not inputs:
                raise ArgumentError("token classification got no texts", hint="pass a text, or a list of them")
            inputs = list(inputs)
            if arguments.get("is_split_into_words") and not all(isinstance(each, list) for each in inputs):
                inputs = [inputs]
        return super().__call__(inputs, **arguments)

    def _sanitize_parameters(self, grouped_entities: bool | None = None, **arguments: Any) -> Any:
        if grouped_entities is not None:
            arguments.setdefault("aggregation_strategy", "simple" if grouped_entities else "none")
        if "aggregation_strategy" in arguments:
            arguments["aggregation_strategy"] = AggregationStrategy.of(arguments["aggregation_strategy"])
        stride = arguments.get("stride")
        if stride is not None:
            if stride >= self.tokenizer.model_max_length:
                raise ArgumentError(
                    f"stride={stride} with texts of {self.tokenizer.model_max_length} tokens", hint="pass a smaller one"
                )
            if arguments.get("aggregation_strategy") is AggregationStrategy.NONE:
                raise ArgumentError("stride needs entities to join", hint='pass aggregation_strategy="simple"')
        return super()._sanitize_parameters(**arguments)

    def preprocess(
        self,
        sentence: Any,
        stride: int | None = None,
        is_split_into_words: bool = False,
        delimiter: str | None = None,
        offset_mapping: Any = None,
    ) -> Iterator[Any]:
        if isinstance(sentence, str) == is_split_into_words:
            wanted = "a list of words" if is_split_into_words else "a text"
            raise ArgumentError(f"is_split_into_words={is_split_into_words} needs {wanted}, not {sentence!r:.80}")
        options: dict[str, Any] = {"truncation": True}
        if stride is not None:
            options |= {"return_overflowing_tokens": True, "padding": True, "stride": stride}
        encoded = self.tokenizer(
            sentence,
            is_split_into_words=is_split_into_words,
            return_tensors="pt",
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            **options,
        )
        encoded.pop("overflow_to_sample_mapping", None)
        starts = None
        if is_split_into_words:
            starts, sentence = _joined_words(sentence, " " if delimiter is None else delimiter)
        for i in range(len(encoded["input_ids"])):
            row = {name: value[i : i + 1] for name, value in encoded.items()}
            special = row.pop("special_tokens_mask").numpy()[0]
            places = row.pop("offset_mapping").numpy()[0] if offset_mapping is None else np.array(offset_mapping)
            if starts is not None:  # places within words become places in the text
                words = [0 if word is None else starts[word] for word in encoded.word_ids(i)]
                places = places + np.array(words)[:, None]
            yield {**row, "marks": [special, places, sentence]}

    def _forward(self, model_inputs: Any) -> Any:
        return {"input_ids": model_inputs["input_ids"], "logits": self.run(model_inputs).logits}

    def postprocess(
        self,
        model_outputs: list[Any],
        aggregation_strategy: Any = AggregationStrategy.NONE,
        ignore_labels: list[str] | None = None,
    ) -> list[Entity]:
        ignored = ["O"] if ignore_labels is None else ignore_labels
        found: list[Entity] = []
        for each in model_outputs:
            tokens = self._tokens(each)
            for entity in self.aggregate(tokens, aggregation_strategy):
                if entity.get("entity") not in ignored and entity.get("entity_group") not in ignored:
                    found.append(entity)
        return _without_overlaps(found) if len(model_outputs) > 1 else found

    def _tokens(self, outputs: Any) -> list[Entity]:
        """Return the tokens of a text with their scores and places, without special ones."""
        special, places, sentence = outputs["marks"]
        scores_TL = softmax(floats(outputs["logits"][0]))
        ids_T = outputs["input_ids"][0].tolist()
        names = self.tokenizer.convert_ids_to_tokens(ids_T)
        continues = self._continues_words
        tokens = []
        for i in np.flatnonzero(special[: len(special)] == 0):
            start, end = (int(place) for place in places[i])
            written = sentence[start:end]
            word = names[i]
            # WordPiece marks a token inside a word, and so the token is longer than what stands in the text.
            inside = (
                len(word) != len(written) if continues else start > 0 and " " not in sentence[start - 1 : start + 1]
            )
            if ids_T[i] == self.tokenizer.unk_token_id:
                word, inside = written, False
            tokens.append(
                {"word": word, "scores": scores_TL[i], "start": start, "end": end, "index": int(i), "inside": inside}
            )
        return tokens

    @property
    def _continues_words(self) -> bool:
        """The tokenizer marks tokens inside words, as WordPiece does."""
        engine = getattr(self.tokenizer, "_tokenizer", None)
        return bool(getattr(getattr(engine, "model", None), "continuing_subword_prefix", None))

    def aggregate(self, tokens: list[Entity], strategy: AggregationStrategy) -> list[Entity]:
        """Return the labels of tokens, or the entities that a strategy makes of them."""
        if strategy not in BY_WORDS:
            labels = [self._labelled(each["scores"]) | _place(each) for each in tokens]
            return labels if strategy is AggregationStrategy.NONE else self._grouped(labels)
        words: list[list[Entity]] = []
        for each in tokens:
            if each["inside"] and words:
                words[-1].append(each)
            else:
                words.append([each])
        return self._grouped([self._word(each, strategy) for each in words])

    def _labelled(self, scores_L: Any) -> Entity:
        best = int(scores_L.argmax())
        return {"entity": self.model.config.id2label[best], "score": float(scores_L[best])}

    def _word(self, tokens: list[Entity], strategy: AggregationStrategy) -> Entity:
        scores = [each["scores"] for each in tokens]
        chosen = {
            AggregationStrategy.FIRST: lambda: scores[0],
            AggregationStrategy.MAX: lambda: max(scores, key=lambda each: each.max()),
            AggregationStrategy.AVERAGE: lambda: np.nanmean(np.stack(scores), axis=0),
        }[strategy]()
        return self._labelled(chosen) | self._written(tokens)

    def _written(self, parts: list[Entity]) -> Entity:
        text = self.tokenizer.convert_tokens_to_string([each["word"] for each in parts])
        return {"word": text, "start": parts[0]["start"], "end": parts[-1]["end"]}

    def _grouped(self, entities: list[Entity]) -> list[Entity]:
        """Join neighbours with the same label, where the later one does not begin (B-) another entity."""
        groups: list[list[Entity]] = []
        for entity in entities:
            same = groups and _tag(groups[-1][-1]["entity"]) == _tag(entity["entity"])
            if same and not entity["entity"].startswith("B-"):
                groups[-1].append(entity)
            else:
                groups.append([entity])
        return [
            {
                "entity_group": group[0]["entity"].split("-", 1)[-1],
                "score": float(np.nanmean([each["score"] for each in group])),
                **self._written(group),
            }
            for group in groups
        ]


NerPipeline = TokenClassificationPipeline


def _place(token: Entity) -> Entity:
    return {name: token[name] for name in ("index", "word", "start", "end")}


def _tag(label: str) -> str:
    """Return a label without the mark of the scheme of beginnings (B-) and insides (I-)."""
    return label[2:] if label.startswith(("B-", "I-")) else label


def _joined_words(words: list[str], delimiter: str) -> tuple[list[int], str]:
    """Return the places where words start in the text that they form, and the text."""
    starts, place = [], 0
    for word in words:
        starts.append(place)
        place += len(word) + len(delimiter)
    return starts, delimiter.join(words)


def _without_overlaps(entities: list[Entity]) -> list[Entity]:
    """Of entities that overlap, keep the longest; of equals the likelier."""
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda each: each["start"]):
        if kept and entity["start"] < kept[-1]["end"]:
            kept[-1] = max(kept[-1], entity, key=lambda each: (each["end"] - each["start"], each["score"]))
        else:
            kept.append(entity)
    return kept
