"""The npm package: what is in it, and its functions on a page of a plain static host, in a real Chromium."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from support.guides import blocks
from support.paths import ROOT
from tests.browser.conftest import START_MS
from tests.browser.plain_host import serving_plainly
from tests.browser.sentence_folder import write_sentence_folder
from tests.browser.test_types import typescript as typescript  # a fixture

import tallow
from tallow.models import SentenceEncoder
from tallow.transformers import pipeline

(FIVE_LINES,) = (block for block in blocks(ROOT / "docs" / "browser.md", "html") if "node_modules/tallow" in block)
TEXTS = ["a small red ball", "a small red car", "rain"]
EMPTY_PAGE = "<!doctype html><title>A page</title>"


@pytest.fixture(scope="module")
def project(site_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the package is installed, with pages and models."""
    if not shutil.which("npm"):
        pytest.skip("npm is not on PATH")
    folder = tmp_path_factory.mktemp("project")
    package = importlib.import_module("build_npm").pack(site_dir, folder)
    assert package.name == f"tallow-{tallow.__version__}.tgz"
    (folder / "package.json").write_text("{}")
    command = ["npm", "install", "--offline", "--no-audit", "--no-fund", f"./{package.name}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "index.html").write_text(FIVE_LINES)
    (folder / "empty.html").write_text(EMPTY_PAGE)
    write_sentence_folder(folder / "encoder")
    shutil.copytree(ROOT / "wasm_examples" / "whisper" / "samples", folder / "samples")
    shutil.copyfile(ROOT / "README.md", folder / "model.gguf")
    return folder


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    with serving_plainly(project) as host:
        yield host.url


@pytest.fixture(scope="module")
def module(browser: Browser, address: str) -> Iterator[Page]:
    """A page with the module as `tallow`. Python starts once for all tests."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}empty.html")
    page.evaluate("async () => { window.tallow = await import('./node_modules/tallow/web/index.js'); }")
    yield page
    context.close()


def test_package_has_the_version_and_the_licences(project: Path) -> None:
    package = project / "node_modules" / "tallow"
    description = json.loads((package / "package.json").read_text())
    assert description["version"] == tallow.__version__
    assert {"LICENSE-MIT", "LICENSE-APACHE", "README.md", "site.json"} <= {path.name for path in package.iterdir()}
    entry = description["exports"]["."]
    assert (package / entry["types"]).is_file()
    assert (package / entry["default"]).is_file()
    assert not list(package.rglob("*.html"))


def test_readme_of_the_package_shows_the_lines_of_the_guide() -> None:
    assert blocks(ROOT / "web" / "npm" / "README.md", "html") == [FIVE_LINES]


def test_five_lines_of_the_guide_write_a_story(page: Page, address: str) -> None:
    requested: list[str] = []
    page.context.on("request", lambda request: requested.append(request.url))
    page.goto(address)
    expect(page.locator("body")).to_contain_text(". ", timeout=START_MS)
    host = urljoin(address, "/")
    assert all(url.startswith((host, "blob:")) for url in requested)


def test_generation_repeats_with_a_seed_and_stops(module: Page) -> None:
    first, second, few, error = module.evaluate("""
    async () => {
      const lm = await tallow.load("story");
      const write = async (options) => {
        const pieces = [];
        for await (const piece of lm.generate("Once upon a time", { seed: 3, ...options })) pieces.push(piece);
        return pieces.join("");
      };
      const few = [];
      for await (const piece of lm.generate("Once")) if (few.push(piece) === 3) break;
      const stop = new AbortController();
      let error;
      try {
        for await (const piece of lm.generate("Once", { signal: stop.signal, maxTokens: 400 })) stop.abort();
      } catch (aborted) { error = aborted.name; }
      const texts = [await write({ maxTokens: 20 }), await write({ maxTokens: 20, temperature: 0.8 })];
      await lm.close();
      return [...texts, few, error];
    }
    """)
    assert first == second
    assert len(first) > 20
    assert len(few) == 3
    assert error == "AbortError"


ERRORS = {
    "tallow.pipeline('poetry')": ("InvalidKeyError", "unknown task 'poetry'", "the tasks"),
    "tallow.pipeline('fill-mask')": ("ArgumentError", "no model of the package fits the task 'fill-mask'", "name one"),
    "tallow.python('1 / 0')": ("ZeroDivisionError", "ZeroDivisionError: division by zero", None),
    "tallow.python('tl.ones(2) @ tl.ones(3)')": ("NameError", "NameError: name 'tl' is not defined", None),
    "tallow.load('a story')": ("BadModel", '"a story" is not the address of a model.', "Write an address"),
    "tallow.load(new URL('model.gguf', location))": ("CheckpointError", "the file is not a GGUF file", "pass the"),
    "tallow.load(new Blob(['']))": ("CheckpointError", "the file is not a GGUF file", "pass the address"),
    "tallow.transcribe(new Blob([]))": ("NoSound", "The sound is empty.", "Choose"),
    "tallow.transcribe(new Blob(['abc']))": ("SoundError", "The sound cannot be read as sound.", "Choose"),
    "tallow.embed('a', { model: new URL('samples', location).href })": ("CheckpointError", "config.json not", "write"),
    "tallow.load('story', { files: '/nowhere' })": ("WorkerError", "The worker script http", "Check"),
    "tallow.load().then((lm) => lm.generate('a', { topP: 2 }).next())": ("ArgumentError", "top_p=2", "pass"),
    "tallow.load().then((lm) => { lm.close(); return lm.generate('a').next(); })": (
        "ArgumentError",
        "the model was closed",
        "load it again",
    ),
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_have_the_message_of_python(module: Page, call: str) -> None:
    name, message, hint = ERRORS[call]
    tell = "({ name, message, hint }) => [name, message, hint]"
    found = module.evaluate(f"() => {call}.then(() => null, {tell})")
    assert found is not None
    assert found[0] == name
    assert found[1].startswith(message)
    assert found[2] is hint if hint is None else found[2].startswith(hint)


def test_python_returns_values_and_keeps_variables(module: Page) -> None:
    found = module.evaluate("""
    async () => {
      let printed = "";
      await tallow.python("import tallow as tl\\nprint('hello')", { onOutput: (text) => (printed += text) });
      const tensor = await tallow.python("tl.tensor(row) * 2", { variables: { row: [1, 2.5] } });
      await tallow.python("import asyncio\\nawait asyncio.sleep(0)");
      const values = await tallow.python("{'a': (1, None), 'b': {2}, 'c': tl.float32, 3: tl.tensor(4)}");
      const matrix = await tallow.python("tl.eye(2)");
      return [printed, tensor.constructor.name, [...tensor], values, matrix.map((row) => [...row])];
    }
    """)
    values = {"a": [1, None], "b": [2], "c": "tallow.float32", "3": 4}
    assert found == ["hello\n", "Float32Array", [2, 5], values, [[1, 0], [0, 1]]]


def test_transcribe_reads_a_sound_file(module: Page) -> None:
    text, segments, heard = module.evaluate("""
    async () => {
      const sound = await (await fetch("samples/commands.flac")).blob();
      const heard = [];
      const { text, segments } = await tallow.transcribe(sound, { onText: (text) => heard.push(text) });
      return [text, segments, heard];
    }
    """)
    assert text == "turn left go forward ten steps open the red door stop"
    assert "".join(heard).strip() == text
    assert " ".join(segment["text"] for segment in segments) == text
    assert 0 <= segments[0]["start"] < segments[0]["end"] <= segments[-1]["start"]


def test_embed_agrees_with_python_on_this_machine(module: Page, project: Path) -> None:
    found, one, stages = module.evaluate(
        """
    async (texts) => {
      const stages = new Set();
      const options = { model: new URL("encoder", location).href, onProgress: ({ stage }) => stages.add(stage) };
      const vectors = await tallow.embed(texts, options);
      return [vectors.map((row) => [...row]), [...await tallow.embed(texts[1], options)], [...stages]];
    }
    """,
        TEXTS,
    )
    expected = SentenceEncoder.from_pretrained(project / "encoder").encode(TEXTS, normalize=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert one == found[1]
    assert "download" in stages


def test_pipelines_have_the_results_of_python(module: Page) -> None:
    written, pieces, vectors, heard = module.evaluate("""
    async () => {
      const write = await tallow.pipeline("text-generation");
      const pieces = [];
      const callback_function = (text) => pieces.push(text);
      const streamer = new tallow.TextStreamer(write.tokenizer, { skip_prompt: true, callback_function });
      const written = await write("Once upon a time", { max_new_tokens: 12, streamer });
      const extract = await tallow.pipeline("feature-extraction");
      const { data, dims, tolist } = await extract(["a cat", "rain"], { pooling: "mean", normalize: true });
      const listen = await tallow.pipeline("automatic-speech-recognition");
      const heard = await listen(new URL("samples/timer.flac", location));
      return [written, pieces, [dims, data.constructor.name, tolist()], heard];
    }
    """)
    assert written == pipeline("text-generation")("Once upon a time", max_new_tokens=12, do_sample=False)
    assert "Once upon a time" + "".join(pieces) == written[0]["generated_text"]
    dims, kind, rows = vectors
    assert (dims[0], kind) == (2, "Float32Array")
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    extract = pipeline("feature-extraction")
    means = [np.mean(extract(text)[0], axis=0) for text in ("a cat", "rain")]
    np.testing.assert_allclose(rows, [mean / np.linalg.norm(mean) for mean in means], atol=1e-4)
    assert "twenty minutes" in heard["text"]


def test_pipelines_end(module: Page) -> None:
    found = module.evaluate("""
    async () => {
      const tell = ({ name, message }) => [name, message];
      const write = await tallow.pipeline("text-generation");
      await write.dispose();
      const disposed = await write("Once").catch(tell);
      const other = await tallow.pipeline("text-generation");
      const running = other("Once", { max_new_tokens: 400 }).catch(tell);
      await tallow.close();
      return [disposed, await running];
    }
    """)
    assert found[0] == ["ArgumentError", "the pipeline was disposed of"]
    assert found[1][0] == "Closed"


def test_python_starts_again_after_close(module: Page) -> None:
    found = module.evaluate("""
    async () => {
      const lm = await tallow.load();
      await tallow.python("kept = 1");
      await tallow.close();
      const error = await lm.generate("Once").next().catch(({ name }) => name);
      return [error, await tallow.python("'kept' in globals()")];
    }
    """)
    assert found == ["Closed", False]


CONSUMER = """
import { type LanguageModel, Problem, embed, load, python, transcribe } from "tallow";
const lm: LanguageModel = await load("story", { onProgress: ({ stage, loaded }) => console.log(stage, loaded) });
const stop = new AbortController();
for await (const piece of lm.generate("Once", { maxTokens: 3, signal: stop.signal })) console.log(piece.length);
const vectors: Float32Array[] = await embed(["a"]);
const vector: Float32Array = await embed("a", { files: "/tallow/" });
const { text, segments } = await transcribe(new Blob([]), { language: "en" });
console.log(vectors, vector, text.length, segments[0].start, await python("1"), Problem);
// @ts-expect-error
lm.generate(1);
// @ts-expect-error
load("story", { temperature: 1 });
"""
SAME_TYPES = """
import type * as declared from "{package}/web/npm/types.d.ts";
import * as written from "{package}/web/npm/index.js";
const checked: typeof declared = written;
console.log(checked);
"""


def test_types_fit_the_module_and_its_users(typescript: Path, project: Path, pyodide_dir: Path) -> None:
    (project / "consumer.ts").write_text(CONSUMER)
    (project / "same.ts").write_text(SAME_TYPES.format(package=ROOT))
    base = json.loads((ROOT / "web" / "tsconfig.json").read_text())["compilerOptions"]
    options = {"skipLibCheck": True, "paths": {"pyodide": [str(pyodide_dir / "pyodide.d.ts")]}}
    config = {"compilerOptions": base | options, "files": ["consumer.ts", "same.ts"]}
    (project / "tsconfig.json").write_text(json.dumps(config))
    process = subprocess.run([typescript, "-p", project], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
