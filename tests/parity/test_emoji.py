"""The packaged encoder of pictures and words: its files, and that words find their emoji."""

from __future__ import annotations

from tallow.models.built_in import emoji

# In twelve languages. None is a name in CLDR.
QUERIES = {
    "red apple fruit": "🍎",
    "hund tier": "🐶🐕🐩🦮",
    "voiture": "🚗🚙🚘",
    "guitarra música": "🎸",
    "pioggia": "🌧☔🌦",
    "gato animal": "🐱🐈",
    "vis dier": "🐟🐠🐡",
    "słońce": "☀🌞🌅🌄🌤",
    "ракета космос": "🚀",
    "çiçek": "🌸🌺🌻🌼🌷🌹💐",
    "電車": "🚃🚆🚉🚋🚈🚊🚞🚇",
    "披萨": "🍕",
}


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in emoji.FOLDER.iterdir() if path.suffix == ".safetensors") < 1_000_000


def test_card_and_licence() -> None:
    card = (emoji.FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{sum(it.numel() for it in emoji.load().parameters()):,} parameters" in card
    assert "Unicode, Inc." in (emoji.FOLDER / "LICENSE-UNICODE").read_text(encoding="utf-8")


def test_words_find_their_emoji() -> None:
    index = emoji.read_index()
    scores = emoji.load().encode_texts([*QUERIES]) @ index.vectors.T
    found = [[index.emoji[i] for i in row.argsort()[::-1][:5]] for row in scores]
    hits = [bool({*right} & {*those}) for right, those in zip(QUERIES.values(), found, strict=True)]
    assert sum(hits) >= 10, dict(zip(QUERIES, found, strict=True))
