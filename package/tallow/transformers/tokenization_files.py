"""Read and write the files of a tokenizer.

Source:  transformers 5.23, `PreTrainedTokenizerBase.from_pretrained` and `save_pretrained`
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self

from tallow.errors import ArgumentError, ArgumentTypeError, TokenizerError
from tallow.hub import local_model, local_settings
from tallow.io.atomic import atomic_write
from tallow.io.gguf import GGUF
from tallow.lazy_names import missing
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.tokenizer import check_patterns
from tallow.text.tokenizer_classes import CLASSES, TokenizerClass
from tallow.text.tokenizer_conversion import BLANK, WORDS, read_merges, read_words
from tallow.text.tokenizer_files import read_ids, read_object
from tallow.text.tokenizer_folder import CONFIG, FILE, TEMPLATE, Legacy, TokenizerFiles, complete, read_folder
from tallow.transformers.downloads import find_folder
from tallow.transformers.padding import NO_LIMIT, side_of
from tallow.transformers.special_tokens import EXTRA, FORMER_EXTRA, SpecialTokens, entry_of
from tallow.transformers.uploads import upload
from tallow.transformers.without_effect import Neutral, effective

PLAIN = "TokenizersBackend"  # the name of a class without steps of its own, in transformers' files
ENDS = ("add_bos_token", "add_eos_token")
OF_CHATS = ("response_template", "chat_control_tokens")
# Arguments of `from_pretrained` that choose between implementations, of which there is one here.
NEUTRAL: Neutral = {
    "use_fast": (None, True),
    "from_slow": (None, False),
    "config": (None,),
    "verbose": (None, True, False),
}
DOWNLOAD = frozenset({"cache_dir", "local_files_only", "force_download", "proxies", "trust_remote_code"})


def library() -> ModuleType:
    """Return the package `tokenizers`, or what stands in for it where it is not installed."""
    try:
        import tokenizers  # optional: the extra `text`
    except ImportError:
        from tallow.compat.packages import tokenizers as stand_in  # only where the package is missing

        return stand_in
    return tokenizers


def __getattr__(name: str) -> Any:
    if name == "AddedToken":
        return library().AddedToken
    raise missing(__name__, name)


class FileMethods(SpecialTokens):
    """The constructors of a tokenizer, and the way back into files."""

    kind: ClassVar[str] = ""  # the class, as in `tokenizer_classes.CLASSES`
    chat_template: Any
    _tokenizer: Any

    def __init__(
        self,
        vocab: Any = None,
        merges: Any = None,
        *,
        tokenizer_object: Any = None,
        tokenizer_file: str | Path | None = None,
        vocab_file: str | Path | None = None,
        merges_file: str | Path | None = None,
        **settings: Any,
    ) -> None:
        kind = CLASSES.get(self.kind)
        config = {name: _setting(value) for name, value in settings.items()}
        if tokenizer_object is not None or tokenizer_file is not None:
            text = tokenizer_object.to_str() if tokenizer_object is not None else None
            entries = json.loads(text) if text is not None else read_object(Path(str(tokenizer_file)))
            # The steps are those of the object, but a class has its names for tokens and inputs.
            of_class = {"model_input_names": kind.inputs, **kind.tokens} if kind is not None else {}
            config = of_class | config
            kind = None
        else:
            vocab, merges = (vocab_file if vocab is None else vocab), (merges_file if merges is None else merges)
            entries = BLANK | {"model": _model(kind, vocab, merges)}
        named = Legacy({}, {})
        self._set_up(TokenizerFiles(Path(), *complete(entries, config, kind, named), self.kind), config)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        gguf_file: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Load the tokenizer of a folder, of a repository on the Hub, or of a file `tokenizer.json`.

        Args:
            pretrained_model_name_or_path: a path, or `owner/repository`.
            revision: a branch, tag or commit of the repository.
            token: Hub token, for repositories that require one.
            subfolder: the folder in the repository.
            gguf_file: read the tokenizer of this GGUF file instead.
            kwargs: entries that replace those of `tokenizer_config.json`, such as `padding_side` or `bos_token`; and
                `cache_dir`, `local_files_only` and `force_download`, for the Hub.

        Raises:  HubError if there is neither folder nor repository; TokenizerError for malformed files
        """
        where = Where(revision, token, subfolder, gguf_file, download_of(kwargs))
        settings = settings_of(kwargs)
        files = read_files(pretrained_model_name_or_path, settings, cls.kind, where)
        return cls._of_files(files, settings, str(pretrained_model_name_or_path))

    @classmethod
    def _of_files(cls, files: TokenizerFiles, given: Mapping[str, Any], name: str) -> Self:
        """Return the tokenizer of files.  Args: given: settings of the caller, which go before those of the files"""
        self = cls.__new__(cls)
        self._set_up(files, given, name)
        return self

    def _set_up(self, files: TokenizerFiles, given: Mapping[str, Any], name: str = "") -> None:
        config, attributes = files.config, vars(self)
        attributes["_tokenizer"] = self._backend(files)
        limit = config.get("model_max_length")
        attributes |= {
            "init_kwargs": config,
            "name_or_path": name,
            "model_max_length": NO_LIMIT if limit is None else limit,
            "padding_side": side_of(config.get("padding_side") or "right"),
            "truncation_side": side_of(config.get("truncation_side") or "right"),
            "model_input_names": list(config["model_input_names"]),
            "clean_up_tokenization_spaces": bool(config.get("clean_up_tokenization_spaces")),
            "split_special_tokens": bool(config.get("split_special_tokens")),
            "chat_template": _by_name(config.get("chat_template")),
            "response_template": config.get("response_template"),
            "chat_control_tokens": _listed(config.get("chat_control_tokens")),
        }
        tokens = {key: token for key, token in config.items() if key.endswith("_token") and isinstance(token, str)}
        self._set_special_tokens(tokens, config.get(EXTRA) or ())
        if any(key in given for key in ENDS):
            attributes |= {f"_{key}": bool(given.get(key)) for key in ENDS}
            self.update_post_processor()

    def _backend(self, files: TokenizerFiles) -> Any:
        """Return the object of the package `tokenizers` for files."""
        check_patterns(files.entries)
        try:
            return library().Tokenizer.from_str(json.dumps(files.entries, ensure_ascii=False))
        except Exception as error:  # the package raises Exception itself
            raise TokenizerError(f"{files.path} is not a {FILE}: {error}") from error

    # ---- what begins and ends a text

    @property
    def add_bos_token(self) -> bool:
        """True if `bos_token` was set to begin each text. Setting it sets what is added to texts."""
        return getattr(self, "_add_bos_token", False)

    @add_bos_token.setter
    def add_bos_token(self, value: bool) -> None:
        vars(self)["_add_bos_token"] = value
        self.update_post_processor()

    @property
    def add_eos_token(self) -> bool:
        """True if `eos_token` was set to end each text. Setting it sets what is added to texts."""
        return getattr(self, "_add_eos_token", False)

    @add_eos_token.setter
    def add_eos_token(self, value: bool) -> None:
        vars(self)["_add_eos_token"] = value
        self.update_post_processor()

    def update_post_processor(self) -> None:
        """Add `bos_token` and `eos_token` to texts as `add_bos_token` and `add_eos_token` say, and nothing else."""
        first = self.bos_token if self.add_bos_token else None
        last = self.eos_token if self.add_eos_token else None
        parts = [[token for token in (first, text, last) if token is not None] for text in ("$A", "$B")]
        single, second = (" ".join(f"{part}:{i}" for part in each) for i, each in enumerate(parts))
        self._tokenizer.post_processor = library().processors.TemplateProcessing(
            single=single,
            pair=f"{single} {second}",
            special_tokens=[(token, self.convert_tokens_to_ids(token)) for token in (first, last) if token is not None],
        )

    def _as_target(self) -> AbstractContextManager[None]:
        """Return a context in which texts are those that a model is to write."""
        return nullcontext()

    # ---- writing

    def save_pretrained(
        self,
        save_directory: str | Path,
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
        push_to_hub: bool = False,
        save_jinja_files: bool = True,
        **kwargs: Any,
    ) -> tuple[str, ...]:
        """Write the tokenizer's files to a folder, and return their paths.

        Args:
            legacy_format: must not be True: the old files are not written.
            filename_prefix: begins the files' names, with "-" after it.
            push_to_hub: upload the folder; `kwargs` are the arguments of `push_to_hub`.
            save_jinja_files: write chat templates to files of their own; False puts them into the config.

        Raises:  ArgumentError for a file in the place of the folder; OSError
        """
        folder = Path(save_directory)
        if folder.is_file():
            raise ArgumentError(f"{folder} is a file", hint="pass a folder")
        if legacy_format:
            raise ArgumentError("legacy_format=True: the old files are not written", hint="leave it out")
        folder.mkdir(parents=True, exist_ok=True)
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        config = self._config_to_save()
        templates = self._templates_to_save() if save_jinja_files else {}
        if not save_jinja_files and self.chat_template is not None:
            config["chat_template"] = _as_list(self.chat_template)
        texts = {CONFIG: json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True) + "\n", **templates}
        paths = []
        for name, text in texts.items():
            path = folder / (prefix + name)
            path.parent.mkdir(exist_ok=True)
            with atomic_write(path) as file:
                file.write(text.encode())
            paths.append(str(path))
        paths += self._save_backend(folder, prefix)
        if push_to_hub:
            self.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)
        return tuple(paths)

    def _save_backend(self, folder: Path, prefix: str) -> tuple[str, ...]:
        """Write the vocabulary and the steps, and return the paths."""
        path = str(folder / (prefix + FILE))
        self._tokenizer.save(path)
        return (path,)

    def _config_to_save(self) -> dict[str, Any]:
        """Return the entries of a `tokenizer_config.json`."""
        config = {name: value for name, value in self.init_kwargs.items() if not name.endswith("_token")}
        for name in ("chat_template", "pad_token_type_id", FORMER_EXTRA, *ENDS):
            config.pop(name, None)
        for name in ("padding_side", "truncation_side", "clean_up_tokenization_spaces", "split_special_tokens"):
            config[name] = getattr(self, name)
        config |= {"model_max_length": self.model_max_length, "tokenizer_class": self.kind or PLAIN}
        config |= {"backend": "tokenizers", "model_input_names": list(self.model_input_names)}
        config |= {name: value for name in OF_CHATS if (value := getattr(self, name)) is not None}
        config.pop(EXTRA, None)
        extra = self.extra_special_tokens
        return config | self.special_tokens_map | ({EXTRA: extra} if extra else {})

    def _templates_to_save(self) -> dict[str, str]:
        """Return the files of the chat templates."""
        templates = _by_name(self.chat_template)
        if not isinstance(templates, dict):
            return {} if templates is None else {TEMPLATE: templates}
        files = {}
        for name, text in templates.items():
            if Path(name).name != name or name in ("", ".", ".."):
                raise ArgumentError(f"a chat template named {name!r:.80}", hint="a name has no slash")
            files[TEMPLATE if name == "default" else f"additional_chat_templates/{name}.jinja"] = text
        return files

    def push_to_hub(
        self,
        repo_id: str,
        *,
        commit_message: str = "Upload tokenizer",
        private: bool | None = None,
        token: str | None = None,
        revision: str | None = None,
        create_pr: bool = False,
    ) -> Any:
        """Upload the tokenizer's files to a repository on the Hub, which is created if it does not exist.

        Raises:  MissingPackageError without `huggingface_hub`; the errors of that package
        """
        return upload(
            self.save_pretrained,
            repo_id,
            commit_message=commit_message,
            private=private,
            token=token,
            revision=revision,
            create_pr=create_pr,
        )

    def save_vocabulary(self, save_directory: str | Path, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write the files of the vocabulary alone, of BPE and WordPiece, and return their paths."""
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        return tuple(self._tokenizer.model.save(str(save_directory), prefix.removesuffix("-") or None))


class Where(NamedTuple):
    """Arguments of `from_pretrained` for the place of the files."""

    revision: str | None = None
    token: str | None = None
    subfolder: str = ""
    gguf_file: str | None = None
    download: Mapping[str, Any] = {}


def read_files(name: str | Path, settings: Mapping[str, Any], kind: str | None, where: Where) -> TokenizerFiles:
    """Return the tokenizer of a folder or repository: see `FileMethods.from_pretrained`.

    Args:  kind: the class, as in `tokenizer_classes.CLASSES`; None for that which the folder names
    """
    if where.gguf_file is None:
        path = read_where(name, where)
    elif Path(name).expanduser().exists():
        path = read_where(name, where) / where.gguf_file
    else:
        path = local_model(f"{name}:{where.gguf_file}", revision=where.revision, token=where.token)
    if path.suffix == ".gguf":
        file = GGUF(path)
        entries, config = tokenizer_entries(file.metadata, file.name)
        return TokenizerFiles(path, entries, config | dict(settings))
    return read_folder(path, settings=settings, named=kind)


def read_where(name: str | Path, where: Where) -> Path:
    """Return the local folder or file for a name, after downloading it if necessary.  Raises: HubError"""
    asked = {"revision": where.revision, "token": where.token, "subfolder": where.subfolder, **where.download}
    return find_folder(name, asked, local_settings)[0]


def folder_of(
    name: str | Path, revision: str | None, token: str | None, subfolder: str, arguments: Mapping[str, Any]
) -> Path:
    """Return the local folder of `from_pretrained`, whose other arguments say how files are downloaded."""
    return read_where(name, Where(revision, token, subfolder, download=download_of(arguments)))


def download_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` that say how files are downloaded."""
    return {name: value for name, value in arguments.items() if name in DOWNLOAD}


def settings_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` that are settings of the tokenizer, as the files have them."""
    settings = effective("a tokenizer's from_pretrained", arguments, NEUTRAL)
    return {name: _setting(value) for name, value in settings.items() if name not in DOWNLOAD}


def _setting(value: Any) -> Any:
    """Return a setting as the files have it."""
    if isinstance(value, list | tuple):
        return [_setting(each) for each in value]
    return entry_of(value) if hasattr(value, "content") and hasattr(value, "lstrip") else value


def _listed(tokens: Any) -> Any:
    """Return `chat_control_tokens`.  Raises: ArgumentTypeError for one that is no list"""
    if isinstance(tokens, list | tuple | None):
        return tokens
    raise ArgumentTypeError(f"chat_control_tokens={tokens!r:.80}", hint='pass a list, such as ["<tool_call>"]')


def _by_name(template: Any) -> Any:
    """Return several chat templates as a dict."""
    if isinstance(template, list | tuple):
        return {entry["name"]: entry["template"] for entry in template}
    return template


def _as_list(template: Any) -> Any:
    """Return several chat templates as the list that a config has."""
    if isinstance(template, Mapping):
        return [{"name": name, "template": text} for name, text in template.items()]
    return template


def _model(kind: TokenizerClass | None, vocab: Any, merges: Any) -> dict[str, Any]:
    """Return the entry `model` for a vocabulary.  Raises: ArgumentError without one"""
    if vocab is None:
        raise ArgumentError(
            "a tokenizer without a vocabulary",
            hint="pass vocab, tokenizer_file or tokenizer_object",
        )
    if isinstance(vocab, str | Path):
        vocab = read_words(Path(vocab)) if Path(vocab).suffix == Path(WORDS[0]).suffix else read_ids(Path(vocab))
    if isinstance(merges, str | Path):
        merges = read_merges(Path(merges))
    model = {"type": kind.model if kind is not None else "Unigram" if isinstance(vocab, list) else "BPE"}
    if model["type"] == "BPE":
        merges = [pair.split(" ") if isinstance(pair, str) else list(pair) for pair in merges or ()]
        return model | {"vocab": dict(vocab), "merges": merges}
    return model | {"vocab": [list(pair) for pair in vocab] if isinstance(vocab, list) else dict(vocab)}
