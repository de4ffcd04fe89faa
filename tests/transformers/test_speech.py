"""wav2vec2, HuBERT, WavLM and VITS: losses, preparation, letters, transcripts and spoken texts, as in transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.folders import Folders

from tallow import transformers as tf
from tallow.errors import ArgumentError, AudioError, NumericError, UnsupportedError
from tallow.models.speech import vits, vits_flows

# transformers' WavLM passes PyTorch masks of two kinds.
pytestmark = pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask:UserWarning")
LETTERS = {
    "<pad>": 0,
    "<s>": 1,
    "</s>": 2,
    "<unk>": 3,
    "|": 4,
    "E": 5,
    "T": 6,
    "A": 7,
    "O": 8,
    "N": 9,
    "I": 10,
    "H": 11,
}
WAVES = np.random.default_rng(2).normal(size=(2, 700)).astype(np.float32)
SOUND = np.random.default_rng(3).normal(size=4000).astype(np.float32)
IDS = [11, 11, 0, 5, 5, 0, 5, 4, 4, 6, 0, 7, 3, 1, 4, 9, 0, 0]


@pytest.fixture
def letters(tmp_path: Path) -> str:
    """Return the path of a vocabulary."""
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps(LETTERS))
    return str(path)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("Wav2Vec2ForCTC", [[5, 6, 6], [7, -100, -100]]),
        ("HubertForCTC", [[5, 6, 6], [7, 0, -100]]),
        ("Wav2Vec2ForSequenceClassification", [1, 0]),
        ("WavLMForXVector", [1, 0]),
    ],
)
def test_losses(name: str, labels: Any, folders: Folders) -> None:
    folder = folders(name)

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder)
        model.freeze_feature_encoder()
        mask = torch.ones(2, 700, dtype=torch.long)
        mask[1, 600:] = 0
        result = model(torch.tensor(WAVES), attention_mask=mask, labels=torch.tensor(labels))
        result.loss.backward()
        projection = getattr(model, model.base_model_prefix).feature_projection.projection
        return [result.loss, projection.weight.grad]

    both(program)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Wav2Vec2ForCTC", {"do_stable_layer_norm": True, "feat_extract_norm": "layer", "adapter_attn_dim": 5}),
        ("HubertModel", {"conv_pos_batch_norm": True, "feat_proj_layer_norm": False, "num_conv_pos_embeddings": 7}),
        ("WavLMForSequenceClassification", {"do_stable_layer_norm": True, "use_weighted_layer_sum": True}),
    ],
)
def test_variants(name: str, sizes: dict[str, Any], folders: Folders) -> None:
    folder = folders(name, **sizes)

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder)
        with torch.no_grad():
            return [model(torch.tensor(WAVES))[0], sorted(model.state_dict())]

    both(program)


def test_older_files_name_the_parts_of_weight_norm_otherwise(folders: Folders, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = Path(folders("Wav2Vec2Model"))
    state = load_file(folder / "model.safetensors")
    renamed = {
        key.replace("parametrizations.weight.original0", "weight_g").replace(
            "parametrizations.weight.original1", "weight_v"
        ): value
        for key, value in state.items()
        if key != "masked_spec_embed"  # which some files lack
    }
    assert any(key.endswith("conv.weight_g") for key in renamed)
    save_file(renamed, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    one, other = (tf.Wav2Vec2Model.from_pretrained(path) for path in (folder, tmp_path))
    key = "encoder.pos_conv_embed.conv.parametrizations.weight.original1"
    np.testing.assert_array_equal(one.state_dict()[key].numpy(), other.state_dict()[key].numpy())


def test_sounds_are_prepared() -> None:
    sounds = [WAVES[0], WAVES[1, :500]]

    def program(tf: Any, torch: Any) -> Any:
        extractor = tf.Wav2Vec2FeatureExtractor(return_attention_mask=True)
        plain = tf.Wav2Vec2FeatureExtractor(do_normalize=False, padding_value=0.5)
        return [
            extractor(sounds, sampling_rate=16000, padding=True, return_tensors="pt"),
            extractor(sounds, sampling_rate=16000, padding=True, return_attention_mask=False, return_tensors="np"),
            extractor(WAVES[0].tolist(), sampling_rate=16000, return_tensors="np"),
            plain(sounds, sampling_rate=16000, padding="max_length", max_length=600, truncation=True)["input_values"],
            extractor(sounds, sampling_rate=16000, padding=True, pad_to_multiple_of=64, return_tensors="pt"),
        ]

    both(program)
    both_raise(lambda tf, torch: tf.Wav2Vec2FeatureExtractor()(WAVES[0], sampling_rate=8000), errors=ArgumentError)


def test_letters(letters: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.Wav2Vec2CTCTokenizer(letters)
        found = tokenizer.decode(IDS, output_char_offsets=True, output_word_offsets=True)
        lower = tf.Wav2Vec2CTCTokenizer(letters, do_lower_case=True)
        return [
            tokenizer(["HE ATE", "NO"], padding=True)["input_ids"],
            tokenizer("TEA x<s>A")["input_ids"],
            tokenizer.decode(IDS),
            tokenizer.decode(IDS, skip_special_tokens=True),
            tokenizer.decode(IDS, group_tokens=False),
            tokenizer.batch_decode([IDS, IDS[3:]]),
            [found.text, found.char_offsets, found.word_offsets],
            lower("he ate")["input_ids"],
            lower.decode(IDS),
            [tokenizer.vocab_size, tokenizer.word_delimiter_token, tokenizer.pad_token_id],
        ]

    both(program)


def test_letters_of_several_languages(tmp_path: Path) -> None:
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({"eng": LETTERS, "deu": {**LETTERS, "Ü": 12}}))
    tokenizer = tf.Wav2Vec2CTCTokenizer(str(path), target_lang="eng")
    assert tokenizer("Ü")["input_ids"] == [3]
    tokenizer.set_target_lang("deu")
    assert tokenizer("Ü")["input_ids"] == [12]
    with pytest.raises(ArgumentError, match="eng, deu"):
        tokenizer.set_target_lang("fra")


def speech_folder(folders: Folders, letters: str, name: str) -> str:
    """Return a folder with a model and what prepares its inputs, of transformers."""
    import transformers

    folder = folders(name)
    transformers.Wav2Vec2CTCTokenizer(letters).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    return folder


def test_speech_is_transcribed(folders: Folders, letters: str) -> None:
    folder = speech_folder(folders, letters, "Wav2Vec2ForCTC")

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("automatic-speech-recognition", model=folder, device=-1)
        parts = {"chunk_length_s": 0.1, "stride_length_s": (0.02, 0.01)}
        return [
            pipe(SOUND),
            pipe(SOUND, return_timestamps="char"),
            pipe(SOUND, return_timestamps="word", **parts),
            pipe(SOUND, chunk_length_s=0.1, batch_size=2)["text"],
            pipe([{"raw": SOUND[:900], "sampling_rate": 16000}, SOUND[:1000]]),
        ]

    both(program)
    pipe = tf.pipeline("automatic-speech-recognition", model=folder)
    for sound, error, words in (
        (SOUND[:0], AudioError, "without samples"),
        (np.full(900, np.nan, np.float32), AudioError, "NaN"),
        (np.zeros((6, 900), np.float32), ArgumentError, "two channels"),
        (np.broadcast_to(np.float32(0), 6 * 3600 * 16000), ArgumentError, "chunk_length_s"),
    ):
        with pytest.raises(error, match=words):
            pipe(sound)
    with pytest.raises(ArgumentError, match="char"):
        pipe(SOUND, return_timestamps=True)
    for lengths in ((0.1, -0.05), (0.1, (0, -0.05)), (0.1, (0, 0, 0)), (np.nan, None), (np.inf, 0)):
        with pytest.raises(ArgumentError, match="chunk_length_s="):
            pipe(SOUND, chunk_length_s=lengths[0], stride_length_s=lengths[1])
    whole, rest = SOUND[:1600], np.zeros(5, np.float32)  # the rest is shorter than a frame, which says nothing
    parts: Any = {"chunk_length_s": 0.1, "stride_length_s": 0}
    assert pipe(np.concatenate([whole, rest]), **parts) == pipe(whole, **parts)


def test_sounds_are_labelled(folders: Folders, letters: str) -> None:
    folder = speech_folder(folders, letters, "HubertForSequenceClassification")

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("audio-classification", model=folder, device=-1)
        return [
            pipe(SOUND, top_k=1),
            pipe({"array": SOUND, "sampling_rate": 16000}),
            pipe([SOUND, SOUND[:900]], top_k=2),
        ]

    both(program)


def test_processors(folders: Folders, letters: str, tmp_path: Path) -> None:
    folder = speech_folder(folders, letters, "Wav2Vec2ForCTC")

    def program(tf: Any, torch: Any) -> Any:
        processor = tf.AutoProcessor.from_pretrained(folder)
        features = processor(WAVES[0], sampling_rate=16000, return_tensors="np")["input_values"]
        return [type(processor).__name__, features, processor(text="HE")["input_ids"], processor.decode(IDS)]

    both(program)
    tf.AutoProcessor.from_pretrained(folder).save_pretrained(tmp_path)
    assert tf.Wav2Vec2Processor.from_pretrained(tmp_path).decode(IDS) == "HEE TA<unk><s> N"


def test_the_task_follows_from_the_head(folders: Folders, letters: str) -> None:
    folder = speech_folder(folders, letters, "Wav2Vec2ForCTC")
    assert type(tf.pipeline(model=folder)).__name__ == "LetterRecognition"
    with pytest.raises(UnsupportedError, match="choose a Whisper"):
        tf.AutomaticSpeechRecognitionPipeline(tf.Wav2Vec2Model.from_pretrained(folder))


SPOKEN = {"<unk>": 16, **{letter: i for i, letter in enumerate("_abdehilnorstw ")}}


def voice_folder(folders: Folders, tmp_path: Path, name: str = "VitsModel", **sizes: Any) -> str:
    """Return a folder with a model that speaks and its tokenizer, of transformers."""
    import transformers

    folder = folders(name, **sizes)
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps(SPOKEN))
    kind = transformers.VitsTokenizer(str(path), pad_token="_", phonemize=False)
    kind.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {
            "use_stochastic_duration_prediction": False,
            "num_speakers": 3,
            "speaker_embedding_size": 5,
            "use_bias": False,
        },
        {"num_speakers": 3, "speaker_embedding_size": 5, "window_size": 11, "ffn_kernel_size": 4},
    ],
)
def test_texts_are_spoken(sizes: dict[str, Any], folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same noise: the libraries draw different numbers for a seed."""
    folder = folders("VitsModel", **sizes, noise_scale=0.5, noise_scale_duration=0.7)
    voice = {"speaker_id": 2} if sizes else {}

    def drawn(shape: Any) -> Any:
        return np.random.default_rng(len(shape) + shape[-1]).normal(size=shape).astype(np.float32)

    def program(tf: Any, torch: Any) -> Any:
        if tf.__name__ == "transformers":
            monkeypatch.setattr(torch, "randn", lambda *shape: torch.tensor(drawn(shape)))
            monkeypatch.setattr(torch, "randn_like", lambda x: torch.tensor(drawn(tuple(x.mT.shape))).mT)
        else:
            for module in (vits, vits_flows):
                monkeypatch.setattr(module, "randn", lambda shape: torch.tensor(drawn(shape)))
        model = tf.VitsModel.from_pretrained(folder, attn_implementation="eager")
        ids, mask = torch.tensor([[3, 9, 4, 16, 1, 2], [5, 6, 7, 0, 0, 0]]), torch.ones(2, 6, dtype=torch.long)
        mask[1, 3:] = 0
        with torch.no_grad():
            found = dict(model(ids, attention_mask=mask, output_hidden_states=True, **voice))
            slow = model(ids[:1], speaking_rate=0.5, **voice).waveform
        return [found, slow, sorted(model.state_dict())]

    both(program)


def test_the_pipeline_speaks(folders: Folders, tmp_path: Path) -> None:
    folder = voice_folder(folders, tmp_path)

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("text-to-speech", model=folder, device=-1)
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        return [
            dict(pipe("Hello world!", forward_params={"speaking_rate": 2.0})),
            tokenizer(["Hello world?", "on"], padding=True)["input_ids"],
            tokenizer.decode(tokenizer("other lands")["input_ids"]),
        ]

    both(program)
    with pytest.raises(ArgumentError, match="nothing to say"):
        tf.pipeline("text-to-speech", model=folder)("???")


def test_an_empty_token_of_a_voice_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"": 0, "a": 1, "b": 2}))
    tokenizer = tf.VitsTokenizer(tmp_path / "vocab.json", phonemize=False, add_blank=False)
    assert tokenizer("AB")["input_ids"] == [1, 2]


def test_long_texts_are_spoken_by_sentence(folders: Folders, tmp_path: Path) -> None:
    from tallow.transformers.speaking import LONGEST, Speaker

    speaker = Speaker.from_pretrained(voice_folder(folders, tmp_path), device="cpu")
    assert speaker.sentences("Hi there. 3.5 is a number!  \n\nWhat? 你好。再见") == [
        "Hi there.",
        "3.5 is a number!",
        "What?",
        "你好。",
        "再见",
    ]
    assert speaker.sentences('He said "no." I did not... (Really?!) Yes') == [
        'He said "no."',
        "I did not...",
        "(Really?!)",
        "Yes",
    ]
    assert "".join(speaker.sentences("." * 200_000 + "a")) == "." * 200_000 + "a"  # it took hours
    parts = speaker.sentences("word " * 200)
    assert max(map(len, parts)) <= LONGEST
    assert " ".join(parts) == ("word " * 200).strip()
    sounds = list(speaker.speak(["hello", "???", "world"]))
    assert len(sounds) == 2
    assert len(speaker.joined(sounds)) == sum(map(len, sounds)) + len(speaker.pause)
    with pytest.raises(UnsupportedError, match="nothing"):
        speaker.joined([])
    with pytest.raises(ArgumentError, match="voice"):
        next(speaker.speak(["hello"], voice=1))
    speaker.model.decoder.conv_post.weight.data.fill_(float("nan"))
    with pytest.raises(NumericError, match="NaN"):
        next(speaker.speak(["hello"]))
    speaker.model.speaking_rate = 1e-9
    with pytest.raises(ArgumentError, match="limit is 600"):
        next(speaker.speak(["hello"]))
