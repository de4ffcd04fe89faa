"""The ids that a folder's files declare for the tokens that they add to a vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tallow.errors import TokenizerError
from tallow.text.tokenizer_files import as_id

HINT = "download the model's own files again"


def declared_ids(config: Mapping[str, Any], added: Mapping[str, int], name: str) -> dict[int, str]:
    """Return the tokens by id of `added_tokens_decoder`, else of `added_tokens.json`.

    Raises:  TokenizerError for an id that is none
    """
    decoder = config.get("added_tokens_decoder")
    if not isinstance(decoder, Mapping):
        return {i: token for token, i in added.items()}
    found = {}
    for key, token in decoder.items():
        if (id := as_id(key)) is None:
            raise TokenizerError(f"{name}: added_tokens_decoder has the id {key!r:.80}", hint=HINT)
        content = token.get("content") if isinstance(token, Mapping) else token
        if isinstance(content, str) and content:
            found[id] = content
    return found


def place(vocab: Any, declared: Mapping[int, str], kept: Collection[str], name: str) -> None:
    """Give tokens their declared ids, where the engines would give others, by an entry in the vocabulary.

    The engines give a token that the vocabulary lacks the next id. A declared id may be that of another token, which
    was renamed, or leave a gap.

    Args:
        vocab: ids by token; or of Unigram, a list of tokens with scores. It is changed in place.
        kept: tokens that may not be renamed.
        name: the file with the vocabulary, for error messages.

    Raises:  TokenizerError for two tokens with one id, and a gap in a list
    """
    ids = vocab if isinstance(vocab, dict) else {token: i for i, (token, _) in enumerate(vocab)}
    names = {i: token for token, i in ids.items()}
    following, added = len(vocab), {*declared.values()}
    for i, token in sorted(declared.items()):
        if token not in ids and i != following:
            former = names.get(i)
            if former in kept or former in added:
                raise TokenizerError(f"{name}: the tokens {former!r:.80} and {token!r:.80} have the id {i}", hint=HINT)
            if isinstance(vocab, dict):
                if former is not None:
                    del vocab[former]
                vocab[token] = i
            elif i < len(vocab):
                vocab[i] = [token, vocab[i][1]]
            else:
                raise TokenizerError(
                    f"{name} has {len(vocab)} tokens, but the added token {token!r:.80} has the id {i}", hint=HINT
                )
        following = max(following, len(vocab), ids.get(token, i) + 1)
