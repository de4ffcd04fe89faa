"""Tokenizers under transformers' names, over the package `tokenizers` or tallow's stand-in for it in a browser.

Files are read as `tallow.text.tokenizer_folder` reads them. The names of classes, `BertTokenizer` or
`LlamaTokenizerFast`, come from `tallow.text.tokenizer_classes`; see `tokenizer_class`.

Source:  transformers 5.23, `PreTrainedTokenizerBase` and `TokenizersBackend`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tallow.errors import ArgumentError, warn
from tallow.text.clean_up import clean_up
from tallow.text.tokenizer_classes import INPUTS
from tallow.transformers.batch_encoding import BatchEncoding
from tallow.transformers.padding import (
    Fill,
    Lengths,
    PaddingStrategy,
    TruncationStrategy,
    lengths_of,
    pad,
    side_of,
)
from tallow.transformers.tensor_types import TensorType, plain
from tallow.transformers.text_inputs import as_batch, replace_options
from tallow.transformers.tokenization_chat import ChatMethods
from tallow.transformers.tokenization_training import TrainingMethods

ROOM = "pass a larger max_length, a smaller stride, or another strategy of truncation"
TOO_LONG = "the text has {} tokens, more than the {} that the model was made for; pass truncation=True"


class PreTrainedTokenizerBase(ChatMethods, TrainingMethods):
    """The base of tokenizers: see `TokenizersBackend`."""


class TokenizersBackend(PreTrainedTokenizerBase):
    """A tokenizer: a call turns texts into ids, `decode` turns ids into text; also named PreTrainedTokenizerFast.

    Args:
        vocab: ids by token; for Unigram, a list of tokens with scores; or the path of a vocabulary's file.
        merges: pairs of tokens, for BPE; or the path of their file.
        tokenizer_object: an object of the package `tokenizers`.
        tokenizer_file: the path of a `tokenizer.json`.
        settings: entries of a `tokenizer_config.json`: special tokens, `model_max_length`, `padding_side` and others.

    Attributes:
        model_input_names: what a call returns without being asked.
        model_max_length: the most tokens that the model takes.
        padding_side, truncation_side: "right" or "left".
        chat_template: the source of a Jinja template, or several by name.

    Raises:  ArgumentError without any of the four; TokenizerError for malformed files
    """

    model_input_names: Sequence[str] = list(INPUTS)
    padding_side: str = "right"
    truncation_side: str = "right"
    model_max_length: int
    clean_up_tokenization_spaces: bool
    split_special_tokens: bool
    name_or_path: str
    init_kwargs: dict[str, Any]
    is_fast: ClassVar[bool] = True
    _tokenizer: Any
    _has_warned = False

    # ---- the call

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        text_target: Any = None,
        text_pair_target: Any = None,
        add_special_tokens: bool = True,
        padding: bool | str | PaddingStrategy = False,
        truncation: bool | str | TruncationStrategy | None = None,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | TensorType | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        verbose: bool = True,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        max_target_length: int | None = None,
        split_special_tokens: bool | None = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        """Return the tokens of a text, or of a batch of texts.

        Args:
            text: a text or a list of texts; with `is_split_into_words`, a list of words or a list of these.
            text_pair: the second text of each pair, as `text`.
            text_target: texts that a model is to write, as `text`; their ids become `labels` if there is a `text` too.
            text_pair_target: the second texts of these.
            add_special_tokens: add what the model expects around a text.
            padding: True or "longest" pads to the longest text, "max_length" to `max_length`.
            truncation: True or "longest_first" cuts texts to `max_length`, of a pair the longer one token by token;
                "only_first" and "only_second" cut one text of a pair; False or "do_not_truncate" cuts none.
            max_length: the most tokens, special tokens included; None means `model_max_length`.
            stride: how many tokens the parts of a text have in common, for `return_overflowing_tokens`.
            pad_to_multiple_of: pad to a multiple of this.
            padding_side: "right" or "left"; None means `self.padding_side`.
            return_tensors: "pt" for tensors, "np" for arrays; None for lists.
            return_token_type_ids, return_attention_mask: None means whether `model_input_names` has them.
            return_overflowing_tokens: the rest of a text becomes further rows; `overflow_to_sample_mapping` says whose.
            return_special_tokens_mask: add `special_tokens_mask`, 1 for each special token that was added.
            return_offsets_mapping: add `offset_mapping`, the characters of each token.
            return_length: add `length`, the tokens of each row.
            verbose: warn of texts that are too long, and of arguments without an effect.
            tokenizer_kwargs: further arguments of this call.
            max_target_length: `max_length` for `text_target`.
            split_special_tokens: special tokens in a text are split as other words.

        Raises:  ArgumentError for arguments that contradict each other, and for rows that do not form a tensor;
                 TypeError for what is no text
        """
        if text is None and text_target is None:
            raise ArgumentError("neither `text` nor `text_target`", hint="pass one of them")
        options: dict[str, Any] = {
            "padding": padding,
            "truncation": truncation,
            "max_length": max_length,
            "add_special_tokens": add_special_tokens,
            "stride": stride,
            "is_split_into_words": is_split_into_words,
            "pad_to_multiple_of": pad_to_multiple_of,
            "padding_side": padding_side,
            "return_tensors": return_tensors,
            "return_token_type_ids": return_token_type_ids,
            "return_attention_mask": return_attention_mask,
            "return_overflowing_tokens": return_overflowing_tokens,
            "return_special_tokens_mask": return_special_tokens_mask,
            "return_offsets_mapping": return_offsets_mapping,
            "return_length": return_length,
            "verbose": verbose,
            "split_special_tokens": split_special_tokens,
            "max_target_length": max_target_length,
        }
        replace_options(options, tokenizer_kwargs or {}, kwargs)
        most = options.pop("max_target_length")
        how = {name: options.pop(name) for name in ("padding", "truncation", "max_length")}
        lengths = lengths_of(self, **how, pad_to_multiple_of=options["pad_to_multiple_of"], verbose=verbose)
        if text_target is None:
            return self._encode(text, text_pair, lengths, **options)
        result = self._encode(text, text_pair, lengths, **options) if text is not None else None
        lengths = lengths if most is None else lengths._replace(max_length=most)
        return self._with_labels(result, (text_target, text_pair_target), lengths, options)

    def _with_labels(
        self, result: BatchEncoding | None, texts: tuple[Any, Any], lengths: Lengths, options: Mapping[str, Any]
    ) -> BatchEncoding:
        """Return `result` with the ids of texts that a model is to write; all of their tokens if it is None."""
        with self._as_target():
            target = self._encode(*texts, lengths, **options)
        if result is None:
            return target
        result["labels"] = target["input_ids"]
        return result

    def _encode(
        self,
        text: Any,
        text_pair: Any,
        lengths: Lengths,
        add_special_tokens: bool = True,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | TensorType | None = None,
        return_overflowing_tokens: bool = False,
        verbose: bool = True,
        split_special_tokens: bool | None = None,
        **columns: Any,
    ) -> BatchEncoding:
        """Return the tokens of texts: see `__call__`, which has the same arguments."""
        inputs, is_batch = as_batch(text, text_pair, is_split_into_words)
        self._set_lengths(lengths, stride, pad_to_multiple_of, padding_side)
        splits = self.split_special_tokens if split_special_tokens is None else split_special_tokens
        if self._tokenizer.encode_special_tokens != splits:
            self._tokenizer.encode_special_tokens = splits
        try:
            encodings = self._tokenizer.encode_batch(
                inputs, add_special_tokens=add_special_tokens, is_pretokenized=is_split_into_words
            )
        except TypeError as error:
            raise ArgumentError(
                "a text is neither a string nor words", hint="pass strings, or lists of them in one shape"
            ) from error
        except BaseException as error:  # the package raises Exception itself, and a class of Rust that is none
            if type(error) is not Exception and type(error).__name__ != "PanicException":
                raise
            raise ArgumentError(
                f"the texts cannot be cut to {lengths.max_length} tokens: {error}", hint=ROOM
            ) from error
        samples = None
        if return_overflowing_tokens:
            parts = [[encoding, *encoding.overflowing] for encoding in encodings]
            samples = [i for i, rows in enumerate(parts) for _ in rows]
            encodings = [each for rows in parts for each in rows]
        data = self._columns(encodings, **columns)
        if samples is not None:
            data["overflow_to_sample_mapping"] = samples
        if verbose and lengths.max_length is None:
            self._warn_of_length(data["input_ids"])
        if not is_batch and return_tensors is None and not return_overflowing_tokens:
            data = {name: rows[0] if isinstance(rows[0], list) else rows for name, rows in data.items()}
        return BatchEncoding(data, encodings, tensor_type=return_tensors)

    def _columns(
        self,
        encodings: Sequence[Any],
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
    ) -> dict[str, list[Any]]:
        """Return the columns of a result by name."""
        names = self.model_input_names
        data: dict[str, list[Any]] = {"input_ids": [each.ids for each in encodings]}
        if "token_type_ids" in names if return_token_type_ids is None else return_token_type_ids:
            data["token_type_ids"] = [each.type_ids for each in encodings]
        if "attention_mask" in names if return_attention_mask is None else return_attention_mask:
            data["attention_mask"] = [each.attention_mask for each in encodings]
        if return_special_tokens_mask:
            data["special_tokens_mask"] = [each.special_tokens_mask for each in encodings]
        if return_offsets_mapping:
            data["offset_mapping"] = [each.offsets for each in encodings]
        if return_length:
            data["length"] = [len(ids) for ids in data["input_ids"]]
        return data

    def _set_lengths(
        self, lengths: Lengths, stride: int, pad_to_multiple_of: int | None, padding_side: str | None
    ) -> None:
        """Set the truncation and the padding of the library's object, if they change."""
        tokenizer = self._tokenizer
        if lengths.truncation is TruncationStrategy.DO_NOT_TRUNCATE:
            if tokenizer.truncation is not None:
                tokenizer.no_truncation()
        else:
            cut = {
                "max_length": lengths.max_length,
                "stride": stride,
                "strategy": lengths.truncation.value,
                "direction": side_of(self.truncation_side),
            }
            if tokenizer.truncation != cut:
                tokenizer.enable_truncation(**cut)
        if lengths.padding is PaddingStrategy.DO_NOT_PAD:
            if tokenizer.padding is not None:
                tokenizer.no_padding()
            return
        fill = {
            "length": lengths.max_length if lengths.padding is PaddingStrategy.MAX_LENGTH else None,
            "direction": side_of(padding_side or self.padding_side),
            "pad_id": self.pad_token_id,
            "pad_token": self.pad_token,
            "pad_type_id": self.pad_token_type_id,
            "pad_to_multiple_of": pad_to_multiple_of,
        }
        if tokenizer.padding != fill:
            tokenizer.enable_padding(**fill)

    def _warn_of_length(self, rows: Sequence[Sequence[int]]) -> None:
        longest = max(map(len, rows), default=0)
        if longest > self.model_max_length > 0 and not self._has_warned:
            self._has_warned = True
            warn(TOO_LONG.format(longest, self.model_max_length))

    def encode(
        self,
        text: Any,
        text_pair: Any = None,
        add_special_tokens: bool = True,
        padding: bool | str | PaddingStrategy = False,
        truncation: bool | str | TruncationStrategy | None = None,
        max_length: int | None = None,
        stride: int = 0,
        padding_side: str | None = None,
        return_tensors: str | TensorType | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the `input_ids` of the call with these arguments."""
        return self(
            text,
            text_pair,
            add_special_tokens=add_special_tokens,
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            stride=stride,
            padding_side=padding_side,
            return_tensors=return_tensors,
            **kwargs,
        )["input_ids"]

    def tokenize(self, text: Any, pair: Any = None, add_special_tokens: bool = False, **kwargs: Any) -> list[str]:
        """Return the tokens of a text.

        Args:
            pair: a second text.
            kwargs: further arguments of the call.
        """
        return self(text, pair, add_special_tokens=add_special_tokens, **kwargs).tokens()

    def pad(
        self,
        encoded_inputs: Any,
        padding: bool | str | PaddingStrategy = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | TensorType | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Return encoded texts with the same length.

        Args:
            encoded_inputs: what the call returns for a text or a batch, or a list of these, one for each text.
            return_attention_mask: None means whether `model_input_names` has it.
            return_tensors: None means lists, or the kind of the ids given.

        The other arguments are those of the call. Columns that no tokenizer makes, such as labels, stay as they are.

        Raises:  ArgumentError without `input_ids`, and as the call does
        """
        lengths = lengths_of(self, padding, None, max_length, pad_to_multiple_of, verbose=verbose)
        fill = Fill(lengths, pad_to_multiple_of, padding_side or self.padding_side, return_attention_mask)
        return pad(self, encoded_inputs, fill, return_tensors)

    # ---- back to text

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the text of ids; of rows of ids, a list of texts.

        Args:
            token_ids: an id, a list, an array, a tensor, or rows of these.
            skip_special_tokens: leave them out.
            clean_up_tokenization_spaces: remove spaces before punctuation, for tokenizers of words; None means as the
                tokenizer's settings say.
        """
        ids = plain(token_ids["input_ids"] if isinstance(token_ids, Mapping) else token_ids)
        if isinstance(ids, list) and ids and isinstance(ids[0], list):
            return [self._decode(row, skip_special_tokens, clean_up_tokenization_spaces, **kwargs) for row in ids]
        return self._decode(ids, skip_special_tokens, clean_up_tokenization_spaces, **kwargs)

    def batch_decode(
        self,
        sequences: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Return the texts of rows of ids, as `decode` does."""
        texts = self.decode(sequences, skip_special_tokens, clean_up_tokenization_spaces, **kwargs)
        return [texts] if isinstance(texts, str) else texts

    def _decode(self, ids: Any, skips: bool, cleans_up: bool | None) -> str:
        try:
            text = self._tokenizer.decode([ids] if isinstance(ids, int) else ids, skip_special_tokens=skips)
        except (TypeError, OverflowError) as error:
            raise ArgumentError(
                f"ids to decode: {ids!r:.80}", hint="pass integers from 0 up, or rows of them"
            ) from error
        if not (self.clean_up_tokenization_spaces if cleans_up is None else cleans_up):
            return text
        despite = self.init_kwargs.get("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output")
        if type(self._tokenizer.model).__name__ == "BPE" and not despite:
            return text  # for words it removes spaces that were added; here, some of the text
        return clean_up(text)

    @staticmethod
    def clean_up_tokenization(text: str) -> str:
        """Return a text without the spaces before punctuation and English contractions."""
        return clean_up(text)

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Return the text of tokens."""
        decoder = self._tokenizer.decoder
        return " ".join(tokens) if decoder is None else decoder.decode(list(tokens))

    # ---- the vocabulary

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str):
            id = self._tokenizer.token_to_id(tokens)
            unknown = self._named.get("unk_token")
            return self._tokenizer.token_to_id(unknown) if id is None and unknown is not None else id
        if not isinstance(tokens, Iterable):
            raise ArgumentError(f"a token is {type(tokens).__name__}: {tokens!r:.80}", hint="pass a string, or a list")
        return [self.convert_tokens_to_ids(token) for token in tokens]

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        skipped = {*self.all_special_ids} if skip_special_tokens else ()
        try:
            if isinstance(ids, int):
                return self._tokenizer.id_to_token(ids)
            return [self._tokenizer.id_to_token(id) for id in map(int, ids) if id not in skipped]
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"ids of tokens: {ids!r:.80}", hint="pass integers from 0 up") from error

    def add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        tokens = list(new_tokens) if isinstance(new_tokens, list | tuple) else [new_tokens] if new_tokens else []
        if not tokens:
            return 0
        return self._tokenizer.add_special_tokens(tokens) if special_tokens else self._tokenizer.add_tokens(tokens)

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all tokens, added ones included."""
        return self._tokenizer.get_vocab(with_added_tokens=True)

    vocab = property(get_vocab, doc="The ids of all tokens, added ones included.")

    @property
    def vocab_size(self) -> int:
        """The number of tokens without added ones."""
        return self._tokenizer.get_vocab_size(with_added_tokens=False)

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def __bool__(self) -> bool:
        return True  # `len` would count the vocabulary

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """The added tokens by id."""
        return self._tokenizer.get_added_tokens_decoder()

    @property
    def added_tokens_encoder(self) -> dict[str, int]:
        """The ids of the added tokens."""
        return {token.content: id for id, token in sorted(self.added_tokens_decoder.items())}

    def get_added_vocab(self) -> dict[str, int]:
        """Return the ids of the added tokens."""
        return self.added_tokens_encoder

    @property
    def backend_tokenizer(self) -> Any:
        """The object of the package `tokenizers`."""
        return self._tokenizer

    @property
    def decoder(self) -> Any:
        """The decoder of that object."""
        return self._tokenizer.decoder

    @property
    def pad_token_type_id(self) -> int:
        """The segment of padding."""
        return self.init_kwargs.get("pad_token_type_id", 0)

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Return how many special tokens are added to a text, or to a pair."""
        return self._tokenizer.num_special_tokens_to_add(pair)

    @property
    def max_len_single_sentence(self) -> int:
        """The most tokens of a text, without special tokens."""
        return self.model_max_length - self.num_special_tokens_to_add(pair=False)

    @property
    def max_len_sentences_pair(self) -> int:
        """The most tokens of a pair of texts, without special tokens."""
        return self.model_max_length - self.num_special_tokens_to_add(pair=True)

    def __repr__(self) -> str:
        added = "".join(f"\n\t{id}: {token!r}," for id, token in self.added_tokens_decoder.items())
        added = f"{added}\n" if added else ""
        names = ("name_or_path", "vocab_size", "model_max_length", "padding_side", "truncation_side")
        listed = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        listed += f", special_tokens={self.special_tokens_map!r}"
        return f"{type(self).__name__}({listed}, added_tokens_decoder={{{added}}})"


PreTrainedTokenizerFast = TokenizersBackend
PreTrainedTokenizer = PreTrainedTokenizerBase  # the name of tokenizers written in Python, of which there are none here
