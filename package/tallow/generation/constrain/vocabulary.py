"""The tokens of a vocabulary as a tree of their bytes, in which a grammar finds the tokens that may come next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError
from tallow.generation.constrain.states import DEAD, Automaton
from tallow.generation.constrain.work import Work

_NODES = 10  # of the tree that NumPy handles in the time of one configuration


class Vocabulary:
    """The bytes of all tokens.

    Args:  tokens: of each id; None for a token without a text, such as a special one

    Raises:  ArgumentError for a vocabulary without texts
    """

    def __init__(self, tokens: Sequence[bytes | None]) -> None:
        self.tokens = list(tokens)
        ids = [i for i, token in enumerate(self.tokens) if token]
        if not ids:
            raise ArgumentError("none of the tokens has a text", hint="pass the bytes of each token")
        ids.sort(key=lambda i: self.tokens[i] or b"")
        texts = [self.tokens[i] or b"" for i in ids]
        self._build(np.array(ids), np.array([*map(len, texts)]), np.frombuffer(b"".join(texts), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.tokens)

    def _build(self, ids: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> None:
        """Build the tree, a level at a time, from sorted tokens: in that order the children of a node lie together.

        Sets, for each node but the root, its byte and the first of its children, which end where those of the next node
        begin; and the tokens that end at each node, likewise.
        """
        starts = np.cumsum(lengths) - lengths
        nodes = np.zeros(len(ids), dtype=np.int64)  # of each token, on the present level; the root is 0
        count, depth = 1, 0
        parents, node_bytes, node_of_id = [], [], []
        while len(ids):
            following = data[starts + depth]
            is_new = np.ones(len(ids), dtype=bool)
            is_new[1:] = (nodes[1:] != nodes[:-1]) | (following[1:] != following[:-1])
            parents.append(nodes[is_new])
            node_bytes.append(following[is_new])
            nodes = count + np.cumsum(is_new) - 1
            count += int(is_new.sum())
            depth += 1
            ends = lengths == depth
            node_of_id.append(np.stack([nodes[ends], ids[ends]]))
            nodes, ids, starts, lengths = (values[~ends] for values in (nodes, ids, starts, lengths))
        self._bytes = np.concatenate([np.zeros(1, dtype=np.uint8), *node_bytes])  # the root's is never read
        # Nodes are numbered in the order of their parents.
        self._children = 1 + np.searchsorted(np.concatenate(parents), np.arange(count + 1))
        ended, self._ids = np.concatenate(node_of_id, axis=1)
        self._ended = np.searchsorted(ended, np.arange(count + 1))

    def allowed(self, automaton: Automaton, state: int) -> Work[npt.NDArray[np.bool_]]:
        """Return which tokens may follow a text that led to `state`.  Shapes: (V,)"""
        mask = np.zeros(len(self), dtype=bool)
        nodes, states = np.zeros(1, dtype=np.int64), np.array([state], dtype=np.int32)
        while len(nodes):
            children, sources = _expand(self._children, nodes)
            states = yield from automaton.step(states[sources], automaton.classes_of(self._bytes[children]))
            yield len(children) // _NODES
            alive = states != DEAD
            nodes, states = children[alive], states[alive]
            mask[self._ids[_expand(self._ended, nodes)[0]]] = True
        return mask


def _expand(
    bounds: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the numbers bounds[p] to bounds[p + 1] of all places p, and for each the index of its place."""
    firsts = bounds[places]
    counts = bounds[places + 1] - firsts
    sources = np.repeat(np.arange(len(places)), counts)
    shifts = firsts - (np.cumsum(counts) - counts)
    return np.arange(len(sources)) + shifts[sources], sources
