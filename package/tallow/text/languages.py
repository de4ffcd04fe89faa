"""The languages of Whisper, in the order of its tokens."""

from __future__ import annotations

from tallow.errors import ArgumentError

# code:name; ISO 639 codes, except for jw, Javanese.
_TABLE = """
en:english zh:chinese de:german es:spanish ru:russian ko:korean fr:french ja:japanese pt:portuguese tr:turkish
pl:polish ca:catalan nl:dutch ar:arabic sv:swedish it:italian id:indonesian hi:hindi fi:finnish vi:vietnamese
he:hebrew uk:ukrainian el:greek ms:malay cs:czech ro:romanian da:danish hu:hungarian ta:tamil no:norwegian
th:thai ur:urdu hr:croatian bg:bulgarian lt:lithuanian la:latin mi:maori ml:malayalam cy:welsh sk:slovak
te:telugu fa:persian lv:latvian bn:bengali sr:serbian az:azerbaijani sl:slovenian kn:kannada et:estonian
mk:macedonian br:breton eu:basque is:icelandic hy:armenian ne:nepali mn:mongolian bs:bosnian kk:kazakh
sq:albanian sw:swahili gl:galician mr:marathi pa:punjabi si:sinhala km:khmer sn:shona yo:yoruba so:somali
af:afrikaans oc:occitan ka:georgian be:belarusian tg:tajik sd:sindhi gu:gujarati am:amharic yi:yiddish lo:lao
uz:uzbek fo:faroese ht:haitian_creole ps:pashto tk:turkmen nn:nynorsk mt:maltese sa:sanskrit lb:luxembourgish
my:myanmar bo:tibetan tl:tagalog mg:malagasy as:assamese tt:tatar haw:hawaiian ln:lingala ha:hausa ba:bashkir
jw:javanese su:sundanese yue:cantonese
"""
_ALIASES = """
my:burmese ca:valencian nl:flemish ht:haitian lb:letzeburgesch ps:pushto pa:panjabi ro:moldavian ro:moldovan
si:sinhalese es:castilian zh:mandarin
"""

LANGUAGES = {code: name.replace("_", " ") for code, name in (entry.split(":") for entry in _TABLE.split())}
CODES = {name: code for code, name in LANGUAGES.items()}
CODES |= {name: code for code, name in (entry.split(":") for entry in _ALIASES.split())}

# Languages written without spaces between words.
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})


def language_code(language: str) -> str:
    """Return the code of a language, given its code or its English name.  Raises: ArgumentError"""
    name = language.lower()
    if name in LANGUAGES:
        return name
    if name not in CODES:
        raise ArgumentError(
            f"unknown language {language!r}", hint=f"use one of {', '.join(LANGUAGES)}, or an English name"
        )
    return CODES[name]
