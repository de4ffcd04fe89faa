"""The letters that GPT-2's and similar vocabularies use for bytes: visible Latin-1 characters for themselves, letters
from Ā on for the others."""

_VISIBLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_HIDDEN = sorted(set(range(256)) - set(_VISIBLE))

BYTES_OF_LETTERS = {chr(byte): byte for byte in _VISIBLE} | {chr(0x100 + i): byte for i, byte in enumerate(_HIDDEN)}
LETTERS_OF_BYTES = {byte: letter for letter, byte in BYTES_OF_LETTERS.items()}
