"""Read the tokenizer of a folder as it lies on the Hub, with the rules of transformers.

`tokenizer.json` has the vocabulary, and `tokenizer_config.json` the settings. Older folders have special tokens in
`special_tokens_map.json` and `added_tokens.json`; they are read if the config has no `added_tokens_decoder`. The class
of the tokenizer, of `tokenizer_classes`, decides the rest.

Source: transformers 5.23, `tokenization_utils_base.py` and `tokenization_utils_tokenizers.py`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tallow.errors import CheckpointError, TokenizerError
from tallow.io.json_object import parse_object
from tallow.text.tokenizer_classes import CLASSES, INPUTS, NAMED, TokenizerClass, class_name, known_name
from tallow.text.tokenizer_conversion import SETS, VOCABULARIES, convert
from tallow.text.tokenizer_files import MAX_DEPTH, as_id, read_ids, read_object, read_text
from tallow.text.tokenizer_steps import Entry, Folder, added_ends

FILE = "tokenizer.json"
CONFIG = "tokenizer_config.json"
MODEL_CONFIG = "config.json"
SPECIAL = "special_tokens_map.json"
ADDED = "added_tokens.json"
SETTINGS = (CONFIG, SPECIAL, ADDED)  # read next to a `tokenizer.json`
TEMPLATE = "chat_template.jinja"
TEMPLATES = "additional_chat_templates/*.jinja"
OLD_TEMPLATE = "chat_template.json"
FILES = ((FILE,), *SETS)  # sets that have a vocabulary, for `needed_files`
USED_UP = ("tokenizer_class", "added_tokens_decoder", "max_len")  # the entries of `tokenizer.json` have their effect
ADDED_ENDS = ("add_bos_token", "add_eos_token")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


class TokenizerFiles(NamedTuple):
    """The tokenizer of a folder.

    Attributes:
        path: of its `tokenizer.json`, or of the folder if it has none.
        entries: of a `tokenizer.json` with the steps of the class and all added tokens.
        config: entries of a `tokenizer_config.json`, with the special tokens as strings.
        name: of its class, as in `tokenizer_classes.CLASSES`; "" for one with the steps of the file.
    """

    path: Path
    entries: dict[str, Any]
    config: dict[str, Any]
    name: str = ""


def read_folder(
    folder: str | Path, *, settings: Mapping[str, Any] | None = None, named: str | None = None
) -> TokenizerFiles:
    """Return the tokenizer of a folder, or of the folder that a `tokenizer.json` lies in.

    Args:
        settings: entries that replace those of `tokenizer_config.json`.
        named: the class, or "" for the steps of the file; None means the class that the folder names.

    Raises:  TokenizerError if a file is missing or malformed
    """
    folder = Path(folder)
    path, folder = (folder, folder.parent) if folder.is_file() else (folder / FILE, folder)
    config = _read_config(folder)
    entries = _read_tokenizer(path) if path.exists() else {}
    legacy = _legacy_files(folder, config)
    for name in ADDED_ENDS if path.exists() else ():  # the post-processor has them
        config.pop(name, None)
    config |= settings or {}
    name = _class_name(folder, config, entries) if named is None else known_name(named)
    kind = CLASSES.get(name)
    if not path.exists():
        path, settings = folder, {**config, **legacy.special}
        converted = convert(folder, settings, legacy.added, kind)
        if converted is None:
            raise TokenizerError(
                f"{folder} has no {FILE}, and no other files of a tokenizer: {', '.join(VOCABULARIES)}",
                hint="add the files of the model's tokenizer to the folder",
            )
        entries, kind = converted
    if not _is_tokenizer(entries):
        return TokenizerFiles(path, entries, config)  # the engine says what is wrong
    return TokenizerFiles(path, *complete(entries, config, kind, legacy), name)


def _class_name(folder: Path, config: Mapping[str, Any], entries: Mapping[str, Any]) -> str:
    model = _read(folder / MODEL_CONFIG)
    named = config.get("tokenizer_class") or model.get("tokenizer_class")
    return class_name(_text(named), _text(model.get("model_type")), has_bytes=_has_bytes(entries))


def read_settings(folder: Path, tokens: Mapping[str, str]) -> dict[str, Any]:
    """Return the config of a folder whose tokenizer no `tokenizer.json` can stand for, with its special tokens.

    Args:  tokens: the special tokens by name, where the folder names no others
    """
    config = _read_config(folder)
    settings = {**config, **_legacy_files(folder, config).special}
    named = {**tokens, **{name: token for name, token in settings.items() if name.endswith("_token")}}
    return _settings(
        settings, {"model": {"type": ""}}, {name: _word(token) for name, token in named.items() if _word(token)}, None
    )


def has_tokenizer(folder: Path) -> bool:
    """Return whether a folder has the files of a tokenizer."""
    return bool(needed_files(FILES, lambda name: (folder / name).is_file()))


def needed_files(sets: Sequence[Sequence[str]], has: Callable[[str], bool]) -> list[str]:
    """Return which files to fetch: the first set if it is complete, else all complete ones, as the class chooses.

    `findFiles` of web/page/model-files.js has the same rule.
    """
    complete = [names for names in sets if all(map(has, names))]
    taken = complete[:1] if sets[0] in complete[:1] else complete
    return [*dict.fromkeys(name for names in taken for name in names)]


class Legacy(NamedTuple):
    """The files of older folders: special tokens by name, and the ids of added tokens."""

    special: Mapping[str, Any]
    added: Mapping[str, int]


def _legacy_files(folder: Path, config: Mapping[str, Any]) -> Legacy:
    if "added_tokens_decoder" in config:
        return Legacy({}, {})
    added = read_ids(folder / ADDED) if (folder / ADDED).exists() else {}
    return Legacy(_read(folder / SPECIAL), added)


def complete(
    entries: Mapping[str, Any],
    config: Mapping[str, Any],
    kind: TokenizerClass | None,
    legacy: Legacy,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entries with the steps of a class and all added tokens, and the config with all special tokens.

    Args:
        entries: of a `tokenizer.json`.
        config: of a `tokenizer_config.json`.
        kind: the class; None for steps as in `entries`.
    """
    fits = kind is not None and _kind_of(entries["model"]) == kind.model
    settings = {**config, **legacy.special}
    named = _named_tokens(settings, entries, kind)
    extra = _extra_tokens(config, legacy.special, kind)
    words = _Words(entries["model"]["vocab"])
    known = [{"id": token["id"]} | _token(token) for token in entries.get("added_tokens") or []]
    listed = _listed_tokens(settings, legacy, known, [_word(token) for token in (*named.values(), *extra)])
    if not fits:
        words.add(known)
    flags = {token["content"]: token for token in listed}
    named = {name: flags.get(_word(token), token) if name in settings else token for name, token in named.items()}
    words.complete(listed, named.values(), extra)
    tokens = _Named((name, _word(token)) for name, token in named.items())
    unknown = words.id_of(tokens.get("unk_token", "")) or 0
    parts = Folder(settings, tokens, _charsmap(entries), lambda word: _either(words.id_of(word), unknown))
    entries = {**entries, **(_steps(kind, entries, parts) if kind is not None and fits else {})}
    if entries.get("post_processor") is None and any(parts.get(name, False) for name in ADDED_ENDS):
        entries["post_processor"] = added_ends(parts)
    if words.entries() != known:
        entries["added_tokens"] = words.entries()
    unnamed = {"extra_special_tokens": [_word(token) for token in extra]}
    return entries, _settings(settings, entries, tokens, kind) | (unnamed if extra else {})


def _steps(kind: TokenizerClass, entries: Mapping[str, Any], folder: Folder) -> Entry:
    model = entries["model"]
    steps = kind.steps(folder)
    kept = {name: model[name] for name in ("vocab", "merges") if name in model}
    steps["model"] = {"type": kind.model} | steps["model"] | kept
    if kind.post_processor is not None:
        steps["post_processor"] = kind.post_processor(folder)
    return steps


def _settings(
    config: Mapping[str, Any], entries: Mapping[str, Any], tokens: Mapping[str, str], kind: TokenizerClass | None
) -> dict[str, Any]:
    """Return the entries of the config that have an effect, with defaults of the class and of the `tokenizer.json`."""
    truncation, padding = (entries.get(name) or {} for name in ("truncation", "padding"))
    side = kind.padding_side if kind is not None else "right"
    settings = {name: value for name, value in config.items() if not name.endswith("_token") and name not in USED_UP}
    settings["model_max_length"] = config.get("model_max_length", config.get("max_len"))
    settings["padding_side"] = config.get("padding_side") or str(padding.get("direction", side)).lower()
    settings["truncation_side"] = config.get("truncation_side") or str(truncation.get("direction", "right")).lower()
    settings["pad_token_type_id"] = kind.pad_type if kind is not None else 0
    settings["model_input_names"] = list(config.get("model_input_names") or (kind.inputs if kind else INPUTS))
    despite = config.get("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output") is True
    cleans = config.get("clean_up_tokenization_spaces") is True
    settings["clean_up_tokenization_spaces"] = cleans and (despite or _kind_of(entries["model"]) != "BPE")
    return settings | dict(tokens)


def _named_tokens(
    settings: Mapping[str, Any], entries: Mapping[str, Any], kind: TokenizerClass | None
) -> dict[str, Any]:
    """Return the special tokens by name, as strings or entries; first those that all tokenizers may have."""
    found: dict[str, Any] = dict(kind.tokens) if kind is not None else {}
    if kind is not None and kind.mask and "mask_token" in found:
        found["mask_token"] = _token(found["mask_token"], normalized=True) | dict(kind.mask)
    padding = entries.get("padding")
    if isinstance(padding, dict) and "pad_token" not in found:
        found["pad_token"] = padding.get("pad_token")
    found |= {name: token for name, token in settings.items() if name.endswith("_token")}
    more = settings.get("extra_special_tokens")
    found |= more if isinstance(more, dict) else {}
    order = [*NAMED, *(name for name in found if name not in NAMED)]
    return {name: found[name] for name in order if _word(found.get(name))}


def _extra_tokens(config: Mapping[str, Any], special: Mapping[str, Any], kind: TokenizerClass | None) -> list[Any]:
    """Return the special tokens without names."""
    old, new = "additional_special_tokens", "extra_special_tokens"
    tokens = config.get(new) or config.get(old)
    if isinstance(tokens, dict):  # these have names
        return []
    if isinstance(special.get(new), list):
        return [*(tokens or []), *special[new]]
    if tokens is None and new not in config:
        tokens = special.get(old) or (kind.extra(config) if kind is not None else ())
    return list(tokens or ()) if isinstance(tokens, list | tuple) else []


def _listed_tokens(
    settings: Mapping[str, Any], legacy: Legacy, known: list[Entry], special: Iterable[str]
) -> list[Entry]:
    """Return the added tokens in the order of their ids."""
    if isinstance(listed := settings.get("added_tokens_decoder"), dict):
        return [_token(listed[id]) for id in sorted(listed, key=lambda id: _either(as_id(id), -1))]
    names = set(special)
    by_id = {id: _token(word, special=word in names) for word, id in legacy.added.items()}
    by_id |= {token["id"]: token for token in known}
    return [by_id[id] for id in sorted(by_id)]


class _Named(dict[str, str]):
    """Special tokens by name, of which a class needs some."""

    def __missing__(self, name: str) -> str:
        raise TokenizerError(
            f"the tokenizer has no {name}", hint=f"set {name} in {CONFIG}, as the model's own files do"
        )


class _Words:
    """The ids of words, as tokens are added to a vocabulary."""

    def __init__(self, vocabulary: dict[str, int] | list[Any]) -> None:
        if isinstance(vocabulary, list):
            vocabulary = {word: i for i, (word, *_) in enumerate(vocabulary)}
        self._ids = vocabulary
        self._added: dict[str, Entry] = {}

    def id_of(self, word: str) -> int | None:
        """Return the id of a word; None if it does not exist."""
        return self._added[word]["id"] if word in self._added else self._ids.get(word)

    def add(self, tokens: Iterable[Entry]) -> None:
        """Add tokens as the package `tokenizers` does: in the vocabulary they keep their id, others get the next."""
        next_id = max(len(self._ids), 1 + max((token["id"] for token in self._added.values()), default=-1))
        for token in tokens:
            if not (word := token["content"]):
                continue
            if (id := self.id_of(word)) is None:
                id, next_id = next_id, next_id + 1
            self._added[word] = token | {"id": id}

    def complete(self, listed: Iterable[Entry], named: Iterable[Any], extra: Iterable[Any]) -> None:
        """Add the tokens of a folder that are new or differ."""
        named = list(named)
        names = {_word(token) for token in named}
        new = [token for token in listed if not self._has(token)]
        present = {*self._added, *(token["content"] for token in new)}
        for token in (*named, *extra):
            if (word := _word(token)) not in present:
                present.add(word)
                new.append(_token(token, special=True))
        self.add(token | {"special": token["special"] or token["content"] in names} for token in new)

    def _has(self, token: Entry) -> bool:
        """Return whether a token was added with the same flags."""
        added = self._added.get(token["content"], {})
        return all(added.get(name) == token[name] for name in FLAGS)

    def entries(self) -> list[Entry]:
        """Return the `added_tokens` of a `tokenizer.json`, in the order of their ids."""
        return sorted(self._added.values(), key=lambda token: token["id"])


def _token(token: Any, *, special: bool = False, normalized: bool | None = None) -> Entry:
    """Return the entry of an added token, given that or its text."""
    if isinstance(token, dict):
        flags = {name: token[name] is True for name in FLAGS if name in token}
        special = flags.get("special", special)
    else:
        flags = {}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": not special, "special": special}
    if normalized is not None:
        plain["normalized"] = normalized
    return {"content": _word(token)} | plain | flags


def _word(token: Any) -> str:
    """Return the text of a token, given that or its entry; "" for anything else."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _either(id: int | None, other: int) -> int:
    return other if id is None else id


def _is_tokenizer(entries: Mapping[str, Any]) -> bool:
    """Return whether entries have the form of a `tokenizer.json`, as far as it is read here."""
    model, added = entries.get("model"), entries.get("added_tokens")
    words = model.get("vocab") if isinstance(model, dict) else None
    is_words = isinstance(words, dict) and all(type(id) is int for id in words.values())
    is_scores = isinstance(words, list) and all(
        isinstance(pair, list) and pair[:1] and isinstance(pair[0], str) for pair in words
    )
    tokens = added if isinstance(added, list) else []
    parts = all(isinstance(entries.get(name), dict | None) for name in ("truncation", "padding", "normalizer"))
    return (
        (is_words or is_scores)
        and parts
        and (added is None or isinstance(added, list))
        and all(isinstance(token, dict) and type(token.get("id")) is int and _word(token) for token in tokens)
    )


def _kind_of(model: Mapping[str, Any]) -> str:
    """Return the kind of a vocabulary, which older files do not name."""
    if isinstance(kind := model.get("type"), str):
        return kind
    if "merges" in model:
        return "BPE"
    return "Unigram" if isinstance(model.get("vocab"), list) else "WordPiece"


def _charsmap(entries: Mapping[str, Any]) -> Entry | None:
    """Return the normalizer of a SentencePiece model, alone or first of several, if there is one."""
    normalizer = entries.get("normalizer") or {}
    steps = normalizer.get("normalizers") if normalizer.get("type") == "Sequence" else [normalizer]
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and step.get("type") == "Precompiled" and step.get("precompiled_charsmap"):
            return step
    return None


def _read_config(folder: Path) -> dict[str, Any]:
    config = _read(folder / CONFIG)
    config["chat_template"] = _read_templates(folder) or config.get("chat_template") or _read_old_template(folder)
    if not isinstance(config["chat_template"], str | list | None):
        raise TokenizerError(f"{folder / CONFIG}: chat_template is neither a text nor a list of named ones")
    return config


def _read_templates(folder: Path) -> str | list[dict[str, str]] | None:
    """Return the chat template in its own file, or a list of named ones if there are several."""
    found = [{"name": path.stem, "template": _template(path)} for path in sorted(folder.glob(TEMPLATES))]
    if (folder / TEMPLATE).exists():
        default = _template(folder / TEMPLATE)
        return [{"name": "default", "template": default}, *found] if found else default
    return found or None


def _read_old_template(folder: Path) -> Any:
    """Return the template that processors of images and texts once had in a file of its own."""
    return _read(folder / OLD_TEMPLATE).get("chat_template")


def _template(path: Path) -> str:
    return read_text(path).replace("\r\n", "\n")


def _read(path: Path) -> dict[str, Any]:
    """Return the entries of a file; none if it does not exist."""
    return read_object(path) if path.exists() else {}


def _read_tokenizer(path: Path) -> dict[str, Any]:
    try:
        return parse_object(read_text(path).encode(), "it", MAX_DEPTH)
    except CheckpointError as error:
        raise TokenizerError(f"{path} is not a {FILE}: {error}") from error


def _has_bytes(entries: Mapping[str, Any]) -> bool:
    """Return whether a step of a `tokenizer.json` writes bytes as letters."""
    return any("ByteLevel" in str(entries.get(name)) for name in ("pre_tokenizer", "decoder", "post_processor"))
