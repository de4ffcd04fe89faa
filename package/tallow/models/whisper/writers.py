"""Write transcripts as plain text, subtitles, tables or JSON.

    txt     a line for each segment
    srt     SubRip: number, "00:00:01,000 --> 00:00:02,500", text, an empty line
    vtt     WebVTT: "WEBVTT", then the same with decimal points and without numbers
    tsv     start and end in milliseconds, text
    json    the whole transcript

Segments without words, such as silence, are written to JSON only.

Source:  https://www.w3.org/TR/webvtt1/; https://github.com/openai/whisper, `utils.py`
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from tallow.models.whisper.segments import Segment
from tallow.models.whisper.transcribe import Transcript


def timestamp(seconds: float, *, hours: bool = False, point: str = ".") -> str:
    """Return a time such as 01:02.345; with hours if `hours`, or if it is an hour or more."""
    minutes, milliseconds = divmod(round(1000 * seconds), 60_000)
    whole_hours, minutes = divmod(minutes, 60)
    start = f"{whole_hours:02d}:" if hours or whole_hours else ""
    return f"{start}{minutes:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"


def _spoken(transcript: Transcript) -> list[Segment]:
    return [segment for segment in transcript.segments if segment.text.strip()]


def txt(transcript: Transcript) -> str:
    """Return a line for each segment."""
    return "".join(f"{segment.text.strip()}\n" for segment in _spoken(transcript))


def srt(transcript: Transcript) -> str:
    """Return SubRip subtitles."""
    cues = (_cue(segment, hours=True, point=",") for segment in _spoken(transcript))
    return "".join(f"{number}\n{cue}" for number, cue in enumerate(cues, 1))


def vtt(transcript: Transcript) -> str:
    """Return WebVTT subtitles."""
    return "WEBVTT\n\n" + "".join(_cue(segment) for segment in _spoken(transcript))


def _cue(segment: Segment, *, hours: bool = False, point: str = ".") -> str:
    start, end = (timestamp(each, hours=hours, point=point) for each in (segment.start, segment.end))
    return f"{start} --> {end}\n{segment.text.strip().replace('-->', '->')}\n\n"


def tsv(transcript: Transcript) -> str:
    """Return a table of tab-separated values."""
    rows = (
        f"{round(1000 * segment.start)}\t{round(1000 * segment.end)}\t{segment.text.strip().replace(chr(9), ' ')}\n"
        for segment in _spoken(transcript)
    )
    return "start\tend\ttext\n" + "".join(rows)


def to_json(transcript: Transcript) -> str:
    """Return the transcript as JSON."""
    return json.dumps(asdict(transcript), ensure_ascii=False) + "\n"


WRITERS: dict[str, Callable[[Transcript], str]] = {"txt": txt, "srt": srt, "vtt": vtt, "tsv": tsv, "json": to_json}
