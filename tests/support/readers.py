"""Every reader of files and network responses, each with a small valid file for `support.fuzz` to damage."""

from __future__ import annotations

import base64
import gzip
import io
import json
import struct
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

import tallow as tl
from support import onnx_damage, sentencepiece_files
from support.fuzz import Change, Reader, change_bytes, change_json, change_safetensors, change_zip, to_plain
from support.grammar_cases import GRAMMARS
from support.pytorch_files import LEGACY, ZIP
from support.schedulers import SCHEDULERS
from support.small_models import ENTRIES
from support.whisper_files import CONFIG as WHISPER
from support.whisper_files import DIMS, ggml, openai_names
from tallow import keras, models
from tallow.audio import Sound
from tallow.data import CIFAR10, MNIST, CSVDataset, NPZDataset
from tallow.data.stories import read_stories
from tallow.errors import TallowError
from tallow.generation import Sampler, generate
from tallow.hub import in_browser
from tallow.io import gguf, llama2c, npz, pytorch, safetensors
from tallow.io.contents import contents
from tallow.io.model_folder import load_folder
from tallow.io.named import named_tensors
from tallow.io.stored import stored_folder
from tallow.models import (
    AutoModel,
    BlipForConditionalGeneration,
    CLIPModel,
    CLIPVisionModel,
    DepthAnythingForDepthEstimation,
    DetrModel,
    Dinov2Model,
    Llama,
    ResNetModel,
    SegformerForSemanticSegmentation,
    ViTModel,
    Whisper,
)
from tallow.models.causal_lm import CausalLM
from tallow.models.encoders.sentence_folder import encoder_files, files_of, modules_of
from tallow.models.encoders.sentence_parts import Dense, Pooling
from tallow.models.generation_config import GenerationConfig
from tallow.models.gguf import models as gguf_models
from tallow.models.seq2seq.model import Seq2SeqLM
from tallow.models.speech.speech_encoder import SpeechPretrainedModel
from tallow.optim import lr_scheduler
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.llama2c import Llama2cTokenizer
from tallow.text.tokenizer import Tokenizer
from tallow.text.tokenizer_folder import read_folder
from tallow.text.whisper import WhisperTokenizer

MIB = 2**20


def _save_to_bytes(save: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def _save_to_file(name: str, save: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save(path)
        return path.read_bytes()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _file(name: str, read: Callable[[Path], object], **others: bytes) -> Callable[[bytes, Path], object]:
    """Return a reader of a file of this name in a folder with other files; `__` stands for a dot in their names."""

    def run(raw: bytes, place: Path) -> object:
        for other, content in others.items():
            (place / other.replace("__", ".")).write_bytes(content)
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(raw)
        return read(place / name)

    return run


def _folder(name: str, read: Callable[[Path], object], **others: bytes) -> Callable[[bytes, Path], object]:
    return _file(name, lambda path: read(path.parent), **others)


def _bytes(read: Callable[[Any], object]) -> Callable[[bytes, Path], object]:
    return lambda raw, place: read(raw)


# ------------------------------------------------------------------------------------------------------------- tensors

STATE = {"a.weight": tl.arange(6, dtype=tl.float32).reshape(2, 3), "b": tl.tensor([True, False]), "c": tl.zeros(0, 3)}
SAFETENSORS = b"".join(map(bytes, safetensors.encode(STATE, {"format": "pt"})))
NPZ = _save_to_bytes(lambda file: npz.save(STATE, file))


def _recompress(raw: bytes) -> bytes:
    def save(file: io.BytesIO) -> None:
        with zipfile.ZipFile(io.BytesIO(raw)) as stored, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for name in stored.namelist():
                packed.writestr(name, stored.read(name))

    return _save_to_bytes(save)


def _touch(value: Any) -> Any:
    for tensor in value.values() if isinstance(value, dict) else [value]:
        if isinstance(tensor, tl.Tensor):
            repr(tensor)
    return value


def _all_of(source: Any) -> dict[str, float]:
    file = gguf.load(source)
    sums = {}
    for name in file:
        with suppress(TallowError):
            sums[name] = float(file[name].array.sum())
    return sums


def _gguf_string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _gguf_value(value: Any) -> bytes:
    """Return the type and the value of a metadata entry."""
    if isinstance(value, list):
        kind, items = 8, b"".join(map(_gguf_string, value)) if isinstance(value[0], str) else b""
        if not items:
            kind = 6 if isinstance(value[0], float) else 5
            items = np.array(value, "<f4" if kind == 6 else "<i4").tobytes()
        return struct.pack("<IIQ", 9, kind, len(value)) + items
    if isinstance(value, str):
        return struct.pack("<I", 8) + _gguf_string(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value) if 0 <= value < 2**32 else struct.pack("<Iq", 11, value)


def gguf_file(metadata: dict[str, Any], tensors: dict[str, np.ndarray[Any, Any]]) -> bytes:
    """Return a file of float32 tensors, and of matrices in Q8_0: arrays of bytes, 34 for each block."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_gguf_string(key) + _gguf_value(value) for key, value in metadata.items())
    data = b""
    for name, array in tensors.items():
        shape, kind = array.shape, 0
        if array.dtype == np.uint8:
            shape, kind = (*shape[:-1], shape[-1] // 34 * 32), 8
        head += _gguf_string(name) + struct.pack(f"<I{array.ndim}Q", array.ndim, *shape[::-1])
        head += struct.pack("<IQ", kind, len(data))
        data += array.tobytes().ljust(-(-array.nbytes // 32) * 32, b"\0")
    return head + bytes(-len(head) % 32) + data


PIECES = ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a", "▁ab"]
GGML = "tokenizer.ggml"
VOCABULARY: dict[str, Any] = {
    f"{GGML}.model": "llama",
    f"{GGML}.tokens": PIECES,
    f"{GGML}.scores": [-float(i) for i in range(len(PIECES))],
    f"{GGML}.token_type": [2, 3, 3, 1, 1, 1, 1, 1, 4],
    f"{GGML}.bos_token_id": 1,
    f"{GGML}.eos_token_id": 2,
    "tokenizer.chat_template": "{{ messages }}",
}


WORD_PIECES: dict[str, Any] = {
    f"{GGML}.model": "bert",
    f"{GGML}.tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁a", "b", "▁ab"],
    f"{GGML}.token_type": [3, 3, 3, 3, 1, 1, 1],
    f"{GGML}.bos_token_id": 2,
    f"{GGML}.eos_token_id": 3,
    f"{GGML}.add_sep_token": 0,
}
UNIGRAM_PIECES: dict[str, Any] = VOCABULARY | {f"{GGML}.model": "t5"}

Parts: TypeAlias = tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]


@cache
def _parts_of_gguf_llama() -> Parts:
    """Return metadata and tensors."""
    sizes = {"block_count": 1, "embedding_length": 8, "feed_forward_length": 12, "context_length": 16}
    sizes |= {"attention.head_count": 2, "attention.head_count_kv": 1}
    metadata = {"general.architecture": "llama"} | {f"llama.{key}": value for key, value in sizes.items()}
    metadata |= {"llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 100.0} | VOCABULARY
    rng = np.random.default_rng(0)
    shapes = {"attn_q": (8, 8), "attn_k": (4, 8), "attn_v": (4, 8), "attn_output": (8, 8), "ffn_norm": (8,)}
    shapes |= {"ffn_gate": (12, 8), "ffn_up": (12, 8), "ffn_down": (8, 12), "attn_norm": (8,)}
    named = {f"blk.0.{name}.weight": shape for name, shape in shapes.items()}
    named |= {"token_embd.weight": (len(PIECES), 8), "output_norm.weight": (8,)}
    return metadata, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in named.items()}


def _gguf_llama() -> bytes:
    return gguf_file(*_parts_of_gguf_llama())


@cache
def _parts_of_gguf_gpt2() -> Parts:
    """Return a GPT-2 whose matrices are in Q8_0."""
    sizes = {"block_count": 1, "embedding_length": 32, "feed_forward_length": 32, "context_length": 8}
    metadata = {"general.architecture": "gpt2"} | {f"gpt2.{key}": value for key, value in sizes.items()}
    metadata |= {"gpt2.attention.head_count": 2, "gpt2.attention.layer_norm_epsilon": 1e-5}
    matrices = {
        "token_embd": 5,
        "blk.0.attn_qkv": 96,
        "blk.0.attn_output": 32,
        "blk.0.ffn_up": 32,
        "blk.0.ffn_down": 32,
    }
    blocks = np.random.default_rng(0).integers(0, 256, (96, 34), np.uint8)
    blocks[:, :2] = np.float16([0.01]).view(np.uint8)
    tensors: dict[str, Any] = {f"{name}.weight": blocks[:rows] for name, rows in matrices.items()}
    norms = {"output_norm": 32, "blk.0.attn_norm": 32, "blk.0.ffn_norm": 32}
    biases = {name: rows for name, rows in matrices.items() if name != "token_embd"} | norms
    tensors |= {f"{name}.bias": np.ones(rows, np.float32) for name, rows in biases.items()}
    tensors |= {f"{name}.weight": np.ones(rows, np.float32) for name, rows in norms.items()}
    return metadata, tensors | {"position_embd.weight": np.ones((8, 32), np.float32)}


@cache
def _parts_of_gguf_bert() -> Parts:
    sizes = {"block_count": 1, "embedding_length": 4, "feed_forward_length": 6, "context_length": 8}
    metadata: dict[str, Any] = {"general.architecture": "bert"} | {f"bert.{key}": value for key, value in sizes.items()}
    metadata |= {"bert.attention.head_count": 2, "bert.attention.layer_norm_epsilon": 1e-5}
    shapes = {"token_embd": (5, 4), "position_embd": (8, 4), "token_types": (2, 4), "token_embd_norm": (4,)}
    layer = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (4, 4)) | {
        "ffn_up": (6, 4),
        "ffn_down": (4, 6),
    }
    layer |= {"attn_output_norm": (4,), "layer_output_norm": (4,)}
    shapes |= {f"blk.0.{name}": shape for name, shape in layer.items()}
    tensors = {f"{name}.weight": np.ones(shape, np.float32) for name, shape in shapes.items()}
    biased = [name for name in shapes if "embd" not in name and "types" not in name] + ["token_embd_norm"]
    return metadata, tensors | {f"{name}.bias": np.ones(shapes[name][0], np.float32) for name in biased}


LIES: tuple[Any, ...] = (0, 1, 2, 3, 7, -1, 2**20, 2**31, 2**62, -(2**63), 0.0, -1.5, 1e38, float("nan"), float("inf"))
LIES += ("", "x", "gpt2", "llama", "bert", "gemma2", "falcon", "phi3", "yarn", [1, 2], ["a"], [0.5])


def _lie(parts: Callable[[], Parts]) -> Change:
    """Return a change that writes a well-formed file with a wrong value, name, shape or number of tensors."""

    def change(rng: Random, raw: bytes) -> bytes:
        metadata, tensors = (dict(part) for part in parts())
        if raw != gguf_file(metadata, tensors) or rng.random() < 0.3:
            return change_bytes(rng, raw)
        key, name = rng.choice(list(metadata)), rng.choice(list(tensors))
        match rng.randrange(7):
            case 0:
                del metadata[key]
            case 1:
                del tensors[name]
            case 2:
                tensors[rng.choice([*tensors, "blk.1.attn_q.weight", "x", "blk.x.ffn_up.weight"])] = tensors.pop(name)
            case 3:
                tensors[name] = tensors[name][: rng.randrange(len(tensors[name]) + 1)]
            case 4:
                tensors[name] = tensors[name].reshape(*tensors[name].shape, 1)[..., : rng.randrange(2)]
            case _:
                metadata[key] = rng.choice(LIES)
        return gguf_file(metadata, tensors)

    return change


def _gguf_reader(parts: Callable[[], Parts], use: Callable[[Any], Any]) -> Reader:
    """Return a reader of a model; `use` computes something with it."""

    def in_another_order(rng: Random, raw: bytes) -> bytes:
        return gguf_file(*(_shuffle_keys(rng, part) for part in parts()))

    return Reader(
        gguf_file(*parts()), _bytes(lambda raw: use(gguf_models.load(raw))), _lie(parts), form=in_another_order
    )


def _gguf_tokenizer_reader(vocabulary: dict[str, Any]) -> Reader:
    tensors = {"x": np.ones(1, np.float32)}
    return Reader(
        gguf_file(vocabulary, tensors),
        _bytes(lambda raw: str(Tokenizer.from_gguf(raw).encode("ab"))),
        _lie(lambda: (vocabulary, tensors)),
        form=lambda rng, raw: gguf_file(_shuffle_keys(rng, vocabulary), tensors),
    )


def _encodes_tokens(model: Any) -> Any:
    with tl.no_grad():
        result = model(tl.tensor([[1, 3, 2]]))
    return result if isinstance(result, tl.Tensor) else result.last_hidden_state


def _shuffle_keys(rng: Random, entries: dict[str, Any]) -> dict[str, Any]:
    return {name: entries[name] for name in rng.sample(list(entries), len(entries))}


def _gguf_llama_in_another_order(rng: Random, raw: bytes) -> bytes:
    metadata, tensors = _parts_of_gguf_llama()
    return gguf_file(_shuffle_keys(rng, metadata), _shuffle_keys(rng, tensors))


def _generates(lm: Any) -> list[int]:
    return list(generate(lm, [1, 3], max_tokens=2))


def _read_gguf_model(raw: bytes, place: Path) -> list[Any]:
    lm = gguf_models.load(raw)
    return [_generates(lm), tokenizer_entries(gguf.load(raw).metadata, "file")]


def _llama2c_file() -> bytes:
    sizes = np.array([4, 4, 1, 2, 1, 5, 3], dtype=np.int32)
    return sizes.tobytes() + np.full(5 * 4 + 4 + 16 + 8 + 8 + 16 + 4 + 48 + 4 + 6, 0.1, np.float32).tobytes()


def _stored_archive(folder: Path) -> dict[str, Any]:
    return {name: tensor.read() for name, tensor in stored_folder(folder).items()}


INDEX = {"weight_map": dict.fromkeys(STATE, "model-1.safetensors"), "metadata": {"total_size": 26}}
TENSORS: dict[str, Reader] = {
    "safetensors": Reader(SAFETENSORS, _bytes(lambda raw: _touch(safetensors.load(raw))), change_safetensors),
    "safetensors, not aligned": Reader(
        (len(SAFETENSORS[8:]) - 26 + 1).to_bytes(8, "little") + SAFETENSORS[8:-26] + b" " + SAFETENSORS[-26:],
        _bytes(lambda raw: _touch(safetensors.load(raw))),
        change_safetensors,
    ),
    "safetensors, in parts": Reader(SAFETENSORS, _folder("model.safetensors", _stored_archive), change_safetensors),
    "index of shards": Reader(
        _json(INDEX),
        _folder("model.safetensors.index.json", load_folder, **{"model-1__safetensors": SAFETENSORS}),
        change_json,
    ),
    "gguf": Reader(_gguf_llama(), _bytes(_all_of), form=_gguf_llama_in_another_order),
    "gguf, the model": Reader(_gguf_llama(), _read_gguf_model, form=_gguf_llama_in_another_order),
    "gguf, what is in it": Reader(_gguf_llama(), _file("model.gguf", contents), form=_gguf_llama_in_another_order),
    "gguf, a Llama with wrong values": _gguf_reader(_parts_of_gguf_llama, _encodes_tokens),
    "gguf, a GPT-2": _gguf_reader(_parts_of_gguf_gpt2, _encodes_tokens),
    "gguf, a BERT": _gguf_reader(_parts_of_gguf_bert, _encodes_tokens),
    "llama2c": Reader(_llama2c_file(), _bytes(lambda raw: llama2c.load(raw))),
    "llama2c, the model": Reader(_llama2c_file(), _bytes(lambda raw: _generates(Llama.from_llama2c(raw)))),
    "npz": Reader(NPZ, _bytes(lambda raw: _touch(npz.load(raw))), change_zip),
    "npz, compressed": Reader(_recompress(NPZ), _bytes(lambda raw: _touch(npz.load(raw))), change_zip),
    "npy": Reader(
        _save_to_bytes(partial(npz.save_array, tl.ones(2, 3))), _bytes(lambda raw: _touch(npz.load_array(raw)))
    ),
    "pytorch": Reader(ZIP, _bytes(lambda raw: _touch(pytorch.load(raw))), change_zip),
    "pytorch, compressed": Reader(_recompress(ZIP), _bytes(lambda raw: _touch(pytorch.load(raw))), change_zip),
    "pytorch, before 1.6": Reader(LEGACY, _bytes(lambda raw: _touch(pytorch.load(raw)))),
    "pytorch, by names": Reader(
        _save_to_bytes(lambda file: tl.save(STATE, file)),
        _bytes(lambda raw: named_tensors(tl.load(raw), "file")),
        change_zip,
    ),
    "any format": Reader(SAFETENSORS, _bytes(tl.load)),
    "what is in a file": Reader(SAFETENSORS, _file("file", contents), change_safetensors),
}

# -------------------------------------------------------------------------------------------------------------- models


@cache
def _weights(name: str) -> bytes:
    """Return the weights of a small model of a class."""
    model_class = getattr(models, name)
    tl.manual_seed(0)
    model = model_class(model_class.config_class.from_entries(ENTRIES[name], "entries"))
    return b"".join(map(bytes, safetensors.encode(model.state_dict())))


def _load_and_run(folder: Path) -> list[int] | list[Any]:
    model = AutoModel.from_pretrained(folder)
    if isinstance(model, CausalLM):
        return _generates(model)
    if isinstance(model, Seq2SeqLM):
        return list(model.generate_ids([1, 2, 3], max_tokens=3))
    tokens, pixels = tl.tensor([[1, 2, 3]]), tl.zeros(1, 3, 8, 8)
    if isinstance(model, CLIPModel):
        return list(model(tokens, pixels))
    if isinstance(model, ViTModel | Dinov2Model | CLIPVisionModel | ResNetModel | DetrModel):
        return list(model(pixels))
    if isinstance(model, DepthAnythingForDepthEstimation | SegformerForSemanticSegmentation):
        return [model(pixels)]
    if isinstance(model, BlipForConditionalGeneration):
        return [*model.caption_ids(pixels, max_tokens=3)]
    if isinstance(model, SpeechPretrainedModel):
        return list(model(tl.zeros(1, 2000)))
    tl.manual_seed(0)  # models of voices draw numbers
    return [] if isinstance(model, Whisper) else list(model(tokens))


def _of_config(name: str) -> Reader:
    def read(raw: bytes, place: Path) -> object:
        return _folder("config.json", _load_and_run, model__safetensors=_weights(name))(raw, place)

    return Reader(_json(ENTRIES[name]), read, change_json)


def _of_weights(name: str) -> Reader:
    read = _folder("model.safetensors", _load_and_run, config__json=_json(ENTRIES[name]))
    return Reader(partial(_weights, name), read, change_safetensors)


def _settings(folder: Path) -> list[Any]:
    config = GenerationConfig.from_folder(folder)
    rules = config.rules([5, 6], 10, [1], 100)
    return [config.sampling, list(Sampler(**config.sampling).limits), len(rules), *asdict(config).values()]


GENERATION = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9, "eos_token_id": [1, 2], "min_p": 0.1}
GENERATION |= {"max_length": 9, "early_stopping": True, "bad_words_ids": [[3], [4, 5]], "suppress_tokens": [6]}
GENERATION |= {"sequence_bias": [[[7, 8], 1.5]], "exponential_decay_length_penalty": [3, 1.5], "stop_strings": ["a"]}
MODULES = [
    {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
    for i, (kind, path) in enumerate([("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")])
]
DENSE = {"in_features": 3, "out_features": 2, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}
DENSE_WEIGHTS = b"".join(map(bytes, safetensors.encode({"linear.weight": tl.ones(2, 3), "linear.bias": tl.ones(2)})))


def _modules(folder: Path) -> list[str]:
    results = files_of((folder / "modules.json").read_bytes()), list(modules_of(folder)), encoder_files(folder)
    return [str(each).replace(str(folder), "") for each in results]


@cache
def _whisper() -> Whisper:
    tl.manual_seed(0)
    return Whisper(WHISPER).eval()


@cache
def _whisper_pt() -> bytes:
    content = {"dims": DIMS, "model_state_dict": openai_names(_whisper())}
    return _save_to_bytes(lambda file: tl.save(content, file))


MODELS: dict[str, Reader] = {
    **{f"config.json of {name}": _of_config(name) for name in ENTRIES},
    "weights of BertModel": _of_weights("BertModel"),
    "weights of Llama": _of_weights("Llama"),
    "generation_config.json": Reader(_json(GENERATION), _folder("generation_config.json", _settings), change_json),
    "modules.json": Reader(_json(MODULES), _folder("modules.json", _modules), change_json),
    "config.json of a pooling": Reader(
        _json({"word_embedding_dimension": 8, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}),
        _file("config.json", Pooling.from_json),
        change_json,
    ),
    "config.json of a dense": Reader(
        _json(DENSE), _folder("config.json", Dense.from_pretrained, model__safetensors=DENSE_WEIGHTS), change_json
    ),
    "whisper, OpenAI's": Reader(_whisper_pt, _file("tiny.pt", Whisper.from_pretrained), change_zip),
    "whisper, ggml": Reader(lambda: ggml(_whisper()), _file("tiny.bin", Whisper.from_pretrained)),
    "files of the Hub": Reader(
        _json([{"type": "file", "path": "a/config.json", "size": 3, "lfs": {"oid": "0"}}, {"type": "directory"}]),
        _bytes(in_browser.parse_listing),
        change_json,
    ),
}

# ---------------------------------------------------------------------------------------------------------------- text


class Letters:
    """A tokenizer of letters, for environments without the package `tokenizers`."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) % 20 for letter in text]

    def decode(self, ids: Any, special: bool) -> str:
        return "x" * len(ids)

    def token_to_id(self, token: str) -> int | None:
        return len(token) or None


def _tokenizer_config(raw: bytes, place: Path) -> list[Any]:
    (place / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (place / "tokenizer_config.json").write_bytes(raw)
    tokenizer = Tokenizer(Letters(), read_folder(place).config)
    batch = tokenizer.encode_batch(["text", ("a", "b")])
    return [str(batch), tokenizer.render_chat([{"role": "user", "content": "hello"}])]


CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}{{ eos_token }}{% endfor %}"
TOKENIZER_CONFIG = {
    "model_max_length": 512,
    "bos_token": {"content": "<s>", "lstrip": False},
    "eos_token": "</s>",
    "chat_template": [{"name": "default", "template": CHAT}, {"name": "tool_use", "template": CHAT}],
}
WORDS = {bytes([i]): i for i in range(256)} | {b"he": 256, b"ll": 257}
TIKTOKEN = b"".join(base64.b64encode(word) + b" %d\n" % rank for word, rank in WORDS.items())


def _byte_level() -> dict[str, int]:
    """Return GPT-2's spelling of bytes."""
    to_plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in to_plain]
    letters = dict(zip(to_plain, map(chr, to_plain), strict=True))
    letters |= {byte: chr(256 + i) for i, byte in enumerate(others)}
    return {letters[byte]: byte for byte in range(256)}


BYTE_LEVEL = _byte_level()
TOKENIZER: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "normalizer": {"type": "NFC"},
    "added_tokens": [
        {"id": 258, "content": "<s>", "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    ],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [258], "tokens": ["<s>"]}},
    },
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "model": {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "ignore_merges": False,
        "vocab": BYTE_LEVEL | {"he": 256, "ll": 257},
        "merges": [["h", "e"], ["l", "l"]],
    },
}
UNIGRAM = TOKENIZER | {
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "model": {
        "type": "Unigram",
        "unk_id": 0,
        "vocab": [["<unk>", 0.0], ["▁", -1.0], ["h", -2.0]],
        "byte_fallback": False,
    },
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
}
WORDPIECE = TOKENIZER | {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 0, "he": 1, "##llo": 2},
    },
}


def _encodes(folder: Path) -> list[Any]:
    tokenizer = Tokenizer.from_pretrained(folder)
    encoded = str(tokenizer.encode("hello hé 1 [UNK]")), str(tokenizer.encode("hello", "pair"))
    return [*encoded, tokenizer.decode([0, 1, 2, 258, 10**6])]


def _read_vocabulary(folder: Path) -> object:
    from tallow.training import vocabulary

    return vocabulary.read(folder)


def _whisper_tokenizer(path: Path) -> list[int]:
    return WhisperTokenizer.load(path, len(WORDS) + 1509 + 2).encode("hello")


def _pieces(raw: bytes) -> list[Any]:
    tokenizer = Llama2cTokenizer.load(raw)
    ids = tokenizer.encode("ab<0x41>")
    return [ids, [tokenizer.decode(None, token) for token in ids]]


SCORED = [(b"<unk>", 0), (b"<s>", 0), (b"</s>", 0), *((f"<0x{i:02X}>".encode(), 0) for i in range(256)), (b"ab", -1)]
TEXT: dict[str, Reader] = {
    "tokenizer.bin": Reader(
        struct.pack("<I", 6) + b"".join(struct.pack("<fI", score, len(p)) + p for p, score in SCORED), _bytes(_pieces)
    ),
    "tokenizer_config.json": Reader(_json(TOKENIZER_CONFIG), _tokenizer_config, change_json, extra_bytes=8 * MIB),
    "whisper's tokenizer.json": Reader(
        _json({"model": {"vocab": BYTE_LEVEL | {"he": 256, "ll": 257}}, "added_tokens": [{"content": "<|x|>"}]}),
        _file("tokenizer.json", _whisper_tokenizer),
        change_json,
    ),
    "whisper's tiktoken": Reader(
        TIKTOKEN,
        _file("gpt2.tiktoken", _whisper_tokenizer),
        form=lambda rng, raw: b"".join(rng.sample(raw.splitlines(True), raw.count(b"\n"))),
    ),
}
# readers that need the package `tokenizers`
NATIVE_TEXT: dict[str, Reader] = {
    **{
        f"tokenizer.json, {entries['model']['type']}": Reader(
            _json(entries), _folder("tokenizer.json", _encodes), change_json, extra_bytes=8 * MIB
        )
        for entries in (TOKENIZER, UNIGRAM, WORDPIECE)
    },
    "spiece.model": Reader(sentencepiece_files.model(), _folder("spiece.model", _encodes), extra_bytes=8 * MIB),
    "vocab.txt": Reader(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n##s\n", _folder("vocab.txt", _encodes)),
    "tokenizer.json of training": Reader(_json(TOKENIZER), _folder("tokenizer.json", _read_vocabulary), change_json),
    **{
        f"gguf, the tokenizer {vocabulary[f'{GGML}.model']}": _gguf_tokenizer_reader(vocabulary)
        for vocabulary in (VOCABULARY, WORD_PIECES, UNIGRAM_PIECES)
    },
}

# ------------------------------------------------------------------------------------------------------------ training


class Run:
    """A model with an optimizer and a scheduler that have made some steps."""

    def __init__(self, optimizer: Callable[[Any], Any], scheduler: Callable[[Any], Any]) -> None:
        tl.manual_seed(0)
        self.model = tl.nn.Linear(2, 1)
        self.optimizer = optimizer(self.model.parameters())
        self.scheduler = scheduler(self.optimizer)
        self.step()

    def step(self) -> None:
        def loss() -> tl.Tensor:
            self.optimizer.zero_grad()
            value = self.model(tl.tensor([[1.0, 2.0], [-1.0, 0.5]])).square().mean()
            value.backward()
            return value

        self.optimizer.step(loss)
        self.scheduler.step(*([1.0] if isinstance(self.scheduler, lr_scheduler.ReduceLROnPlateau) else []))

    def parts(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler}


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "Adadelta": tl.optim.Adadelta,
    "Adagrad": partial(tl.optim.Adagrad, lr_decay=0.1),
    "Adam": partial(tl.optim.Adam, amsgrad=True),
    "AdamW": tl.optim.AdamW,
    "Adamax": tl.optim.Adamax,
    "LBFGS": partial(tl.optim.LBFGS, max_iter=3, line_search_fn="strong_wolfe"),
    "Lion": tl.optim.Lion,
    "NAdam": tl.optim.NAdam,
    "RAdam": tl.optim.RAdam,
    "RMSprop": partial(tl.optim.RMSprop, momentum=0.5, centered=True),
    "Rprop": tl.optim.Rprop,
    "SGD": partial(tl.optim.SGD, lr=0.1, momentum=0.9),
}


def snapshot(run: Run) -> str:
    """Return all state that a checkpoint may change, as text."""
    return repr(to_plain({name: part.state_dict() for name, part in run.parts().items()}))


def _resume(optimizer: Callable[[Any], Any], scheduler: Callable[[Any], Any]) -> Callable[[bytes, Path], str]:
    """Return a reader that loads a checkpoint and trains one step. A rejected checkpoint must change nothing."""

    def read(raw: bytes, place: Path) -> str:
        run = Run(optimizer, scheduler)
        before = snapshot(run)
        try:
            tl.load_checkpoint(raw, **run.parts())
        except TallowError:
            assert snapshot(run) == before, "the checkpoint was rejected but changed some state"
            raise
        with np.errstate(all="ignore"):
            try:
                run.step()
            except TallowError as error:
                if "Tried to step" not in str(error):  # the schedule has ended
                    raise AssertionError(f"the checkpoint was accepted, but the next step fails: {error}") from error
        return snapshot(run)

    return read


def _checkpoint(optimizer: Callable[[Any], Any], scheduler: Callable[[Any], Any]) -> Reader:
    def valid() -> bytes:
        return _save_to_file(
            "run.safetensors", lambda path: tl.save_checkpoint(path, **Run(optimizer, scheduler).parts())
        )

    return Reader(valid, _resume(optimizer, scheduler), change_safetensors)


TRAINING: dict[str, Reader] = {
    **{f"checkpoint of {name}": _checkpoint(make, SCHEDULERS["StepLR"]) for name, make in OPTIMIZERS.items()},
    **{f"checkpoint of {name}": _checkpoint(OPTIMIZERS["AdamW"], make) for name, make in SCHEDULERS.items()},
}


# ---------------------------------------------------------------------------------------------------------------- data


def _idx(array: np.ndarray[Any, Any]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def _insert_chunk(rng: Random, raw: bytes) -> bytes:
    """Insert an unknown chunk before the other chunks of a WAV file."""
    chunks = b"junk" + struct.pack("<I", 6) + rng.randbytes(6) + raw[12:]
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def _wav(bits: int, kind: int) -> bytes:
    data = bytes(range(96))
    head = struct.pack("<HHIIHH", kind, 2, 16000, 16000 * bits // 4, bits // 4, bits)
    chunks = (
        b"fmt " + struct.pack("<I", len(head)) + head + b"LIST\4\0\0\0abcd" + b"data" + struct.pack("<I", 96) + data
    )
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


IMAGES, LABELS = _idx(np.zeros((2, 28, 28), np.uint8)), _idx(np.array([3, 9], np.uint8))
FOLDER = {
    f"{part}-{kind}-ubyte": raw
    for part in ("train", "t10k")
    for kind, raw in {"images-idx3": IMAGES, "labels-idx1": LABELS}.items()
}
CIFAR_BATCH = b"".join(bytes([i]) + bytes(3072) for i in (3, 9))
CSV = b'a,b,"c ""d"""\n1,2.5,x\n-3,1e-3,"y,\nz"\n'


CSV_FORMS = (CSV[:-1], b'"a","b","c ""d"""\r\n"1","2.5","x"\r\n-3,1e-3,"y,\nz"\r\n')


def _csv(path: Path) -> CSVDataset:
    return CSVDataset(path, columns=["a", "b"], target=2, target_dtype=str)


DATA: dict[str, Reader] = {
    "wav of integers": Reader(_wav(16, 1), _bytes(lambda raw: Sound(raw).read()), form=_insert_chunk),
    "wav of floats": Reader(_wav(32, 3), _bytes(lambda raw: Sound(raw).read()), form=_insert_chunk),
    "wav of 24 bits": Reader(_wav(24, 1), _bytes(lambda raw: Sound(raw).read()), form=_insert_chunk),
    "mnist, images": Reader(IMAGES, _folder("train-images-idx3-ubyte", MNIST, **FOLDER)),
    "mnist, labels": Reader(LABELS, _folder("train-labels-idx1-ubyte", MNIST, **FOLDER)),
    "mnist, compressed": Reader(
        gzip.compress(IMAGES, mtime=0),
        _folder("train-images-idx3-ubyte.gz", MNIST, **{"train-labels-idx1-ubyte": LABELS}),
        form=lambda rng, raw: gzip.compress(IMAGES, rng.randint(0, 9), mtime=rng.getrandbits(31)),
    ),
    "cifar, binary": Reader(CIFAR_BATCH, _folder("test_batch.bin", partial(CIFAR10, train=False))),
    "stories": Reader(
        "Once.\n<|endoftext|>\nTwo é.\n<|endoftext|>".encode(),
        _file("stories.txt", lambda path: list(read_stories(path))),
    ),
    "csv": Reader(CSV, _file("table.csv", _csv), form=lambda rng, raw: rng.choice(CSV_FORMS)),
    "npz of data": Reader(
        _save_to_bytes(partial(npz.save, {"x": tl.ones(3, 2), "y": tl.arange(3)})),
        _file("data.npz", NPZDataset),
        change_zip,
    ),
}


def _keras_file() -> bytes:
    tl.manual_seed(0)
    model = keras.Sequential([keras.Input((4, 3)), keras.layers.LSTM(2), keras.layers.Dense(1, activation="relu")])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((2, 4, 3)), np.ones((2, 1)), verbose=0)
    return _save_to_file("model.keras", model.save)


KERAS: dict[str, Reader] = {
    "keras": Reader(
        _keras_file,
        _file("model.keras", lambda path: keras.models.load_model(path).get_weights()),
        change_zip,
        extra_bytes=16 * MIB,
        needs="h5py",
    ),
}

ONNX: dict[str, Reader] = {
    "onnx": Reader(
        onnx_damage.valid_file, _bytes(onnx_damage.read), onnx_damage.change, form=onnx_damage.another_order
    ),
}

# All readers by name. Those that need optional packages are separate.
READERS = {**TENSORS, **MODELS, **TEXT, **TRAINING, **DATA, **KERAS, **GRAMMARS, **ONNX}
