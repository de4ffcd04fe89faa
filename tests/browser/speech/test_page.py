"""wasm_examples/whisper in Chromium: speech from files and the microphone, with the native results."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Error, Locator, Page, expect
from spoken.espeak import Espeak
from support.long_sounds import FRAME, flac_of_silence, opus_of_silence
from tests.browser.conftest import START_MS, wait_until
from tests.browser.dropping import drop
from tests.browser.hub import Hub
from tests.browser.listening import MOST_WRONG, PAGE, PHRASES, RATE, Listener, say, words_wrong

from tallow.audio import write_wav
from tallow.models import Whisper
from tallow.models.built_in import spoken
from tallow.models.whisper import Segment, Transcript, transcribe
from tallow.models.whisper.writers import WRITERS


@pytest.fixture(scope="module")
def native() -> Whisper:
    return spoken.load()


# ---------------------------------------------------------------------------------------------------------------- text


def test_phrases_of_files_are_written_as_natively(shared: Listener, sounds: Path, native: Whisper) -> None:
    wrong = 0
    for i, phrase in enumerate(PHRASES):
        shared.hear(sounds / f"{i}.wav").is_done()
        text = (shared.text.text_content() or "").strip()
        assert text == transcribe(native, sounds / f"{i}.wav").text.strip()
        wrong += words_wrong(text, phrase)
        expect(shared.page.get_by_test_id("unsure")).to_be_hidden()
    assert wrong <= MOST_WRONG
    for name in ("× real time", "tokens/s", "ms per window", "wasm", "English"):
        expect(shared.stats).to_contain_text(name)


def test_segments_and_files_of_them(shared: Listener, sounds: Path, native: Whisper) -> None:
    shared.hear(sounds / "several.wav").is_done()
    assert words_wrong(shared.text.text_content(), " ".join(PHRASES)) <= MOST_WRONG
    saved = json.loads(shared.saved("json"))
    assert saved["language"] == "en"
    assert saved["duration_s"] == pytest.approx(soundfile.info(sounds / "several.wav").duration, abs=0.02)
    transcript = Transcript(**saved | {"segments": [Segment(**segment) for segment in saved["segments"]]})
    texts = [segment.text.strip() for segment in transcript.segments if segment.text.strip()]
    assert len(texts) > 1
    assert texts == [segment.text.strip() for segment in transcribe(native, sounds / "several.wav").segments]
    assert shared.segments.locator("span").all_text_contents() == texts
    for kind in ("txt", "srt", "vtt"):
        assert shared.saved(kind) == WRITERS[kind](transcript)


def test_nothing_empty_is_shown_before_a_sound(page: Page, site: str) -> None:
    page.goto(site + PAGE)
    expect(page.get_by_test_id("status")).to_have_text("Loading the built-in model")
    for name in ("mel", "results"):
        expect(page.get_by_test_id(name)).to_be_hidden()


def test_a_click_plays_a_segment_and_shows_it(shared: Listener, sounds: Path) -> None:
    shared.hear(sounds / "several.wav").is_done()
    canvas = shared.page.get_by_test_id("mel")
    before = ink(canvas)
    assert len(np.unique(before)) > 20
    shared.player.evaluate("(player) => { player.muted = true; window.ends = new Set(); }")
    shared.player.evaluate("(player) => player.addEventListener('pause', () => ends.add(player.currentTime))")
    shared.segments.first.click()
    wait_until(shared.page, "ends.size > 0")  # by itself, at the end of the segment
    at = shared.page.evaluate("[...ends][0]")
    assert 0 < at < shared.player.evaluate("(player) => player.duration") - 1
    assert not np.array_equal(ink(canvas), before)


def test_waveform_shows_the_sound_and_how_far_the_text_is(shared: Listener, sounds: Path) -> None:
    wave = shared.page.get_by_test_id("wave")
    shared.hear(sounds / "several.wav").is_done()
    duration = soundfile.info(sounds / "several.wav").duration
    expect(wave).to_have_attribute("data-seconds", re.compile(r"\d"))
    assert float(wave.get_attribute("data-seconds") or 0) == pytest.approx(duration, abs=0.1)
    expect(wave).to_have_attribute("data-done", wave.get_attribute("data-seconds") or "")
    assert tallest(wave, 0.0, 0.02) < tallest(wave, 0.0, 1.0) / 5  # it begins with silence
    shared.player.evaluate("(player) => { player.muted = true; }")
    box = wave.bounding_box()
    assert box
    wave.click(position={"x": box["width"] / 2, "y": 10})
    assert shared.player.evaluate("(player) => player.currentTime") == pytest.approx(duration / 2, abs=0.1)


def tallest(canvas: Locator, start: float, end: float) -> int:
    """Return the height of the tallest bar in a part of the waveform, in pixels."""
    heights: list[int] = canvas.evaluate(
        """(c, [start, end]) => {
          const [from, width] = [Math.floor(start * c.width), Math.floor((end - start) * c.width)];
          const { data } = c.getContext("2d").getImageData(from, 0, width, c.height);
          const drawn = (x, y) => data[4 * (y * width + x) + 3] > 0;
          const rows = [...Array(c.height).keys()];
          return [...Array(width).keys()].map((x) => rows.filter((y) => drawn(x, y)).length);
        }""",
        [start, end],
    )
    return max(heights)


def ink(canvas: Locator) -> np.ndarray[Any, Any]:
    data = "c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
    return np.array(canvas.evaluate(f"(c) => [...new Uint32Array({data}.buffer)]"))


def test_picture_ends_where_the_sound_does(shared: Listener, espeak: Espeak, tmp_path: Path) -> None:
    """Noise until the end, in windows that are mostly padding: the drawing varies up to the right edge."""
    seconds = 1.5
    noise = np.random.default_rng(0).standard_normal(round(seconds * RATE)).clip(-3, 3) / 4
    write_wav(tmp_path / "noise.wav", noise, RATE)
    shared.hear(tmp_path / "noise.wav").is_done()
    check_picture(shared, seconds)
    write_wav(tmp_path / "speech.wav", np.concatenate([say(espeak, PHRASES[0]), noise]), RATE)
    shared.hear(tmp_path / "speech.wav").is_done()
    shared.player.evaluate("(player) => { player.muted = true; }")
    shared.segments.first.click()
    expect(shared.segments.first).to_be_visible()
    check_picture(shared, None)


def check_picture(shared: Listener, seconds: float | None) -> None:
    canvas = shared.page.get_by_test_id("mel")
    # The right half, above the labels, would show padding of a window: a single colour from top to bottom.
    shade = """(c) => {
      const { data, width } = c.getContext("2d").getImageData(c.width / 2, 0, c.width / 2, c.height * 0.8);
      return [width, Array.from(data.filter((_, i) => i % 4 === 0))];
    }"""
    share = 0.0
    for _ in range(50):  # the picture of a segment is drawn some time after the click
        width, reds = canvas.evaluate(shade)
        columns = np.array(reds, np.float64).reshape(-1, width).T
        share = (columns.std(axis=1) > 1).mean()
        if share > 0.95:
            break
        shared.page.wait_for_timeout(100)
    assert share > 0.95
    if seconds is not None:
        assert canvas.get_attribute("data-seconds") == f"{seconds:.2f}"


def test_times_of_words(shared: Listener, sounds: Path) -> None:
    shared.page.get_by_test_id("timestamps").select_option("words")
    shared.hear(sounds / "0.wav").is_done()
    (words,) = (segment["words"] for segment in json.loads(shared.saved("json"))["segments"] if segment["text"])
    assert [word["word"].strip() for word in words] == (shared.text.text_content() or "").split()
    assert all(0 <= word["start"] <= word["end"] <= 3 for word in words)
    expect(shared.segments.locator("span[title]")).to_have_count(len(words))
    shared.page.get_by_test_id("timestamps").select_option("segments")


def test_stop_keeps_the_text(shared: Listener, sounds: Path) -> None:
    """The page itself presses Stop on the first segment, so the test does not depend on the machine's speed."""
    shared.page.evaluate("""
        new MutationObserver((_, observer) => {
          if (!document.querySelector("[data-testid=segment]")) return;
          document.querySelector("[data-testid=stop]").click();
          observer.disconnect();
        }).observe(document.querySelector("[data-testid=segments]"), { childList: true })
    """)
    shared.hear(sounds / "long.wav")
    expect(shared.status).to_have_text("Stopped.", timeout=START_MS)
    expect(shared.error).to_be_hidden()
    assert shared.saved("txt").split() == (shared.text.text_content() or "").split() != []
    expect(shared.page.get_by_test_id("stop")).to_be_disabled()
    shared.hear(sounds / "0.wav").is_done()


QUANTISED = "ggml-tiny-q8_0.bin"
UNKNOWN = "large size in stockings is hard to sell"


def test_uncertain_text_is_marked_and_a_larger_model_is_offered(
    shared: Listener, espeak: Espeak, sounds: Path, tiny: Path, tmp_path: Path
) -> None:
    write_wav(tmp_path / "lemons.wav", say(espeak, UNKNOWN), RATE)
    shared.hear(tmp_path / "lemons.wav").is_done()
    unsure, another = shared.page.get_by_test_id("unsure"), shared.page.get_by_test_id("another")
    expect(unsure).to_contain_text("unsure about the underlined text")
    expect(shared.page.get_by_test_id("unsure-why")).to_have_text(
        f"“unlikely words”: the mean log-probability of its tokens is below {spoken.LOGPROB_THRESHOLD}."
    )
    expect(shared.text.locator(".unsure").first).to_have_attribute("title", re.compile(r"log-probability -0\.\d\d"))
    expect(shared.segments.first.locator(".flag")).to_have_text("unsure: unlikely words")
    expect(another).to_have_text("Load Whisper tiny, 44 MB, 99 languages")

    hub = Hub(owner="ggerganov", **{"whisper.cpp": {QUANTISED: tiny.read_bytes()}})
    shared.page.context.route("https://huggingface.co/**", hub)
    try:
        another.click()
        expect(shared.name).to_contain_text(f"{QUANTISED}: ", timeout=START_MS)
        shared.is_done()  # the same sound, processed again
        expect(another).to_be_hidden()
    finally:
        shared.page.context.unroute("https://huggingface.co/**")
        shared.page.get_by_test_id("model").select_option("")
        expect(shared.name).to_contain_text("The built-in model: ")
    shared.hear(sounds / "0.wav").is_done()
    expect(unsure).to_be_hidden()


def test_dropped_and_sample(shared: Listener, sounds: Path) -> None:
    drop(shared.page, {"dropped.wav": sounds / "0.wav"})
    shared.is_done()
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text("dropped.wav, 0:0")
    shared.page.get_by_test_id("sample").last.click()
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text("commands.flac", timeout=START_MS)
    shared.is_done()
    expect(shared.segments).to_have_count(4)
    expect(shared.text).to_contain_text("go forward ten steps")


def test_names_of_files_are_text(shared: Listener, sounds: Path, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>.wav"
    shutil.copy(sounds / "0.wav", tmp_path / name)
    shared.hear(tmp_path / name).is_done()
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text(name)
    expect(shared.page.locator("main img")).to_have_count(0)
    (tmp_path / f"2{name}").write_bytes(b"")
    shared.hear(tmp_path / f"2{name}").fails_with(name, "is empty")
    expect(shared.page.locator("main img")).to_have_count(0)


def test_silence(shared: Listener, sounds: Path) -> None:
    shared.hear(sounds / "silence.wav").is_done()
    expect(shared.status).to_have_text("Done. No speech was found.")
    expect(shared.segments).to_have_count(0)


# --------------------------------------------------------------------------------------------------------------- files

FORMAT = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
NO_SOUND = {
    "empty.wav": (b"", "is empty"),
    "text.wav": (b"This is no sound.\n" * 50, "cannot be read as sound"),
    "head.wav": (b"RIFF\0\0\0\0WAVE" + FORMAT + b"data\0\0\0\0", "has no sound"),
    "frame.mp3": (b"\xff\xfb\x90\x00" + bytes(100_000), "cannot be read as sound"),  # one head of many
    "noise.mp4": (np.random.default_rng(0).bytes(5000), "cannot be read as sound"),
}


@pytest.mark.parametrize("name", NO_SOUND)
def test_files_without_audio(name: str, shared: Listener, tmp_path: Path) -> None:
    content, messages = NO_SOUND[name]
    (tmp_path / name).write_bytes(content)
    shared.hear(tmp_path / name).fails_with(name, messages)


def decode(page: Page, site: str, file: Path) -> np.ndarray[Any, Any]:
    """Return the samples that the page decodes from a file."""
    page.goto(site)
    page.set_content("<input type=file>")
    page.locator("input").set_input_files(file)
    samples: str = page.evaluate(
        """async (url) => {
          const { samplesOf } = await import(url);
          const parts = [];
          const file = document.querySelector("input").files[0];
          for await (const { samples } of samplesOf(file, new AbortController().signal)) parts.push(samples);
          const reader = new FileReader();
          await new Promise((resolve) => { reader.onload = resolve; reader.readAsDataURL(new Blob(parts)); });
          return reader.result.split(",")[1] ?? "";
        }""",
        f"{site}web/sound.js",
    )
    return np.frombuffer(base64.b64decode(samples), "<i2") / 32768


TONES_HZ = (440.0, 1234.5)


def tones(seconds: float, rate: int) -> np.ndarray[Any, Any]:
    """One tone in each of two channels.  Shapes: (N, 2)"""
    return 0.5 * np.sin(2 * np.pi * np.outer(np.arange(round(seconds * rate)) / rate, TONES_HZ))


def test_parts_of_long_files_join(page: Page, site: str, tmp_path: Path) -> None:
    expected = tones(21.3, RATE).mean(axis=1)
    inner = slice(RATE, 20 * RATE + RATE // 2)  # where resampling has samples on both sides
    for rate, subtype, atol in ((8000, "PCM_U8", 0.02), (44100, "PCM_24", 0.005), (96000, "FLOAT", 0.005)):
        soundfile.write(tmp_path / "tones.wav", tones(21.3, rate), rate, subtype=subtype)
        samples = decode(page, site, tmp_path / "tones.wav")
        assert abs(len(samples) - len(expected)) <= 1
        np.testing.assert_allclose(samples[inner], expected[inner], atol=atol)


@pytest.mark.parametrize(("rate", "subtype"), [(16000, "PCM_16"), (44100, "PCM_24")])
def test_parts_of_a_flac_join(rate: int, subtype: str, page: Page, site: str, tmp_path: Path) -> None:
    seconds = 45.7
    expected = tones(seconds, RATE).mean(axis=1)
    soundfile.write(tmp_path / "tones.flac", tones(seconds, rate), rate, subtype=subtype)
    samples = decode(page, site, tmp_path / "tones.flac")
    assert abs(len(samples) - len(expected)) <= 1
    error = np.abs(samples[: len(expected)] - expected[: len(samples)])
    one_sample = 0.25 * 2 * np.pi * sum(TONES_HZ) / RATE  # by which a part that is resampled by itself may be displaced
    assert np.quantile(error, 0.999) < (0.001 if rate == RATE else 1.05 * one_sample)


def watch_decoder(page: Page) -> None:
    """Let `longest` be the longest sound that the browser has decoded at once, in seconds."""
    page.add_init_script("""
        window.longest = 0;
        const { decodeAudioData } = OfflineAudioContext.prototype;
        OfflineAudioContext.prototype.decodeAudioData = async function (bytes) {
          const decoded = await decodeAudioData.call(this, bytes);
          window.longest = Math.max(window.longest, decoded.duration);
          return decoded;
        };
    """)


def test_a_flac_that_hides_its_length_is_decoded_in_parts(page: Page, site: str, tmp_path: Path) -> None:
    """Here 13 minutes. At once, 40 minutes of one channel are 150 MB, and a small file can have hundreds of hours."""
    frames = 200
    tag = b"ID3\4\0\0\0\0\1\0" + bytes(128)
    (tmp_path / "lies.flac").write_bytes(tag + flac_of_silence(frames, says=16000))
    watch_decoder(page)
    samples = decode(page, site, tmp_path / "lies.flac")
    assert len(samples) == frames * FRAME
    assert not samples.any()
    assert 20 < page.evaluate("longest") < 33  # a part, its margin, and what the last frame of each has more


@pytest.mark.parametrize(("subtype", "rate"), [("OPUS", 48000), ("VORBIS", 22050)])
def test_parts_of_an_ogg_are_where_they_belong(subtype: str, rate: int, page: Page, site: str, tmp_path: Path) -> None:
    seconds = 45
    loud = (np.arange(seconds * rate) // rate) % 2  # every other second
    file = tmp_path / "pulses.ogg"
    with soundfile.SoundFile(file, "w", rate, 2, subtype, format="OGG") as opened:
        sound = tones(seconds, rate)[:, :1] * loud[:, None] * [1, 1]
        for start in range(0, len(sound), rate):  # libsndfile fails on much at once
            opened.write(sound[start : start + rate])
    watch_decoder(page)
    samples = decode(page, site, file)
    assert abs(len(samples) - seconds * RATE) <= 2
    envelope = np.abs(samples[: 44 * RATE]).reshape(-1, RATE // 10).max(axis=1)  # tenths of seconds
    middle = envelope.reshape(44, 10)[:, 2:8]
    assert (middle[1::2] > 0.4).all()
    assert (middle[::2] < 0.05).all()
    assert 10 < page.evaluate("longest") < 25


def test_an_ogg_that_hides_its_length_is_decoded_in_parts(page: Page, site: str, tmp_path: Path) -> None:
    """Packets of two bytes that last 120 ms: 20 minutes in 30 kB, of which the positions of its pages say a second."""
    packets = 10_000
    (tmp_path / "lies.ogg").write_bytes(opus_of_silence(packets, says=48_000))
    watch_decoder(page)
    samples = decode(page, site, tmp_path / "lies.ogg")
    assert len(samples) <= 2 * RATE
    assert page.evaluate("longest") < 60


def test_an_ogg_of_several_streams_is_refused(page: Page, site: str, tmp_path: Path) -> None:
    (tmp_path / "two.ogg").write_bytes(opus_of_silence(200) + opus_of_silence(200, serial=2))
    with pytest.raises(Error, match=r"two\.ogg could not be read: it has several streams"):
        decode(page, site, tmp_path / "two.ogg")


def test_a_flac_of_frames_that_count_for_nothing_is_refused(page: Page, site: str, tmp_path: Path) -> None:
    few, many = range(10, 50), range(10, 300)  # after frames of the file's own rate, which say how it is cut
    (tmp_path / "few.flac").write_bytes(flac_of_silence(50, foreign=few))
    assert 0 < len(decode(page, site, tmp_path / "few.flac")) < 60 * FRAME
    (tmp_path / "many.flac").write_bytes(flac_of_silence(300, foreign=many))
    with pytest.raises(Error, match=r"many\.flac could not be read: it has frames of different forms"):
        decode(page, site, tmp_path / "many.flac")


def test_parts_of_an_mp3_are_where_they_belong(page: Page, site: str, tmp_path: Path) -> None:
    rate = 22050
    loud = (np.arange(25 * rate) // rate) % 2  # every other second
    soundfile.write(tmp_path / "pulses.mp3", tones(25, rate)[:, 0] * loud, rate, format="MP3")
    samples = decode(page, site, tmp_path / "pulses.mp3")
    envelope = np.abs(samples[: 24 * RATE]).reshape(-1, RATE // 10).max(axis=1)  # tenths of seconds
    middle = envelope.reshape(24, 10)[:, 2:8]  # the delay of the codec is shorter
    assert (middle[1::2] > 0.4).all()
    assert (middle[::2] < 0.05).all()


GIGABYTE = 2**30
# The largest piece of a file that the page reads at once, and a decoder that never ends.
WATCH = """() => {
    Object.assign(window, { largest: 0, stuck: false });
    if (Blob.prototype.watched) return;
    Blob.prototype.watched = true;
    for (const name of ["arrayBuffer", "text"]) {
      const original = Blob.prototype[name];
      Blob.prototype[name] = function () { largest = Math.max(largest, this.size); return original.call(this); };
    }
    const { decodeAudioData } = OfflineAudioContext.prototype;
    OfflineAudioContext.prototype.decodeAudioData = function (bytes) {
      largest = Math.max(largest, bytes.byteLength);
      return window.stuck ? new Promise(() => {}) : decodeAudioData.call(this, bytes);
    };
}"""


def sparse(path: Path, head: bytes, size: int = GIGABYTE) -> Path:
    """A sparse file of zeros after its header, which needs no disk space."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)
    return path


@pytest.fixture
def watched(shared: Listener) -> Iterator[Listener]:
    shared.page.evaluate(WATCH)
    yield shared
    shared.page.evaluate("window.stuck = false")


@pytest.mark.parametrize("kind", ["wav", "mp3"])
def test_a_gigabyte_is_read_in_parts_and_stopped(kind: str, watched: Listener, sounds: Path, tmp_path: Path) -> None:
    wav = b"RIFF\0\0\0\0WAVE" + FORMAT + struct.pack("<4sI", b"data", GIGABYTE - 44)
    file = tmp_path / f"long.{kind}"
    if kind == "wav":
        sparse(file, wav)
    else:  # one minute, and no audio after it
        soundfile.write(file, tones(60, 22050)[:, 0], 22050, format="MP3")
        sparse(file, file.read_bytes())
    hearing = watched.page.get_by_test_id("hearing")
    watched.page.evaluate("""
        window.texts = new Set();
        const bar = document.querySelector("[data-testid=hearing]");
        new MutationObserver(() => texts.add(bar.textContent.trim())).observe(bar, { childList: true, subtree: true });
    """)
    watched.hear(file)
    expect(hearing).to_contain_text(f"Reading long.{kind}, ")
    watched.press("stop")
    expect(watched.status).to_have_text("Stopped.")
    expect(hearing).to_be_hidden()
    assert 0 < watched.page.evaluate("largest") < 2**23
    watched.hear(sounds / "0.wav").is_done()
    assert words_wrong(watched.text.text_content(), PHRASES[0]) <= MOST_WRONG


def test_a_decoder_that_does_not_end_is_left_alone(watched: Listener, sounds: Path) -> None:
    watched.page.evaluate("window.stuck = true")
    watched.hear(sounds / "2.wav")
    expect(watched.status).to_contain_text("Reading 2.wav")
    watched.press("stop")
    expect(watched.status).to_have_text("Stopped.")
    watched.press("transcribe")  # which waits for it
    expect(watched.status).to_contain_text("Reading 2.wav")
    watched.press("stop")
    expect(watched.status).to_have_text("Stopped.")
    watched.page.reload()
    expect(watched.status).to_have_text("Ready.", timeout=START_MS)


TOO_LARGE = {
    "film.mp4": (b"\0\0\0\x20ftypisom", 2 * GIGABYTE, "cannot be read as sound"),
    "rates.wav": (b"RIFF\0\0\0\0WAVE" + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 2**31, 0, 2, 16) + b"data\0\0\0\0",
                  GIGABYTE, "cannot be read as sound"),
    "days.wav": (b"RIFF\0\0\0\0WAVE" + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8) + b"data\0\0\0\0",
                 GIGABYTE, "lasts 37.3 hours"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LARGE)
def test_files_that_are_too_large_are_refused_before_they_are_read(
    name: str, watched: Listener, tmp_path: Path
) -> None:
    head, size, messages = TOO_LARGE[name]
    watched.hear(sparse(tmp_path / name, head, size)).fails_with(name, messages)
    assert watched.page.evaluate("largest") < 2**23
