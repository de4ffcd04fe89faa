"""Every model class: results, hidden states and attentions equal those of transformers on the same folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both
from tests.transformers.folders import Folders

import tallow as tl
from tallow import transformers as tf
from tallow.errors import ArgumentError
from tallow.transformers.configuration_decoders import DECODERS
from tallow.transformers.model_names import NAMES

PIXELS = np.random.default_rng(0).normal(size=(2, 3, 24, 24)).astype(np.float32)
SOUND = np.random.default_rng(1).normal(size=(2, 80, 100)).astype(np.float32)
WAVES = np.random.default_rng(2).normal(size=(2, 700)).astype(np.float32)
IDS = np.arange(5, 17).reshape(2, 6)
# A name of older versions, and classes whose folders the real package does not write.
ELSEWHERE = {"RWForCausalLM", "T5WithLMHeadModel"}
# Models of texts and images, for which there are no small sizes.
ELSEWHERE |= {"Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"}
WITHOUT_DECODER = {
    "MT5EncoderModel",
    "UMT5EncoderModel",
    "T5EncoderModel",
    *(f"{family}ForTokenClassification" for family in ("T5", "MT5", "UMT5")),
    "WhisperForAudioClassification",
}
# Decoders that differ from Llama in a term have the heads of all decoders.
ALIKE = tuple(config.removesuffix("Config") for config in DECODERS.values())
CLASSES = sorted(
    name for name in {*NAMES} - ELSEWHERE if not name.startswith(ALIKE) or name.endswith(("ForCausalLM", "Olmoe"))
)


def inputs_of(model: Any, torch: Any) -> dict[str, Any]:
    ids = torch.tensor(IDS)
    if type(model).__name__.endswith("ForMultipleChoice"):
        ids = torch.tensor(IDS.reshape(2, 2, 3))
    if model.config.is_encoder_decoder and type(model).__name__.endswith("ForSequenceClassification"):
        ids[:, -2] = model.config.eos_token_id  # where the vector of a text lies
    texts: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.main_input_name == "input_features":
        written = {} if type(model).__name__ in WITHOUT_DECODER else {"decoder_input_ids": ids}
        return {"input_features": torch.tensor(SOUND), **written}
    if model.main_input_name == "input_values":
        mask = np.ones(WAVES.shape, np.int64)
        mask[1, 500:] = 0
        return {"input_values": torch.tensor(WAVES), "attention_mask": torch.tensor(mask)}
    if model.config.model_type == "detr":
        mask = np.ones((2, 24, 24), np.int64)
        mask[1, 17:] = mask[1, :, 12:] = 0
        return {"pixel_values": torch.tensor(PIXELS), "pixel_mask": torch.tensor(mask)}
    if model.config.model_type == "blip":
        answers = {"labels": ids} if type(model).__name__.endswith("ForQuestionAnswering") else {}
        return texts | answers | {"pixel_values": torch.tensor(PIXELS)}
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.tensor(PIXELS)}
    if model.config.model_type == "clip":
        return texts | {"pixel_values": torch.tensor(PIXELS)}
    is_written = model.config.is_encoder_decoder and type(model).__name__ not in WITHOUT_DECODER
    return texts | ({"decoder_input_ids": ids} if is_written else {})


def entries(result: Any) -> dict[str, Any]:
    """Return a result without its cache, which is only as long as the other's."""
    past = result.get("past_key_values")
    others = {name: value for name, value in result.items() if name != "past_key_values"}
    return others if past is None else others | {"length": past.get_seq_length()}


@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask:UserWarning")  # of transformers' WavLM
@pytest.mark.parametrize("name", CLASSES)
def test_results(name: str, folders: Folders) -> None:
    folder = folders(name)

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder, attn_implementation="eager")
        with torch.no_grad():
            inputs = inputs_of(model, torch)
            cache = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
            result = model(**inputs, output_hidden_states=True, output_attentions=True, **cache)
            plain = model(**inputs, return_dict=False)
        return [entries(result), plain[0], model.training]

    # The pooler of MobileBERT reads states far larger than 1, with what rounding left of them.
    both(program, tol=3e-4 if name.startswith("MobileBert") else 1e-4)


@pytest.mark.parametrize("name", [f"{family}ForSequenceClassification" for family in ("Bart", "MBart", "T5")])
def test_texts_after_padding_are_labelled_and_trained(name: str, folders: Folders) -> None:
    """The decoder reads the source where it gets no text; a loss and its gradients follow."""
    folder = folders(name)

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder, attn_implementation="eager")
        ids = torch.tensor(IDS)
        ids[0, 3], ids[0, 4:], ids[1, 5] = (
            model.config.eos_token_id,
            model.config.pad_token_id,
            model.config.eos_token_id,
        )
        result = model(ids, attention_mask=(ids != model.config.pad_token_id).long(), labels=torch.tensor([0, 1]))
        result.loss.backward()
        return [
            entries(result),
            model.classification_head.out_proj.weight.grad,
            model.get_input_embeddings().weight.grad,
        ]

    both(program)


@pytest.mark.parametrize("name", ["BartForQuestionAnswering", "T5ForQuestionAnswering"])
def test_answers_are_trained(name: str, folders: Folders) -> None:
    folder = folders(name)

    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForQuestionAnswering.from_pretrained(folder, attn_implementation="eager")
        result = model(torch.tensor(IDS), start_positions=torch.tensor([1, 9]), end_positions=torch.tensor([3, 2]))
        result.loss.backward()
        return [entries(result), model.qa_outputs.bias.grad, model.get_input_embeddings().weight.grad]

    both(program)


def test_tokens_of_t5_are_trained(folders: Folders) -> None:
    folder = folders("T5ForTokenClassification")

    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForTokenClassification.from_pretrained(folder)
        ids = torch.tensor(IDS)
        result = model(inputs_embeds=model.get_input_embeddings()(ids), labels=torch.where(ids > 8, 1, -100))
        result.loss.backward()
        return [entries(result), model.classifier.weight.grad, model.get_input_embeddings().weight.grad]

    both(program)


@pytest.mark.parametrize("summed", [False, True])
def test_sounds_are_labelled_and_trained(summed: bool, folders: Folders) -> None:
    folder = folders("WhisperForAudioClassification", use_weighted_layer_sum=summed, num_labels=3)

    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForAudioClassification.from_pretrained(folder)
        model.freeze_encoder()
        result = model(torch.tensor(SOUND), labels=torch.tensor([2, 0]))
        result.loss.backward()
        again = model(encoder_outputs=(result.logits, result.hidden_states)) if summed else result
        return [entries(result), entries(again), model.projector.weight.grad, model.encoder.conv1.weight.grad]

    both(program)


@pytest.mark.parametrize("name", ["BertModel", "DistilBertModel", "RobertaModel", "ModernBertModel", "BertForMaskedLM"])
@pytest.mark.parametrize("additive", [False, True])
def test_encoders_take_what_each_position_sees(name: str, additive: bool, folders: Folders) -> None:
    folder = folders(name)
    seen = np.tril(np.ones((2, 1, 6, 6), bool))
    seen[1, 0, :, 3] = False
    seen[1, 0, 3, 3] = True

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder)
        mask = torch.tensor(seen)
        if additive:
            mask = torch.zeros(2, 1, 6, 6).masked_fill(~mask, torch.finfo(torch.float32).min)
        with torch.no_grad():
            return model(torch.tensor(IDS), attention_mask=mask)[0]

    both(program)


def test_other_masks_of_four_dimensions_are_errors(folders: Folders) -> None:
    model = tf.BertModel.from_pretrained(folders("BertModel"))
    for mask, words in ((tl.ones(2, 1, 6, 5), "shape"), (tl.full((2, 1, 6, 6), -0.5), "scores")):
        with pytest.raises(ArgumentError, match=words):
            model(tl.tensor(IDS), attention_mask=mask)
