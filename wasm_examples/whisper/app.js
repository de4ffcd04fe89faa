import { dropped, filesOf, folder, written } from "../../web/folder.js";
import { isolate } from "../../web/isolation.js";
import { Kept } from "../../web/kept.js";
import { Figures, ProblemBox, ProgressBar, Status, aborted, element, megabytes, onDrop, save } from "../../web/page.js";
import { Problem } from "../../web/protocol.js";
import { Runtime } from "../../web/tallow.js";
import { Recorder } from "./recorder.js";
import { samplesOf } from "./sound.js";
import { Spectrogram, clock } from "./spectrogram.js";
import { Transcript } from "./transcript.js";

/** @import { Choice } from "../../web/folder.js" */
/** @import { Loaded, Source, Started } from "../../web/protocol.js" */
/** @import { Segment } from "./transcript.js" */
/** @typedef {(signal: AbortSignal) => Promise<Record<string, Source>>} Fetching  finds the files of a model */
/** @typedef {{ position_s: number, duration_s: number, seconds: number, windows: number, encode_s: number, tokens: number, decode_s: number }} Stats */
/** @typedef {{ file: string, name: string }} Sample */

const HEADS = { config: "config.json" };
const SINGLE = /\.(pt|bin)$/i;
const OF_MODEL = /\.(pt|bin|safetensors|json|tiktoken)$/i;
const PACKAGED = "";
// Hearing a window takes about as long as writing it down.
const ENCODER_SHARE = 0.5;

const page = {
  modelName: element("model-name", HTMLElement),
  choices: element("choices", HTMLDetailsElement),
  model: element("model", HTMLSelectElement),
  modelForm: element("model-form", HTMLFormElement),
  modelId: element("model-id", HTMLInputElement),
  modelFile: element("model-file", HTMLInputElement),
  modelFolder: element("model-folder", HTMLInputElement),
  knows: element("knows", HTMLElement),
  form: element("sound-form", HTMLFormElement),
  audioFile: element("audio-file", HTMLInputElement),
  record: element("record", HTMLButtonElement),
  level: element("level", HTMLMeterElement),
  samples: element("samples", HTMLElement),
  soundName: element("sound-name", HTMLElement),
  player: element("player", HTMLAudioElement),
  language: element("language", HTMLSelectElement),
  task: element("task", HTMLSelectElement),
  timestamps: element("timestamps", HTMLSelectElement),
  stop: element("stop", HTMLButtonElement),
  transcript: element("transcript", HTMLElement),
  segments: element("segments", HTMLElement),
  copy: element("copy", HTMLButtonElement),
  unsure: element("unsure", HTMLElement),
  unsureText: element("unsure-text", HTMLElement),
  another: element("another", HTMLButtonElement),
};
const status = new Status(element("status", HTMLElement));
const problems = new ProblemBox(element("error", HTMLElement));
const loading = new ProgressBar(element("progress", HTMLElement));
const hearing = new ProgressBar(element("hearing", HTMLElement));
const downloads = new Kept(element("kept", HTMLElement));
const FIGURES = ["Speed", "Heard", "Language", "Encoder", "Decoder", "Kernels"];

/** Loads a model, records a sound and transcribes it: one of each at a time. */
class Listener {
  #runtime = Runtime.create();
  /** @type {Promise<Started>} */
  #started;
  /** @type {{ id: string, description: string, window_s: number } | null}  the model in memory; one that cannot be loaded leaves it there */
  #current = null;
  /** @type {{ controller: AbortController, done: Promise<boolean> } | null} */
  #loading = null;
  /** @type {{ controller: AbortController, done: Promise<void> } | null} */
  #transcribing = null;
  /** @type {{ controller: AbortController, recorder: Promise<Recorder> } | null} */
  #recording = null;
  /** @type {File | null}  what is to be transcribed */
  #sound = null;
  /** @type {File | null}  the one whose samples Python has */
  #given = null;
  #duration_s = 0; // not known before Python has looked over it
  #figures = new Figures(element("stats", HTMLElement), FIGURES);
  #spectrogram = new Spectrogram(element("mel", HTMLCanvasElement));
  #transcript = new Transcript(page.transcript, page.segments, page.player, (segment) => this.#picture(segment));

  constructor() {
    const modules = [new URL("progress.py", import.meta.url)];
    const onProgress = loading.show.bind(loading);
    this.#started = this.#runtime.start(new URL("app.py", import.meta.url), { modules, onProgress });
    this.#started.then(
      ({ tallow, python, seconds }) => {
        this.#figures.show("Start of Python", `${(seconds.fetch + seconds.python + seconds.import).toFixed(1)} s`);
        this.#figures.show("Versions", `tallow ${tallow}, Python ${python}`);
      },
      (error) => {
        loading.hide();
        status.say("Python is not running.");
        problems.show(error, { label: "Try again", action: () => location.reload() });
      },
    );
    this.load("Built-in model", async () => ({}), PACKAGED);
  }

  // --------------------------------------------------------------------------------------------------------- models

  /** Load a model in place of the one that is loading or loaded. @param {string} name @param {Fetching} fetching @param {string} [id] */
  load(name, fetching, id = name) {
    this.#abort();
    const controller = new AbortController();
    const load = { controller, done: this.#load(name, fetching, id, controller.signal) };
    this.#loading = load;
    load.done.finally(() => {
      if (this.#loading !== load) return; // another load has taken over the page
      this.#loading = null;
      loading.hide();
      page.modelName.textContent = this.#current?.description ?? "No model. Choose one.";
      if (this.#current) chooseModel(this.#current.id);
      downloads.show();
    });
  }

  /** A model of the Hub, or at an address. @param {string} text */
  loadWritten(text) {
    const { name, place } = written(text, "openai/whisper-tiny");
    this.#loadFolder({ name, place });
  }

  /** Files of this computer: a folder's, or a single one with a model, and maybe its tokenizer. @param {Map<string, File>} files */
  loadFiles(files) {
    const single = [...files.values()].filter(({ name }) => SINGLE.test(name));
    if ([...files.keys()].some((path) => path.split("/").pop() === HEADS.config) || single.length !== 1) {
      const [first = ""] = files.keys();
      return this.#loadFolder({ name: first.includes("/") ? first.split("/")[0] : "Chosen files", place: folder(files) });
    }
    const sources = Object.fromEntries([...files.values()].filter(({ name }) => OF_MODEL.test(name)).map((file) => [file.name, { file }]));
    this.load(single[0].name, async () => sources);
  }

  /** @param {Choice} choice */
  #loadFolder({ name, place }) {
    const ask = (/** @type {Record<string, unknown>} */ texts) => this.#runtime.call("wanted", texts);
    this.load(name, (signal) => filesOf(place, HEADS, ask, signal));
  }

  /** @param {string} name @param {Fetching} fetching @param {string} id @param {AbortSignal} signal @returns {Promise<boolean>} whether it can be used */
  async #load(name, fetching, id, signal) {
    problems.hide();
    status.say(`Loading ${name}`);
    page.modelName.textContent = `Loading ${name}`;
    try {
      await Promise.race([this.#started, aborted(signal)]);
    } catch {
      if (signal.aborted) this.#sayStopped(signal);
      return false; // when Python did not start, the page says so already
    }
    try {
      const files = await fetching(signal);
      const loaded = await this.#runtime.load(files, { onProgress: (report) => loading.show(report), signal });
      this.#take(name, id, loaded);
      return true;
    } catch (error) {
      if (signal.aborted) this.#sayStopped(signal);
      else {
        status.say(`${name} could not be loaded.`);
        problems.show(error);
      }
      return false;
    }
  }

  /** Say so of a load that was stopped, if no other has taken its place. @param {AbortSignal} signal */
  #sayStopped(signal) {
    if (this.#loading?.controller.signal === signal) status.say("Loading stopped.");
  }

  /** @param {string} name @param {string} id @param {Loaded} loaded */
  #take(name, id, { info, bytes, seconds, notice }) {
    const { parameters, layers, width, window_s, languages, kernels } = info;
    const description = `${name}: ${(parameters / 1e6).toFixed(1)} million parameters, ${layers[0]} + ${layers[1]} layers of ${width}, ${window_s} s at a time`;
    this.#current = { id, description, window_s };
    this.#clear();
    chooseModel(id);
    page.knows.hidden = id !== PACKAGED;
    showLanguages(languages);
    this.#figures.show("Model load", `${seconds.toFixed(2)} s${bytes ? `, ${megabytes(bytes)}` : ""}`);
    this.#figures.show("Kernels", kernels);
    // On a phone the choices would keep the text off the screen.
    if (matchMedia("(max-width: 60rem)").matches) page.choices.open = false;
    status.say(["Ready.", notice ?? ""].join(" ").trim());
  }

  // --------------------------------------------------------------------------------------------------------- sounds

  /** Take a sound in place of the last. @param {File} file */
  choose(file) {
    this.#abortTranscription();
    problems.hide();
    this.#clear();
    this.#sound = file;
    URL.revokeObjectURL(page.player.src);
    page.player.src = URL.createObjectURL(file);
    page.player.hidden = false;
    page.soundName.textContent = file.name;
    if (!this.#loading) status.say(`Press Transcribe to transcribe ${file.name}.`);
  }

  /** Begin to record, or end it and transcribe what was said. */
  async record() {
    if (this.#recording) return this.#endRecording();
    problems.hide();
    this.#abortTranscription();
    const controller = new AbortController();
    const onLevel = (/** @type {number} */ level, /** @type {number} */ seconds) => {
      page.level.value = level;
      status.say(`Recording, ${clock(seconds)}. Press End to read it.`);
    };
    const onEnd = () => this.#endRecording("The microphone is gone; this is what was heard until then.");
    const recorder = Recorder.start({ onLevel, onEnd });
    this.#recording = { controller, recorder };
    showRecording(true);
    status.say("The browser asks whether the page may use the microphone.");
    try {
      await recorder;
      if (controller.signal.aborted) (await recorder).stop(); // it was allowed after all
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#recording = null;
      showRecording(false);
      status.say("Nothing is recorded.");
      problems.show(error);
    }
  }

  /** @param {string} [reason] */
  async #endRecording(reason) {
    const recording = this.#recording;
    if (!recording) return;
    this.#recording = null;
    showRecording(false);
    const pending = {};
    const recorder = await Promise.race([recording.recorder, Promise.resolve(pending)]);
    if (!(recorder instanceof Recorder)) {
      recording.controller.abort(); // it was not allowed yet
      return status.say("Nothing is recorded.");
    }
    this.choose(recorder.stop());
    await this.transcribe(reason);
  }

  // ----------------------------------------------------------------------------------------------------------- text

  /** Write down what is said; does nothing while that goes on. @param {string} [notice]  said at the end */
  async transcribe(notice = "") {
    while (this.#transcribing) {
      if (!this.#transcribing.controller.signal.aborted) return status.say("A sound is being transcribed; stop that first.");
      await this.#transcribing.done;
    }
    const controller = new AbortController();
    const transcribing = { controller, done: this.#try(controller, notice) };
    this.#transcribing = transcribing;
    await transcribing.done;
    if (this.#transcribing === transcribing) this.#transcribing = null;
  }

  /** @param {{ signal: AbortSignal }} controller @param {string} notice */
  async #try({ signal }, notice) {
    problems.hide();
    try {
      if (!this.#sound) throw new Problem("NoSound", "There is no sound yet.", "Record something, choose a file, or use a sample.");
      if (!this.#current && !this.#loading) throw new Problem("NoModel", "There is no model yet.", "Choose one.");
      if (this.#loading) {
        status.say("Transcription starts when the model has loaded.");
        if (!(await Promise.race([this.#loading.done, aborted(signal)]))) return; // why not is on the page
      }
      const any = await this.#transcribe(this.#sound, signal);
      status.say(`Done. ${any ? "" : "No speech was found. "}${notice}`.trim());
    } catch (error) {
      if (signal.aborted) status.say("Stopped.");
      else {
        status.say("It could not be transcribed.");
        problems.show(error);
      }
    }
  }

  /** @param {File} sound @param {AbortSignal} signal @returns {Promise<boolean>} whether anything was said */
  async #transcribe(sound, signal) {
    document.body.classList.add("burning");
    page.transcript.setAttribute("aria-busy", "true");
    this.#clear();
    let count = 0;
    const options = { language: page.language.value, task: page.task.value, timestamps: page.timestamps.value };
    const onEvent = (/** @type {any} */ event) => signal.aborted || this.#show(event);
    try {
      await this.#give(sound, signal);
      status.say(`Listening to ${sound.name}`);
      const { language, duration_s } = await this.#ask("begin", options, onEvent, signal);
      this.#figures.show("Language", language);
      page.soundName.textContent = `${sound.name}, ${clock(duration_s)}`;
      this.#duration_s = duration_s;
      for (;;) {
        const { segment, stats } = await this.#ask("advance", {}, onEvent, signal);
        this.#count(stats);
        if (!segment) return this.#transcript.text !== "";
        count += 1;
        if (segment.text.trim()) this.#transcript.add(segment);
        if (segment.unsure && segment.text.trim()) this.#doubt();
      }
    } catch (error) {
      this.#later("keep", { count });
      throw error;
    } finally {
      this.#transcript.draft("");
      hearing.hide();
      page.transcript.removeAttribute("aria-busy");
      document.body.classList.remove("burning");
    }
  }

  /** Say that some of the text is a guess, and offer a model that knows more. */
  #doubt() {
    const knowsLittle = this.#current?.id === PACKAGED;
    page.unsure.hidden = false;
    page.unsureText.textContent = `The model is unsure about the underlined text.${knowsLittle ? " The built-in model knows numbers and commands only." : ""}`;
    page.another.hidden = !knowsLittle;
  }

  /** Load the smallest model for all speech, and read the sound again with it. */
  async hearBetter() {
    this.loadWritten(smallest().value);
    await this.transcribe();
  }

  /** Forget the text: what comes is of another sound, or model. */
  #clear() {
    page.unsure.hidden = true;
    this.#transcript.clear();
    this.#spectrogram.clear();
    this.#duration_s = 0;
  }

  /**
   * A call that nobody waits for once it is stopped: where the page cannot interrupt Python, that goes on up to the end of
   * the call, and what is asked next waits for it.
   * @param {string} method @param {Record<string, unknown>} keywords @param {(event: any) => void} onEvent @param {AbortSignal} signal
   */
  #ask(method, keywords, onEvent, signal) {
    signal.throwIfAborted();
    return Promise.race([this.#runtime.call(method, keywords, { onEvent }), aborted(signal)]);
  }

  /** Have something done before what is asked next; where that fails, so does what is asked. @param {string} method @param {Record<string, unknown>} [keywords] */
  #later(method, keywords) {
    this.#runtime.call(method, keywords).catch(() => {});
  }

  /** Hand the samples of a file to Python, part by part. @param {File} sound @param {AbortSignal} signal */
  async #give(sound, signal) {
    if (this.#given === sound) return;
    this.#given = null;
    status.say(`Reading ${sound.name}`);
    hearing.tell(`Reading ${sound.name}`, 0);
    await Promise.race([this.#runtime.call("clear"), aborted(signal)]);
    try {
      for await (const { samples, share } of samplesOf(sound, signal)) {
        hearing.tell(share === null ? `Decoding ${sound.name}` : `Reading ${sound.name}, ${Math.round(100 * share)}%`, share);
        if (samples.length) await this.#runtime.call("add", { samples });
      }
    } catch (error) {
      this.#later("clear"); // part of a sound is of no use, and may be large
      throw error;
    }
    this.#given = sound;
  }

  /** What Python tells while it is busy. @param {any} event */
  #show(event) {
    if (event.stage === "look") return hearing.tell("Looking over the sound", event.share);
    const window_s = this.#current?.window_s ?? 0;
    const start_s = event.position_s;
    const end_s = Math.min(this.#duration_s, start_s + window_s) || start_s + window_s;
    if (event.pixels) this.#spectrogram.show({ start_s, ...event });
    if (event.stage === "decode") this.#transcript.draft(event.text);
    const share = event.stage === "decode" ? ENCODER_SHARE : event.share * ENCODER_SHARE;
    const what = event.stage === "decode" ? "Writing" : "Hearing";
    hearing.tell(`${what} ${clock(start_s)} to ${clock(Math.ceil(end_s))}`, this.#duration_s ? Math.min(1, (start_s + share * (end_s - start_s)) / this.#duration_s) : null);
  }

  /** @param {Stats} stats */
  #count({ position_s, duration_s, seconds, windows, encode_s, tokens, decode_s }) {
    this.#figures.show("Heard", `${clock(position_s)} of ${clock(duration_s)}`);
    if (seconds) this.#figures.show("Speed", `${(position_s / seconds).toFixed(1)} × real time`);
    if (windows) this.#figures.show("Encoder", `${Math.round((1000 * encode_s) / windows)} ms a window`);
    if (decode_s) this.#figures.show("Decoder", `${Math.round(tokens / decode_s)} tokens/s`);
  }

  /** Show where a segment is. @param {Segment} segment */
  async #picture(segment) {
    if (this.#transcribing) return; // the picture is of what is being heard
    try {
      this.#spectrogram.show(await this.#runtime.call("spectrogram", { start_s: segment.start }));
      this.#spectrogram.mark(segment.start, segment.end);
    } catch (error) {
      problems.show(error);
    }
  }

  /** Offer the text as a file. @param {string} kind */
  async save(kind) {
    if (!this.#transcript.text) return status.remark("There is no text yet.");
    try {
      const text = await this.#runtime.call("write", { kind });
      const name = `${(this.#given?.name ?? "text").replace(/\.[^.]*$/, "")}.${kind}`;
      save(name, text);
      status.remark(`Saved ${name}.`);
    } catch (error) {
      problems.show(error);
    }
  }

  async copy() {
    if (!this.#transcript.text) return status.remark("There is no text yet.");
    await navigator.clipboard.writeText(this.#transcript.text);
    status.remark("The text is copied.");
  }

  /** Stop whatever is loading or being transcribed; end a recording. */
  stop() {
    if (this.#recording) return this.#endRecording();
    if (!this.#loading && !this.#transcribing) status.remark("Nothing is running.");
    this.#abort();
  }

  #abort() {
    this.#loading?.controller.abort();
    this.#abortTranscription();
  }

  #abortTranscription() {
    if (!this.#transcribing) return;
    this.#transcribing.controller.abort();
    this.#runtime.interrupt(); // where the page cannot, it stops after the segment
  }
}

/** Of the models for all speech, the first in the list. */
function smallest() {
  return /** @type {HTMLOptionElement} */ (page.model.querySelector("optgroup option"));
}

/** @param {string} id  of an entry of the list, or a model that is not in it */
function chooseModel(id) {
  let entry = [...page.model.options].find(({ value }) => value === id);
  if (!entry) {
    page.model.querySelector("[data-other]")?.remove();
    entry = new Option(id, id);
    entry.dataset.other = "";
    page.model.append(entry);
  }
  entry.selected = true;
}

/** @param {Record<string, string>} languages  by their codes; none for a model of English */
function showLanguages(languages) {
  const chosen = page.language.value;
  const names = Object.entries(languages).sort(([, a], [, b]) => a.localeCompare(b));
  const knowsOne = names.length === 0;
  page.language.replaceChildren(new Option(knowsOne ? "English" : "Detect", ""), ...names.map(([code, name]) => new Option(name, code)));
  page.language.value = chosen in languages ? chosen : "";
  page.language.disabled = page.task.disabled = knowsOne;
  if (knowsOne) page.task.value = "transcribe";
}

/** @param {boolean} on */
function showRecording(on) {
  page.record.setAttribute("aria-pressed", String(on));
  page.record.textContent = on ? "End" : "Record";
  page.level.hidden = !on;
  page.level.value = 0;
}

/** @param {Listener} listener */
async function showSamples(listener) {
  const list = new URL("samples/samples.json", import.meta.url);
  /** @type {Sample[]} */
  const samples = await (await fetch(list)).json();
  for (const { file, name } of samples) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.dataset.testid = "sample";
    button.textContent = name;
    button.onclick = async () => {
      try {
        const response = await fetch(new URL(file, list));
        if (!response.ok) throw new Problem("DownloadError", `${file}: the server answers ${response.status}.`, "Try again.");
        listener.choose(new File([await response.blob()], file));
        await listener.transcribe();
      } catch (error) {
        problems.show(error);
      }
    };
    page.samples.append(button, " ");
  }
}

/** A model, or a sound. @param {Listener} listener @param {Map<string, File>} files */
async function takeDrop(listener, files) {
  if ([...files.values()].some(({ name }) => OF_MODEL.test(name))) return listener.loadFiles(files);
  const [file] = files.values();
  if (!file) return;
  listener.choose(file);
  await listener.transcribe();
}

/** @param {Listener} listener */
function listen(listener) {
  page.form.onsubmit = (event) => {
    event.preventDefault();
    listener.transcribe();
  };
  page.audioFile.onchange = () => page.audioFile.files?.[0] && listener.choose(page.audioFile.files[0]);
  page.audioFile.onclick = () => (page.audioFile.value = ""); // else choosing the same file again would be no change
  page.record.onclick = () => listener.record();
  page.stop.onclick = () => listener.stop();
  page.copy.onclick = () => listener.copy();
  page.another.textContent = `Load ${smallest().text}`;
  page.another.onclick = () => listener.hearBetter();
  for (const button of document.querySelectorAll("button[data-kind]")) {
    const { kind = "" } = /** @type {HTMLElement} */ (button).dataset;
    button.addEventListener("click", () => listener.save(kind));
  }
  page.model.onchange = () => {
    if (page.model.value === PACKAGED) listener.load("Built-in model", async () => ({}), PACKAGED);
    else listener.loadWritten(page.model.value);
  };
  page.modelForm.onsubmit = (event) => {
    event.preventDefault();
    try {
      listener.loadWritten(page.modelId.value);
    } catch (error) {
      page.modelId.focus();
      problems.show(error);
    }
  };
  for (const input of [page.modelFile, page.modelFolder]) {
    input.onchange = () => {
      const files = [...(input.files ?? [])];
      if (files.length) listener.loadFiles(new Map(files.map((file) => [file.webkitRelativePath || file.name, file])));
    };
    input.onclick = () => (input.value = "");
  }
  onDrop(element("drop", HTMLElement), async (_, transfer) => {
    try {
      await takeDrop(listener, await dropped(transfer));
    } catch (error) {
      problems.show(new Problem("ReadError", `What was dropped could not be read: ${error}`, "Choose it instead."));
    }
  });
}

const listener = new Listener();
listen(listener);
isolate();
await showSamples(listener);
await downloads.show();
