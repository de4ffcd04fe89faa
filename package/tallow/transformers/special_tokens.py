"""The special tokens of a tokenizer: attributes such as `pad_token` and `pad_token_id`.

Source:  transformers 5.23, `PreTrainedTokenizerBase`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tallow.errors import ArgumentError, ArgumentTypeError, MissingNameError
from tallow.text.tokenizer_classes import NAMED

EXTRA, FORMER_EXTRA = "extra_special_tokens", "additional_special_tokens"
ENDINGS = ("_ids", "_id")


class SpecialTokens:
    """The special tokens with a name, such as `bos_token`, and those without, `extra_special_tokens`.

    Each has its id as an attribute too: `bos_token_id`, `extra_special_tokens_ids`. Both can be set; a token that is
    set does not enter the vocabulary, as `add_special_tokens` makes it do.
    """

    SPECIAL_TOKENS_ATTRIBUTES: ClassVar[Sequence[str]] = NAMED
    _named: dict[str, str | None]
    _extra: list[str]

    def _set_special_tokens(self, tokens: Mapping[str, str], extra: Iterable[Any]) -> None:
        """Set the tokens by name, of which some may be of this tokenizer only, and those without a name."""
        vars(self)["_named"] = {name: tokens.get(name) for name in dict.fromkeys((*NAMED, *tokens))}
        vars(self)["_extra"] = [str(token) for token in extra]
        if len(self._named) > len(NAMED):
            vars(self)["SPECIAL_TOKENS_ATTRIBUTES"] = [*self._named]

    def __getattr__(self, name: str) -> Any:
        stem = _stem(name)
        named: Mapping[str, str | None] = self.__dict__.get("_named", {})  # absent while it is unpickled
        if stem in named:
            token = named[stem]
            return token if token is None or stem == name else self.convert_tokens_to_ids(token)
        if stem in (EXTRA, FORMER_EXTRA):
            extra = [*self.__dict__.get("_extra", ())]
            return extra if stem == name else self.convert_tokens_to_ids(extra)
        raise MissingNameError(f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        stem = _stem(name)
        if stem in self.__dict__.get("_named", {}):
            if stem != name and value is not None:
                value = self.convert_ids_to_tokens(value)
            if value is not None and not _is_token(value):
                raise ArgumentError(f"{stem} is a {type(value).__name__}", hint="set a string, or an AddedToken")
            self._named[stem] = None if value is None else str(value)
        elif stem in (EXTRA, FORMER_EXTRA):
            if not isinstance(value, list | tuple | None):
                raise ArgumentError(f"{stem} is a {type(value).__name__}", hint="set a list of tokens")
            tokens = value or ()
            vars(self)["_extra"] = [str(each if stem == name else self.convert_ids_to_tokens(each)) for each in tokens]
        else:
            super().__setattr__(name, value)

    def add_special_tokens(
        self, special_tokens_dict: Mapping[str, Any], replace_extra_special_tokens: bool = True
    ) -> int:
        """Set special tokens, add those that the vocabulary lacks, and return how many these are.

        Args:
            special_tokens_dict: a token for each name, such as {"pad_token": "<pad>"}; for "extra_special_tokens", a
                list.
            replace_extra_special_tokens: the list takes the place of the present one; False extends it.

        Raises:  ArgumentError for an unknown name, and for what is no token
        """
        found: list[Any] = []
        for name, value in special_tokens_dict.items():
            if name in (EXTRA, FORMER_EXTRA):
                if not isinstance(value, list | tuple) or not all(map(_is_token, value)):
                    raise ArgumentError(f"{name}: {value!r:.80} is no list of tokens", hint='pass ["<a>", "<b>"]')
                new = [each for each in value if replace_extra_special_tokens or str(each) not in self._extra]
                kept = [] if replace_extra_special_tokens and new else self._extra
                vars(self)["_extra"] = [*kept, *map(str, new)]
                found += new
            elif name in self.SPECIAL_TOKENS_ATTRIBUTES:
                if not _is_token(value):
                    raise ArgumentError(f"{name}: {value!r:.80} is no token", hint="pass a string, or an AddedToken")
                setattr(self, name, value)
                found.append(value)
            else:
                known = ", ".join((*self.SPECIAL_TOKENS_ATTRIBUTES, EXTRA))
                raise ArgumentError(f"{name!r:.80} is no name of a special token", hint=f"the names are {known}")
        return self.add_tokens(found, special_tokens=True)

    @property
    def special_tokens_map(self) -> dict[str, str]:
        """The special tokens by name, such as {"pad_token": "<pad>"}."""
        return {name: token for name, token in self._named.items() if token is not None}

    @property
    def all_special_tokens(self) -> list[str]:
        """The special tokens, each once."""
        return list(dict.fromkeys((*self.special_tokens_map.values(), *self._extra)))

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of `all_special_tokens`."""
        return self.convert_tokens_to_ids(self.all_special_tokens)

    def get_special_tokens_mask(
        self,
        token_ids_0: Sequence[int],
        token_ids_1: Sequence[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """Return 1 for each id of a special token, else 0.

        Args:    already_has_special_tokens: must be True: the ids are those of a whole row
        Raises:  ArgumentError for ids without special tokens, and for two lists
        """
        if not already_has_special_tokens or token_ids_1 is not None:
            raise ArgumentError(
                "get_special_tokens_mask: only for one list of ids that has special tokens",
                hint="pass return_special_tokens_mask=True to the call, or already_has_special_tokens=True here",
            )
        special = {*self.all_special_ids}
        return [int(int(id) in special) for id in token_ids_0]

    def add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        """Add tokens to the vocabulary, and return how many it lacked.

        Args:
            new_tokens: a token or a list; strings, or objects of the class AddedToken.
            special_tokens: they are special: decoding can skip them, and no normalizer changes them.
        """
        raise NotImplementedError

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Return the id of a token, or of each in a list; that of `unk_token` for an unknown one."""
        raise NotImplementedError

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Return the token of an id, or of each in a list; None for an id without one."""
        raise NotImplementedError


def entry_of(token: Any) -> Any:
    """Return a token as the files have it: a string, or the entry of an AddedToken.  Raises: ArgumentTypeError"""
    if isinstance(token, str | Mapping):
        return token
    if not _is_token(token):
        raise ArgumentTypeError(f"{token!r:.80} is no token", hint="pass a string, or an AddedToken")
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"content": token.content} | {name: getattr(token, name) for name in flags}


def _is_token(value: Any) -> bool:
    return isinstance(value, str) or (hasattr(value, "content") and hasattr(value, "lstrip"))


def _stem(name: str) -> str:
    """Return the name of a token for that of its id."""
    for ending in ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name
