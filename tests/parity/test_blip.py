"""BLIP compared with transformers on the same folder: logits, captions and answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.image_folders import saved_blip

import tallow as tl
import tallow.transformers as our_transformers
from tallow.cli import main
from tallow.errors import ArgumentError, CheckpointError
from tallow.models import AutoModel, ImageCaptioner

PICTURE = np.random.default_rng(0).integers(0, 256, (50, 61, 3), np.uint8)
PIXELS = np.random.default_rng(1).normal(size=(2, 3, 24, 24)).astype(np.float32)
IDS = np.array([[4, 5, 6, 7], [8, 3, 2, 5]])


@pytest.mark.parametrize("options", [{}, {"hidden_act": "gelu_new", "tie_word_embeddings": False}])
def test_captions_are_computed_as_by_transformers(options: dict[str, Any], tmp_path: Path) -> None:
    theirs = saved_blip(tmp_path, "ForConditionalGeneration", **options)
    model = AutoModel.from_pretrained(tmp_path)
    with torch.no_grad():
        expected = theirs(torch.tensor(PIXELS), torch.tensor(IDS))
    with tl.no_grad():
        logits, images = model(tl.tensor(PIXELS), tl.tensor(IDS))
        large = model.vision_model(tl.tensor(PIXELS[:, :, :17, :23]), interpolate_pos_encoding=True)
    assert expected.logits.std(1).max() > 0.01
    np.testing.assert_allclose(logits.numpy(), expected.logits.numpy(), atol=1e-4)
    np.testing.assert_allclose(images.numpy(), expected.image_embeds.numpy(), atol=1e-4)
    with torch.no_grad():
        resized = theirs.vision_model(torch.tensor(PIXELS[:, :, :17, :23]), interpolate_pos_encoding=True)
    np.testing.assert_allclose(large.pooler_output.numpy(), resized.pooler_output.numpy(), atol=1e-4)


def test_answers_are_computed_as_by_transformers(tmp_path: Path) -> None:
    theirs = saved_blip(tmp_path, "ForQuestionAnswering")
    model = AutoModel.from_pretrained(tmp_path)
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    with torch.no_grad():
        arguments = (torch.tensor(IDS), torch.tensor(PIXELS))
        encoded = theirs.vision_model(arguments[1])[0]
        question = theirs.text_encoder(
            arguments[0],
            torch.tensor(mask),
            encoder_hidden_states=encoded,
            encoder_attention_mask=torch.ones(encoded.shape[:2]),
        )[0]
        expected = theirs.text_decoder(
            torch.tensor(IDS[:, :3]), encoder_hidden_states=question, encoder_attention_mask=torch.tensor(mask)
        ).logits
    with tl.no_grad():
        found, _ = model(tl.tensor(IDS), tl.tensor(PIXELS), tl.tensor(IDS[:, :3]), tl.tensor(mask))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_what_is_written_is_that_of_transformers(beams: int, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image").fromarray(PICTURE)
    saved_blip(tmp_path / "captions", "ForConditionalGeneration")
    saved_blip(tmp_path / "answers", "ForQuestionAnswering")
    processor = transformers.BlipProcessor.from_pretrained(tmp_path / "captions")
    for text in (None, "a photo of"):
        model = transformers.BlipForConditionalGeneration.from_pretrained(tmp_path / "captions")
        inputs = processor(images=image, text=text, return_tensors="pt")
        ids = model.generate(**inputs, max_new_tokens=9, num_beams=beams)[0]
        captioner = ImageCaptioner.from_pretrained(tmp_path / "captions")
        written = "".join(captioner.caption(PICTURE, text or "", max_tokens=9, num_beams=beams))
        assert written
        assert f"<s> {text or ''} {written}".split() == processor.decode(ids, skip_special_tokens=True).split()
    model = transformers.BlipForQuestionAnswering.from_pretrained(tmp_path / "answers")
    inputs = processor(images=image, text="two dogs ?", return_tensors="pt")
    ids = model.generate(**inputs, max_new_tokens=9, num_beams=beams)[0]
    answerer = ImageCaptioner.from_pretrained(tmp_path / "answers")
    written = "".join(answerer.answer(PICTURE, "two dogs ?", max_tokens=9, num_beams=beams))
    assert f"<s> {written}".split() == processor.decode(ids, skip_special_tokens=True).split()


def expect_alike(found: Any, expected: Any) -> None:
    """Compare the tensors of two results, by their names."""
    if isinstance(expected, torch.Tensor):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-4)
    elif isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            expect_alike(one, other)
    elif isinstance(expected, dict):
        assert set(found.keys()) == set(expected.keys())
        for name, value in expected.items():
            expect_alike(found[name], value)


def test_states_and_attentions_of_what_is_written_are_those_of_transformers(tmp_path: Path) -> None:
    theirs = saved_blip(tmp_path, "ForConditionalGeneration")
    ours = our_transformers.BlipForConditionalGeneration.from_pretrained(tmp_path)
    wanted = {"output_attentions": True, "output_hidden_states": True, "return_dict_in_generate": True}
    for options in ({"num_beams": 2}, {"use_cache": False}):
        expected = theirs.generate(torch.tensor(PIXELS), max_new_tokens=3, **wanted, **options)
        found = ours.generate(tl.tensor(PIXELS), max_new_tokens=3, **wanted, **options)
        expect_alike(found, expected)


@pytest.mark.parametrize("kind", ["ForConditionalGeneration", "ForQuestionAnswering"])
def test_padding_that_a_loss_counts_does_not_see_itself(kind: str, tmp_path: Path) -> None:
    theirs = saved_blip(tmp_path, kind)
    ours = getattr(our_transformers, f"Blip{kind}").from_pretrained(tmp_path)
    texts = {"input_ids": IDS, "pixel_values": PIXELS, "labels": IDS}
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    texts |= {"attention_mask" if kind == "ForConditionalGeneration" else "decoder_attention_mask": mask}
    expected = theirs(**{name: torch.tensor(value) for name, value in texts.items()})
    expect_alike(ours(**{name: tl.tensor(value) for name, value in texts.items()}), expected)


def test_captions_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image")
    saved_blip(tmp_path / "captions", "ForConditionalGeneration")
    saved_blip(tmp_path / "answers", "ForQuestionAnswering")
    (tmp_path / "photos").mkdir()
    image.fromarray(PICTURE).save(tmp_path / "photos/a.png")
    (tmp_path / "photos/b.png").write_bytes(b"no picture")
    photos, captions, answers = (str(tmp_path / name) for name in ("photos", "captions", "answers"))
    assert main(["caption", photos, "--model", captions, "--prompt", "this is", "--json", "--max-tokens", "4"]) == 1
    output = capsys.readouterr()
    assert "b.png cannot be read" in output.err
    expected = "".join(ImageCaptioner.from_pretrained(captions).caption(PICTURE, "this is", max_tokens=4))
    assert json.loads(output.out)["caption"] == ("this is" + expected).strip()
    assert main(["caption", photos + "/a.png", "--model", answers, "--question", "two dogs"]) == 0
    assert "a.png  " in capsys.readouterr().out
    assert main(["caption", photos + "/a.png", "--model", answers]) == 2
    assert "--question" in capsys.readouterr().err


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    saved_blip(tmp_path, "ForConditionalGeneration")
    captioner = ImageCaptioner.from_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="writes captions"):
        captioner.answer(PICTURE, "how many?")
    with pytest.raises(ArgumentError, match=r"positions|context"):
        "".join(captioner.caption(PICTURE, "a " * 40))
    entries = json.loads((tmp_path / "config.json").read_text())
    entries["text_config"]["num_hidden_layers"] = 10**9
    (tmp_path / "config.json").write_text(json.dumps(entries))
    with pytest.raises(CheckpointError, match="num_hidden_layers"):
        ImageCaptioner.from_pretrained(tmp_path)
