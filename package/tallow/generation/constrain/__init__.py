r"""Constrained generation: texts that match a JSON schema, a regular expression, a grammar, or one of some choices.

    person = constrain.json_schema({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
    for piece in model.generate_text("Ada Lovelace as JSON: ", grammar=person):
        print(piece, end="", flush=True)

At each step only those tokens can be chosen with which the text can still become one of the grammar. They are found in
a tree of the vocabulary's bytes, a level at a time, and kept for each state of the grammar.

Source:  Willard and Louf 2023, arXiv:2307.09702 (masks for each state of an automaton)
"""

from tallow.generation.constrain.constraint import Constraint
from tallow.generation.constrain.grammars import Grammar, choices, grammar, json_object, json_schema, regex
from tallow.generation.constrain.vocabulary import Vocabulary
from tallow.lazy_names import names_of

__all__ = ["Constraint", "Grammar", "Vocabulary", "choices", "grammar", "json_object", "json_schema", "regex"]

__getattr__, __dir__ = names_of(__name__)
