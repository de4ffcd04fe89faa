"""Cards of images and sounds: ViT, DINOv2, CLIP and Whisper."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transformers.cards.card import LEVELS, SOUND, card

WIDTH = {"size": {"height": 24, "width": 24}}
ANIMALS = {"id2label": {0: "cat", 1: "dog", 2: "fox"}, "label2id": {"cat": 0, "dog": 1, "fox": 2}}
VIT = ("ViTImageProcessor", WIDTH)
BIT = ("BitImageProcessor", {"size": {"shortest_edge": 26}, "crop_size": {"height": 24, "width": 24}})
CLIP = ("CLIPImageProcessor", {"size": {"shortest_edge": 24}, "crop_size": {"height": 24, "width": 24}})


def picture() -> Any:
    return pytest.importorskip("PIL.Image").fromarray(LEVELS)


@card("ViTForImageClassification", VIT, **ANIMALS)
def vit_classifies(tf: Any, torch: Any, name: str) -> Any:
    processor = tf.ViTImageProcessor.from_pretrained(name)
    model = tf.ViTForImageClassification.from_pretrained(name)
    inputs = processor(images=picture(), return_tensors="pt")
    logits = model(**inputs).logits
    predicted_class_idx = logits.argmax(-1).item()
    print("Predicted class:", model.config.id2label[predicted_class_idx])
    return logits


@card("ViTForImageClassification", VIT, **ANIMALS)
def vit_classifies_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    classifier = tf.pipeline("image-classification", model=name)
    return [classifier(picture()), classifier([picture(), picture().rotate(90)], top_k=1)]


@card("ViTModel", VIT)
def vit_features(tf: Any, torch: Any, name: str) -> Any:
    processor = tf.AutoImageProcessor.from_pretrained(name)
    model = tf.ViTModel.from_pretrained(name)
    inputs = processor(images=picture().convert("RGB"), return_tensors="pt")
    with torch.no_grad():
        outputs = model(**inputs)
    return [outputs.last_hidden_state, outputs.pooler_output]


@card("Dinov2Model", BIT)
def dinov2_features(tf: Any, torch: Any, name: str) -> Any:
    processor = tf.AutoImageProcessor.from_pretrained(name)
    model = tf.AutoModel.from_pretrained(name)
    inputs = processor(images=picture(), return_tensors="pt")
    outputs = model(**inputs)
    last_hidden_states = outputs[0]
    traced = outputs.last_hidden_state - last_hidden_states
    return [last_hidden_states[:, 0], traced.abs().max()]


@card("Dinov2ForImageClassification", BIT, **ANIMALS)
def dinov2_classifies(tf: Any, torch: Any, name: str) -> Any:
    processor = tf.AutoImageProcessor.from_pretrained(name)
    model = tf.AutoModelForImageClassification.from_pretrained(name)
    with torch.no_grad():
        outputs = model(**processor(images=[picture()] * 2, return_tensors="pt"))
    probabilities = torch.nn.functional.softmax(outputs.logits, dim=-1)
    return [probabilities, [model.config.id2label[i] for i in probabilities.argmax(-1).tolist()]]


@card("Dinov2Model", BIT)
def dinov2_features_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    pipe = tf.pipeline(task="image-feature-extraction", model=name)
    return pipe(picture())


@card("CLIPModel", CLIP)
def clip_finds_the_text(tf: Any, torch: Any, name: str) -> Any:
    model = tf.CLIPModel.from_pretrained(name)
    processor = tf.CLIPProcessor.from_pretrained(name)
    texts = ["a photo of a cat", "a photo of a lazy dog"]
    inputs = processor(text=texts, images=picture(), return_tensors="pt", padding=True)
    outputs = model(**inputs)
    return [outputs.logits_per_image, outputs.logits_per_image.softmax(dim=1)]


@card("CLIPModel", CLIP)
def clip_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    detector = tf.pipeline("zero-shot-image-classification", model=name)
    labels = ["cats", "a lazy dog", "quick foxes"]
    return detector(picture(), candidate_labels=labels, hypothesis_template="{} in the park")


@card("CLIPModel", CLIP)
def clip_features_apart(tf: Any, torch: Any, name: str) -> Any:
    model = tf.AutoModel.from_pretrained(name)
    processor, tokenizer = tf.AutoProcessor.from_pretrained(name), tf.AutoTokenizer.from_pretrained(name)
    with torch.no_grad():
        images = model.get_image_features(**processor(images=picture(), return_tensors="pt"))
        texts = model.get_text_features(**tokenizer(["a cat", "a quick fox"], padding=True, return_tensors="pt"))
    return [images.pooler_output, texts.pooler_output]


@card("WhisperForConditionalGeneration")
def whisper_transcribes(tf: Any, torch: Any, name: str) -> Any:
    processor = tf.WhisperProcessor.from_pretrained(name)
    model = tf.WhisperForConditionalGeneration.from_pretrained(name)
    input_features = processor(SOUND, sampling_rate=16000, return_tensors="pt").input_features
    predicted_ids = model.generate(input_features)
    with_marks = processor.batch_decode(predicted_ids, skip_special_tokens=False)
    return [predicted_ids, with_marks, processor.batch_decode(predicted_ids, skip_special_tokens=True)]


@card("WhisperForConditionalGeneration")
def whisper_translates_from_a_language(tf: Any, torch: Any, name: str) -> Any:
    processor = tf.AutoProcessor.from_pretrained(name)
    model = tf.AutoModelForSpeechSeq2Seq.from_pretrained(name)
    inputs = processor(SOUND, sampling_rate=16000, return_tensors="pt")
    ids = model.generate(inputs["input_features"], language="french", task="translate", max_new_tokens=8)
    timed = model.generate(inputs["input_features"], language="de", return_timestamps=True, max_new_tokens=8)
    return [processor.batch_decode(ids), processor.batch_decode(timed, skip_special_tokens=True), timed]


@card("WhisperForConditionalGeneration")
def whisper_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    model = tf.AutoModelForSpeechSeq2Seq.from_pretrained(name, dtype=torch.float32, use_safetensors=True)
    model.to("cpu")
    processor = tf.AutoProcessor.from_pretrained(name)
    pipe = tf.pipeline(
        "automatic-speech-recognition",
        model=model,
        tokenizer=processor.tokenizer,
        feature_extractor=processor.feature_extractor,
        dtype=torch.float32,
        device="cpu",
    )
    sample = {"array": SOUND, "sampling_rate": 16000}
    return pipe(sample, generate_kwargs={"language": "english", "max_new_tokens": 8})["text"]
