"""The commands on whole folders of well-known models: the texts, vectors, scores and labels are transformers'."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support import whole_folders
from support.serve_process import client_of, serving
from support.small_server import KEY, Running, post, running

from tallow.cli import main, serve
from tallow.errors import TallowError
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access

pytestmark = [
    pytest.mark.skipif(bool(whole_folders.missing()), reason=whole_folders.missing()),
    pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses"),
    pytest.mark.filterwarnings("always::tallow.errors.TallowWarning"),  # which commands print
]
ATOL = 1e-5  # both compute in float32
SHOWN = 2e-4  # of a probability that is printed in percent, with two digits
STEPS = 10
PROMPT = "The cat sat on the"
TEXTS = ["A cat sleeps on the sofa.", "Where do cats sleep?", "query: café 你好"]
QUERY = "Where do cats sleep?"
CHAT = [{"role": "user", "content": "Hello there!"}]
# What commands say about a folder, in one line; of the others nothing.
WARNED = {"gpt2-medium": "GPT2Config does not know these entries, and ignores them: 'n_special' (0), "}

Folders = Callable[[str], Path]
Run = Callable[..., str]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Return a function that gives the folder of a model."""
    place = tmp_path_factory.mktemp("folders")

    def folder(name: str) -> Path:
        path = place / name
        return path if path.exists() else whole_folders.write(path, whole_folders.FOLDERS[name]())

    return folder


@pytest.fixture
def run(folders: Folders, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command on the folder of a model, and returns what it prints."""

    def command(command: str, model: str, *arguments: str) -> str:
        status = main([command, *arguments, "--model", str(folders(model))])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        warned = [line for line in printed.err.splitlines() if "warning" in line]
        assert len(warned) <= (model in WARNED), warned
        assert all(line.startswith(f"tallow {command}: warning: ") and WARNED[model] in line for line in warned)
        return printed.out

    return command


def reference(folder: Path, kind: str) -> tuple[Any, Any]:
    """Return transformers' tokenizer and model."""
    model = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(folder, dtype=torch.float32)
    return transformers.AutoTokenizer.from_pretrained(folder), model.eval()


def continued(folder: Path, text: str | None = None) -> str:
    """Return what transformers writes after the text, or after the start of the chat."""
    tokenizer, model = reference(folder, "CausalLM")
    if text is None:
        text = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
        tokens = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
    else:
        tokens = tokenizer(text, return_tensors="pt").input_ids
    greedy = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None, "max_length": None}
    mask = torch.ones_like(tokens)
    made = model.generate(tokens, attention_mask=mask, max_new_tokens=STEPS, pad_token_id=0, **greedy)[0]
    before, after = (tokenizer.decode(ids, skip_special_tokens=True) for ids in (tokens[0], made))
    assert after.startswith(before)
    return str(after[len(before) :])


@pytest.mark.parametrize("name", ["bert-base-uncased", "bert-base-uncased of vocab.txt", "roberta-base"])
def test_fill_mask(name: str, folders: Folders, run: Run) -> None:
    tokenizer, model = reference(folders(name), "MaskedLM")
    inputs = tokenizer(f"The sky is {tokenizer.mask_token}.", return_tensors="pt")
    place = inputs.input_ids[0].tolist().index(tokenizer.mask_token_id)
    best = model(**inputs).logits[0, place].softmax(-1).topk(5)
    lines = [line.split(maxsplit=1) for line in run("fill-mask", name, "The sky is [MASK].").splitlines()]
    assert [word for _, word in lines] == [tokenizer.decode([token]).strip() for token in best.indices.tolist()]
    shown = [float(percent.removesuffix("%")) / 100 for percent, _ in lines]
    np.testing.assert_allclose(shown, best.values.detach().numpy(), atol=SHOWN)


@pytest.mark.parametrize(
    "name", ["all-MiniLM-L6-v2", "bge-small-en-v1.5", "e5-small-v2", "bert-base-uncased", "roberta-base"]
)
def test_embed(name: str, folders: Folders, run: Run) -> None:
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(folders(name)), device="cpu").encode(TEXTS)
    vectors = [json.loads(line)["vector"] for line in run("embed", name, *TEXTS).splitlines()]
    np.testing.assert_allclose(vectors, expected, atol=ATOL)


def test_classify(folders: Folders, run: Run, tmp_path: Path) -> None:
    from PIL import Image

    name = "vit-base-patch16-224"
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    classify = transformers.pipeline("image-classification", model=str(folders(name)), device="cpu")
    expected = classify(str(tmp_path / "picture.png"))
    found = json.loads(run("classify", name, "--json", str(tmp_path / "picture.png")))["labels"]
    assert [each["label"] for each in found] == [each["label"] for each in expected]
    np.testing.assert_allclose([each["score"] for each in found], [each["score"] for each in expected], atol=1e-3)


@pytest.mark.parametrize("name", ["gpt2-medium", "distilgpt2", "Llama-2-7b-chat-hf", "Qwen2.5-3B"])
def test_generate(name: str, folders: Folders, run: Run) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders(name))
    steps = len(tokenizer(PROMPT).input_ids) + STEPS - 1  # positions that the model reads
    text = run("generate", name, PROMPT, "--temperature", "0", "--steps", str(steps))
    assert text.removesuffix("\n") == PROMPT + continued(folders(name), PROMPT)


@pytest.mark.parametrize("name", ["t5-small", "opus-mt-en-es"])
def test_generate_from_a_source(name: str, folders: Folders, run: Run) -> None:
    """Without options as `generation_config.json` says: opus-mt searches with beams."""
    tokenizer, model = reference(folders(name), "Seq2SeqLM")
    made = model.generate(**tokenizer(PROMPT, return_tensors="pt"), max_new_tokens=STEPS, max_length=None)[0]
    text = run("generate", name, PROMPT, "--steps", str(STEPS))
    assert text.strip() == tokenizer.decode(made, skip_special_tokens=True) != ""


CHATS = ["Llama-2-7b-chat-hf", "Qwen2.5-3B", "SmolLM2-135M-Instruct", "gemma-2-2b-it"]


@pytest.mark.parametrize("name", CHATS)
def test_chat(name: str, folders: Folders, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallow.cli.chat.lines_of_stdin", lambda: iter([CHAT[0]["content"]]))
    text = run("chat", name, "--max-tokens", str(STEPS), "--temperature", "0")
    assert text.strip() == continued(folders(name)).strip() != ""


def test_transcribe(folders: Folders, run: Run, tmp_path: Path) -> None:
    name, path = "whisper-tiny", str(tmp_path / "noise.wav")
    samples = (np.random.default_rng(0).standard_normal(30 * 16000) * 3000).astype("<i2")
    samples[-800:] = 0  # the two libraries continue the sound in other ways
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())
    processor = transformers.WhisperProcessor.from_pretrained(folders(name))
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folders(name)).eval()
    features = processor(samples / np.float32(1 << 15), sampling_rate=16000, return_tensors="pt").input_features
    length = model.config.max_target_positions // 2  # as OpenAI's code does
    made = model.generate(features, language="en", task="transcribe", max_new_tokens=length, max_length=None)
    expected = processor.batch_decode(made, skip_special_tokens=True)[0]
    accept = ["--logprob-threshold=-inf", "--compression-ratio-threshold=inf", "--no-speech-threshold=inf"]
    text = run("transcribe", name, path, "--language", "en", "--without-timestamps", *accept)
    assert text.strip() == expected.strip() != ""


# --------------------------------------------------------------------------------------------------------- the server


@contextmanager
def served(*options: str) -> Iterator[Running]:
    """Run what `tallow serve` runs, in this process."""
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    catalog = serve.load(parser.parse_args(options))
    with running(make_app(catalog, Access((KEY,))), catalog) as server:
        yield server


def ask(server: Running, path: str, **body: Any) -> Any:
    status, answer, _ = post(server, path, body)
    assert status == 200, answer
    return answer


@pytest.mark.parametrize("name", ["gpt2-medium", "distilgpt2", *CHATS])
def test_serve_texts(name: str, folders: Folders) -> None:
    options = {"temperature": 0, "max_tokens": STEPS}
    with served("--model", str(folders(name)), "--slots", "1", "--prefix-cache", "1") as server:
        if name in CHATS:
            answer = ask(server, "/v1/chat/completions", messages=CHAT, **options)["choices"][0]["message"]["content"]
            expected = continued(folders(name))
        else:
            answer = ask(server, "/v1/completions", prompt=PROMPT, **options)["choices"][0]["text"]
            expected = continued(folders(name), PROMPT)
    assert answer.strip() == expected.strip() != ""


@pytest.mark.parametrize("name", ["cross-encoder, old", "cross-encoder, new"])
def test_rerank(name: str, folders: Folders) -> None:
    """`raw_scores` are what sentence-transformers gives: both forms of the folder ask for logits."""
    from sentence_transformers import CrossEncoder

    expected = CrossEncoder(str(folders(name)), device="cpu").predict([(QUERY, text) for text in TEXTS])
    with served("--rerank", str(folders(name))) as server:
        for raw in (True, False):
            answer = ask(server, "/rerank", query=QUERY, texts=TEXTS, raw_scores=raw)
            wanted = expected if raw else 1 / (1 + np.exp(-expected))
            assert [each["index"] for each in answer] == np.argsort(-expected).tolist()
            np.testing.assert_allclose([each["score"] for each in answer], np.sort(wanted)[::-1], atol=ATOL)


def test_predict(folders: Folders) -> None:
    classify = transformers.pipeline("text-classification", model=str(folders("nli")), device="cpu", top_k=None)
    with served("--rerank", str(folders("nli"))) as server:
        for text in TEXTS:
            expected, found = classify([text])[0], ask(server, "/predict", inputs=text)
            assert [each["label"] for each in found] == [each["label"] for each in expected]
            np.testing.assert_allclose(
                [each["score"] for each in found], [each["score"] for each in expected], atol=ATOL
            )


def test_serve_as_a_process(folders: Folders, tmp_path: Path) -> None:
    """One server of three folders; its log has no warnings."""
    from sentence_transformers import SentenceTransformer

    chat, encoder, ranker = (folders(name) for name in ("SmolLM2-135M-Instruct", "e5-small-v2", "cross-encoder, new"))
    options = ["--model", str(chat), "--embed", str(encoder), "--rerank", str(ranker)]
    with serving(*options, cwd=tmp_path) as (_, url):
        client = client_of(url)
        answer = client.chat.completions.create(model=chat.name, messages=CHAT, temperature=0, max_tokens=STEPS)  # type: ignore[arg-type]
        vectors = [each.embedding for each in client.embeddings.create(model=encoder.name, input=TEXTS).data]
    assert answer.choices[0].message.content == continued(chat)
    np.testing.assert_allclose(vectors, SentenceTransformer(str(encoder), device="cpu").encode(TEXTS), atol=ATOL)
    assert "warning" not in (tmp_path / "log").read_text()


# ------------------------------------------------------------------------------------------- what people do wrong


def shortened(name: str, size: int = 20000) -> Callable[[Path], None]:
    def shorten(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:size])

    return shorten


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def adapter(folder: Path) -> None:
    without("config.json")(folder)
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 16}))


def gguf(folder: Path) -> None:
    without("config.json", "model.safetensors")(folder)
    (folder / "model-q8_0.gguf").write_bytes(b"GGUF")


def config_of_another(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(whole_folders.FOLDERS["bert-base-uncased"]().files["config.json"]))


TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")
# Model, what is wrong, command and its arguments -> words of the error, and what to do.
MISTAKES: dict[str, tuple[str, Callable[[Path], None], list[str], str]] = {
    "no weights": (
        "distilgpt2",
        without("model.safetensors"),
        ["generate", "a"],
        r"FOLDER has neither model\.safetensors nor pytorch_model\.bin.*; pass a model's folder",
    ),
    "no tokenizer": (
        "distilgpt2",
        without(*TOKENIZER_FILES),
        ["generate", "a"],
        r"FOLDER has no tokenizer\.json, and no other files.*; add the files of the model's tokenizer",
    ),
    "a truncated spiece.model": (
        "t5-small",
        shortened("spiece.model"),
        ["generate", "a"],
        r"FOLDER/spiece\.model is no SentencePiece model, or it is truncated: .*; download it again",
    ),
    "a truncated source.spm": (
        "opus-mt-en-es",
        shortened("source.spm"),
        ["generate", "a"],
        r"FOLDER/source\.spm is no SentencePiece model, or it is truncated: .*; download it again",
    ),
    "truncated weights": (
        "distilgpt2",
        shortened("model.safetensors"),
        ["generate", "a"],
        r"FOLDER/model\.safetensors: truncated: .*; download it again",
    ),
    "a truncated config.json": (
        "distilgpt2",
        shortened("config.json", 100),
        ["generate", "a"],
        r"FOLDER/config\.json is not valid JSON: .*; it may be truncated; download it again",
    ),
    "the config of another model": (
        "distilgpt2",
        config_of_another,
        ["fill-mask", "a"],
        r"FOLDER has no weights of a BertForMaskedLM: none of its 30 tensors, .*; use the config.json and the weights",
    ),
    "an adapter": (
        "distilgpt2",
        adapter,
        ["generate", "a"],
        r"FOLDER/config\.json does not exist; the folder is an adapter: load its base model, then the adapter",
    ),
    "a folder of GGUF files": (
        "distilgpt2",
        gguf,
        ["generate", "a"],
        r"FOLDER has GGUF files but no config\.json; pass one of the files: FOLDER/model-q8_0\.gguf",
    ),
    "an encoder that writes": (
        "bert-base-uncased",
        without(),
        ["generate", "a"],
        r"FOLDER is a BertForMaskedLM, not a language model; pass a causal language model",
    ),
    "an encoder-decoder that chats": (
        "t5-small",
        without(),
        ["chat"],
        r"FOLDER is a T5ForConditionalGeneration, not a language model; .*tallow generate takes this one",
    ),
    "a language model without a chat template": (
        "distilgpt2",
        without(),
        ["chat"],
        r"FOLDER has no chat template, so it is not a chat model; use `tallow generate`",
    ),
    "a language model for masks": (
        "distilgpt2",
        without(),
        ["fill-mask", "a"],
        r"FOLDER is a GPT2, not a masked language model; choose a masked language model",
    ),
    "a translator that embeds": (
        "opus-mt-en-es",
        without(),
        ["embed", "a"],
        r"FOLDER/config\.json: MarianMTModel does not compute embeddings of texts; choose an encoder of texts",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_errors_in_one_line(mistake: str, folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, spoil, command, expected = MISTAKES[mistake]
    folder = tmp_path / "folder"
    shutil.copytree(folders(name), folder)
    spoil(folder)
    capsys.readouterr()  # what transformers reported when it made the folder
    assert main([*command, "--model", str(folder)]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    pattern = f"tallow {command[0]}: error: " + expected.replace("FOLDER", re.escape(str(folder)))
    assert re.match(pattern, line), line
    assert printed.out == ""


def test_a_ranker_that_is_none(folders: Folders) -> None:
    message = "BertForMaskedLM does not classify texts\n.*choose a model that does, such as a BERT"
    with pytest.raises(TallowError, match=message), served("--rerank", str(folders("bert-base-uncased"))):
        raise AssertionError("a model for masks ranks texts")
