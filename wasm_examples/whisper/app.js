import { isolate } from "../../web/isolation.js";
import { findFiles, folderName, localFolder, parseModel } from "../../web/model-files.js";
import { listenForModels } from "../../web/model-inputs.js";
import { ModelPage } from "../../web/model-page.js";
import { Figures, ProgressBar, aborted, closeOnPhone, element, onSubmit, pageView, save, showStart } from "../../web/page.js";
import { Problem } from "../../web/protocol.js";
import { ShareLink } from "../../web/share.js";
import { StoredDownloads } from "../../web/stored-downloads.js";
import { Recorder } from "./recorder.js";
import { samplesOf } from "../../web/sound.js";
import { Spectrogram, clock } from "./spectrogram.js";
import { Transcript } from "./transcript.js";

/** @import { NamedModel } from "../../web/model-files.js" */
/** @import { ModelChoice, ModelView } from "../../web/model-page.js" */
/** @import { Segment } from "./transcript.js" */
/** @typedef {ModelChoice & { id: string }} Choice  `id` is its value in the list of models */
/** @typedef {{ id: string, description: string, window_s: number }} Model */
/** @typedef {{ position_s: number, duration_s: number, seconds: number, windows: number, encode_s: number, tokens: number, decode_s: number }} Stats */
/** @typedef {{ file: string, name: string }} Sample */

const HEADS = { config: "config.json" };
const SINGLE = /\.(pt|bin)$/i;
const OF_MODEL = /\.(pt|bin|safetensors|json|tiktoken)$/i;
const BUILT_IN = "";
// For the progress bar: encoding a window takes about as long as decoding it.
const ENCODER_SHARE = 0.5;

const page = {
  modelName: element("model-name", HTMLElement),
  choices: element("choices", HTMLDetailsElement),
  model: element("model", HTMLSelectElement),
  modelForm: element("model-form", HTMLFormElement),
  modelId: element("model-id", HTMLInputElement),
  modelFile: element("model-file", HTMLInputElement),
  modelFolder: element("model-folder", HTMLInputElement),
  builtInHint: element("built-in-hint", HTMLElement),
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
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
};
/** @type {ModelView} */
const view = {
  ...pageView(),
  modelName: page.modelName,
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Speed", "Heard", "Language", "Encoder", "Decoder", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};
const { status, problems } = view;
const hearing = new ProgressBar(element("hearing", HTMLElement));

/** Loads a model, records a sound and transcribes it: one of each at a time. */
class Transcriber {
  /** @type {{ controller: AbortController, recorder: Promise<Recorder> } | null} */
  #recording = null;
  /** @type {File | null}  the sound to transcribe */
  #sound = null;
  /** @type {File | null}  the sound whose samples Python has */
  #decoded = null;
  #duration_s = 0; // unknown until Python has the spectrogram
  #spectrogram = new Spectrogram(element("mel", HTMLCanvasElement));
  #transcript = new Transcript(page.transcript, page.segments, page.player, (segment) => this.#showSpectrogram(segment));
  /** @type {ModelPage<Choice, Model>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), modules: [new URL("progress.py", import.meta.url)], parts: ["spoken"] }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: (choice, { info }) => this.#showModel(choice, info),
    onModel: (model) => model && selectModel(model.id),
    hasResults: () => this.#decoded !== null, // the transcript
  });

  constructor() {
    this.loadBuiltIn();
  }

  // --------------------------------------------------------------------------------------------------------- models

  loadBuiltIn() {
    this.#page.load({ name: "Built-in model", id: BUILT_IN, files: async () => ({}) });
  }

  /** Load a model from the Hub, or from an address. @param {string} text */
  loadByName(text) {
    this.#loadLocation(parseModel(text, "openai/whisper-tiny"));
  }

  /** Load files of this computer: a model's folder, or a single file with a model and maybe its tokenizer. @param {Map<string, File>} files */
  loadFiles(files) {
    const single = [...files.values()].filter(({ name }) => SINGLE.test(name));
    if ([...files.keys()].some((path) => path.split("/").pop() === HEADS.config) || single.length !== 1) {
      return this.#loadLocation({ name: folderName(files) ?? "Chosen files", location: localFolder(files) });
    }
    const sources = Object.fromEntries([...files.values()].filter(({ name }) => OF_MODEL.test(name)).map((file) => [file.name, { file }]));
    const { name } = single[0];
    this.#page.load({ name, id: name, files: async () => sources });
  }

  /** @param {NamedModel} model */
  #loadLocation({ name, location }) {
    const ask = (/** @type {Record<string, unknown>} */ texts) => this.#page.runtime.call("list_files", texts);
    this.#page.load({ name, id: name, files: (signal) => findFiles(location, HEADS, ask, signal) });
  }

  /** @param {Choice} choice @param {Record<string, any>} info @returns {Model} */
  #showModel({ name, id }, { parameters, layers, width, window_s, languages }) {
    this.#clear();
    page.builtInHint.hidden = id !== BUILT_IN;
    showLanguages(languages);
    closeOnPhone(page.choices);
    const description = `${name}: ${(parameters / 1e6).toFixed(1)} million parameters, ${layers[0]} + ${layers[1]} layers of ${width}, windows of ${window_s} s`;
    return { id, description, window_s };
  }

  // --------------------------------------------------------------------------------------------------------- sounds

  /** Use a sound in place of the last one. @param {File} file */
  choose(file) {
    this.#page.stopWork();
    problems.hide();
    this.#clear();
    this.#sound = file;
    URL.revokeObjectURL(page.player.src);
    page.player.src = URL.createObjectURL(file);
    page.player.hidden = false;
    page.soundName.textContent = file.name;
    if (!this.#page.isLoading) status.say(`Press Transcribe to transcribe ${file.name}.`);
  }

  /** Start recording; or end the recording and transcribe it. */
  async record() {
    if (this.#recording) return this.#endRecording();
    problems.hide();
    this.#page.stopWork();
    const controller = new AbortController();
    const onLevel = (/** @type {number} */ level, /** @type {number} */ seconds) => {
      page.level.value = level;
      status.say(`Recording, ${clock(seconds)}. Press End to transcribe it.`);
    };
    const onEnd = () => this.#endRecording("The microphone is gone; this is the text up to then.");
    const recorder = Recorder.start({ onLevel, onEnd });
    this.#recording = { controller, recorder };
    showRecording(true);
    status.say("The browser asks whether the page may use the microphone.");
    try {
      await recorder;
      if (controller.signal.aborted) (await recorder).stop(); // allowed after the recording had ended
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#recording = null;
      showRecording(false);
      status.say("Nothing was recorded.");
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
      recording.controller.abort(); // the user has not allowed the microphone yet
      return status.say("Nothing was recorded.");
    }
    this.choose(recorder.stop());
    await this.transcribe(reason);
  }

  // ----------------------------------------------------------------------------------------------------------- text

  /** Transcribe the sound, unless a sound is being transcribed. @param {string} [notice]  added to the status at the end */
  async transcribe(notice = "") {
    if (this.#page.isWorking) return status.say("A sound is being transcribed; stop that first.");
    await this.#page.work((signal) => this.#tryToTranscribe(signal, notice), { failed: "It could not be transcribed." });
  }

  /** @param {AbortSignal} signal @param {string} notice */
  async #tryToTranscribe(signal, notice) {
    if (!this.#sound) throw new Problem("NoSound", "There is no sound yet.", "Record something, choose a file, or use a sample.");
    if (!(await this.#page.ready("Transcription starts when the model has loaded.", signal))) return; // the page says why
    if (!this.#page.model) throw new Problem("NoModel", "There is no model yet.", "Choose one.");
    const hasText = await this.#transcribe(this.#sound, signal);
    status.say(`Done. ${hasText ? "" : "No speech was found. "}${notice}`.trim());
  }

  /** @param {File} sound @param {AbortSignal} signal @returns {Promise<boolean>}  whether there is any text */
  async #transcribe(sound, signal) {
    document.body.classList.add("burning");
    page.transcript.setAttribute("aria-busy", "true");
    this.#clear();
    let count = 0;
    const options = { language: page.language.value, task: page.task.value, timestamps: page.timestamps.value };
    const onEvent = (/** @type {any} */ event) => signal.aborted || this.#showProgress(event);
    signal.addEventListener("abort", () => this.#page.runtime.interrupt(), { once: true }); // otherwise Python finishes the segment
    try {
      await this.#decode(sound, signal);
      status.say(`Listening to ${sound.name}`);
      const { language, duration_s } = await this.#call("begin", options, onEvent, signal);
      view.figures.show("Language", language);
      page.soundName.textContent = `${sound.name}, ${clock(duration_s)}`;
      this.#duration_s = duration_s;
      for (;;) {
        const { segment, stats } = await this.#call("advance", {}, onEvent, signal);
        showSpeed(stats);
        if (!segment) return this.#transcript.text !== "";
        count += 1;
        if (segment.text.trim()) this.#transcript.add(segment);
        if (segment.unsure && segment.text.trim()) this.#warnUnsure();
      }
    } catch (error) {
      this.#queue("keep", { count });
      throw error;
    } finally {
      this.#transcript.draft("");
      hearing.hide();
      page.transcript.removeAttribute("aria-busy");
      document.body.classList.remove("burning");
    }
  }

  /** Say that the model is unsure about some of the text, and offer a larger model if this is the built-in one. */
  #warnUnsure() {
    const isBuiltIn = this.#page.model?.id === BUILT_IN;
    page.unsure.hidden = false;
    page.unsureText.textContent = `The model is unsure about the underlined text.${isBuiltIn ? " The built-in model knows numbers and commands only." : ""}`;
    page.another.hidden = !isBuiltIn;
  }

  /** Load the smallest model for all speech, and transcribe the sound again with it. */
  async useLargerModel() {
    this.loadByName(smallestModel().value);
    await this.transcribe();
  }

  /** Clear the results, before those of another sound or model. */
  #clear() {
    page.unsure.hidden = true;
    this.#transcript.clear();
    this.#spectrogram.clear();
    this.#duration_s = 0;
  }

  /**
   * Call Python, but stop waiting when the signal aborts. On a page that cannot interrupt Python, the call then runs to its
   * end, and the next call waits for it.
   * @param {string} method @param {Record<string, unknown>} keywords @param {(event: any) => void} onEvent @param {AbortSignal} signal
   */
  #call(method, keywords, onEvent, signal) {
    signal.throwIfAborted();
    return Promise.race([this.#page.runtime.call(method, keywords, { onEvent }), aborted(signal)]);
  }

  /** Call Python before the next call, without waiting. If it fails, so does the next call. @param {string} method @param {Record<string, unknown>} [keywords] */
  #queue(method, keywords) {
    this.#page.runtime.call(method, keywords).catch(() => {});
  }

  /** Decode a file and pass its samples to Python, part by part. @param {File} sound @param {AbortSignal} signal */
  async #decode(sound, signal) {
    if (this.#decoded === sound) return;
    this.#decoded = null;
    status.say(`Reading ${sound.name}`);
    hearing.update(`Reading ${sound.name}`, 0);
    await Promise.race([this.#page.runtime.call("clear"), aborted(signal)]);
    try {
      for await (const { samples, share } of samplesOf(sound, signal)) {
        hearing.update(share === null ? `Decoding ${sound.name}` : `Reading ${sound.name}, ${Math.round(100 * share)}%`, share);
        if (samples.length) await this.#page.runtime.call("add", { samples });
      }
    } catch (error) {
      this.#queue("clear"); // an incomplete sound is useless, and may be large
      throw error;
    }
    this.#decoded = sound;
  }

  /** Show an event that Python sends during a call. @param {any} event */
  #showProgress(event) {
    if (event.stage === "spectrogram") return hearing.update("Computing the spectrogram", event.share);
    const window_s = this.#page.model?.window_s ?? 0;
    const start_s = event.position_s;
    const end_s = Math.min(this.#duration_s, start_s + window_s) || start_s + window_s;
    if (event.pixels) this.#spectrogram.show({ start_s, ...event });
    if (event.stage === "decode") this.#transcript.draft(event.text);
    const share = event.stage === "decode" ? ENCODER_SHARE : event.share * ENCODER_SHARE;
    const action = event.stage === "decode" ? "Writing" : "Hearing";
    hearing.update(`${action} ${clock(start_s)} to ${clock(Math.ceil(end_s))}`, this.#duration_s ? Math.min(1, (start_s + share * (end_s - start_s)) / this.#duration_s) : null);
  }

  /** Show the spectrogram around a segment. @param {Segment} segment */
  async #showSpectrogram(segment) {
    if (this.#page.isWorking) return; // transcription shows the current window
    try {
      this.#spectrogram.show(await this.#page.runtime.call("spectrogram", { start_s: segment.start }));
      this.#spectrogram.mark(segment.start, segment.end);
    } catch (error) {
      problems.show(error);
    }
  }

  /** Save the text as a file. @param {string} kind */
  async save(kind) {
    if (!this.#transcript.text) return status.remark("There is no text yet.");
    try {
      const text = await this.#page.runtime.call("write", { kind });
      const name = `${(this.#decoded?.name ?? "text").replace(/\.[^.]*$/, "")}.${kind}`;
      save(name, text);
      status.remark(`Saved ${name}.`);
    } catch (error) {
      problems.show(error);
    }
  }

  async copy() {
    if (!this.#transcript.text) return status.remark("There is no text yet.");
    await navigator.clipboard.writeText(this.#transcript.text);
    status.remark("The text was copied.");
  }

  /** Stop loading and transcribing, or end a recording. */
  stop() {
    if (this.#recording) this.#endRecording();
    else this.#page.stop();
  }
}

/** @param {Stats} stats */
function showSpeed({ position_s, duration_s, seconds, windows, encode_s, tokens, decode_s }) {
  const { figures } = view;
  figures.show("Heard", `${clock(position_s)} of ${clock(duration_s)}`);
  if (seconds) figures.show("Speed", `${(position_s / seconds).toFixed(1)} × real time`);
  if (windows) figures.show("Encoder", `${Math.round((1000 * encode_s) / windows)} ms per window`);
  if (decode_s) figures.show("Decoder", `${Math.round(tokens / decode_s)} tokens/s`);
}

/** The smallest model for all speech, which is the first in the list. */
function smallestModel() {
  return /** @type {HTMLOptionElement} */ (page.model.querySelector("optgroup option"));
}

/** Select a model in the list, and add it if the list does not have it. @param {string} id */
function selectModel(id) {
  let entry = [...page.model.options].find(({ value }) => value === id);
  if (!entry) {
    page.model.querySelector("[data-other]")?.remove();
    entry = new Option(id, id);
    entry.dataset.other = "";
    page.model.append(entry);
  }
  entry.selected = true;
}

/** @param {Record<string, string>} languages  by code; empty for an English-only model */
function showLanguages(languages) {
  const selected = language.value;
  const names = Object.entries(languages).sort(([, a], [, b]) => a.localeCompare(b));
  const isEnglishOnly = names.length === 0;
  page.language.replaceChildren(new Option(isEnglishOnly ? "English" : "Detect", ""), ...names.map(([code, name]) => new Option(name, code)));
  page.language.value = selected in languages ? selected : "";
  page.language.disabled = page.task.disabled = isEnglishOnly;
  if (isEnglishOnly) page.task.value = "transcribe";
}

/** The language in a link: the list has it only after a model with that language has loaded. */
const language = {
  linked: "",
  get value() {
    return page.language.value || this.linked;
  },
  set value(code) {
    this.linked = code;
    page.language.value = code;
    if (page.language.selectedIndex < 0) page.language.value = "";
  },
  accepts: (/** @type {string} */ code) => /^([a-z]{2,3})?$/.test(code),
};

/** @param {boolean} on */
function showRecording(on) {
  page.record.setAttribute("aria-pressed", String(on));
  page.record.textContent = on ? "End" : "Record";
  page.level.hidden = !on;
  page.level.value = 0;
}

/** @param {Transcriber} transcriber */
async function showSamples(transcriber) {
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
        transcriber.choose(new File([await response.blob()], file));
        await transcriber.transcribe();
      } catch (error) {
        problems.show(error);
      }
    };
    page.samples.append(button, " ");
  }
}

/** Use dropped files: those of a model, or a sound. @param {Transcriber} transcriber @param {Map<string, File>} files */
async function takeDrop(transcriber, files) {
  if ([...files.values()].some(({ name }) => OF_MODEL.test(name))) return transcriber.loadFiles(files);
  const [file] = files.values();
  transcriber.choose(file);
  await transcriber.transcribe();
}

/** @param {Transcriber} transcriber */
function listen(transcriber) {
  onSubmit(page.form, () => transcriber.transcribe());
  page.language.onchange = () => (language.linked = page.language.value);
  page.audioFile.onchange = () => page.audioFile.files?.[0] && transcriber.choose(page.audioFile.files[0]);
  page.audioFile.onclick = () => (page.audioFile.value = ""); // otherwise, choosing the same file again would not be a change
  page.record.onclick = () => transcriber.record();
  page.stop.onclick = () => transcriber.stop();
  page.copy.onclick = () => transcriber.copy();
  page.another.textContent = `Load ${smallestModel().text}`;
  page.another.onclick = () => transcriber.useLargerModel();
  for (const button of document.querySelectorAll("button[data-kind]")) {
    const { kind = "" } = /** @type {HTMLElement} */ (button).dataset;
    button.addEventListener("click", () => transcriber.save(kind));
  }
  page.model.onchange = () => {
    if (page.model.value === BUILT_IN) transcriber.loadBuiltIn();
    else transcriber.loadByName(page.model.value);
  };
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFile, page.modelFolder], curtain: element("drop", HTMLElement) },
    {
      name: (text) => transcriber.loadByName(text),
      files: (files) => transcriber.loadFiles(files),
      drop: (files) => takeDrop(transcriber, files),
    },
    problems,
  );
}

new ShareLink({ language, task: page.task, timestamps: page.timestamps }, { button: page.share, note: page.shareNote });
const transcriber = new Transcriber();
listen(transcriber);
isolate();
await showSamples(transcriber);
await view.downloads.refresh();
