/** Loads a model, takes a sound and transcribes it: one of each at a time. */

import { ModelPage } from "../../web/page/model-page.js";
import { aborted, closeOnPhone, copyText, save, showStart } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { hearing, page, view } from "./elements.js";
import { BUILT_IN, builtIn, modelOfFiles, namedModel, selectModel, smallest } from "./models.js";
import { fetchTheRest } from "./offline.js";
import { showSpeed, showStage } from "./progress.js";
import { Recording } from "./recording.js";
import { saveText } from "./results.js";
import { settings, showLanguages } from "./settings.js";
import { Spectrogram, clock } from "./spectrogram.js";
import { Transcript } from "./transcript.js";
import { Waveform } from "./waveform.js";

/** @import { Runtime } from "../../web/page/tallow.js" */
/** @import { Heard } from "./live.js" */
/** @import { Choice } from "./models.js" */
/** @import { Segment } from "./transcript.js" */
/** @typedef {{ id: string, description: string, window_s: number }} Model */

const { status, problems } = view;

export class Transcriber {
  /** @type {File | null}  the sound to transcribe */
  #sound = null;
  /** @type {File | null}  the sound whose samples Python has */
  #decoded = null;
  /** @type {Runtime | null}  the one that has them */
  #decodedBy = null;
  #duration_s = 0; // unknown until Python has the spectrogram
  #liveLanguage = ""; // as detected in this recording
  #waveform = new Waveform(page.wave, page.player);
  #spectrogram = new Spectrogram(page.mel, page.picture);
  #transcript = new Transcript(page, (segment) => this.#showSegment(segment));
  #recording = new Recording(this.#waveform, {
    work: (task) => this.#page.work(task, { failed: "There is no live text." }),
    hear: (samples, signal) => this.#hear(samples, signal),
    window_s: () => (this.#page.isLoading ? 0 : (this.#page.model?.window_s ?? 0)),
    onChange: () => this.#page.showBusy(),
    onEnd: (file, notice) => this.#takeRecording(file, notice),
  });
  /** @type {ModelPage<Choice, Model>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), modules: [new URL("progress.py", import.meta.url)], parts: ["spoken"] }, {
    onStart: (started) => {
      showStart(view.figures, started);
      fetchTheRest();
    },
    onLoad: (choice, { info }) => this.#showModel(choice, info),
    onModel: (model) => this.#changeModel(model),
    hasResults: () => this.#decoded !== null || this.#recording.isOn, // the transcript, or the live text
    isBusy: () => this.#recording.isOn,
  });

  constructor() {
    this.loadBuiltIn();
  }

  // --------------------------------------------------------------------------------------------------------- models

  loadBuiltIn() {
    this.#page.load(builtIn());
  }

  /** Load a model from the Hub, or from an address. @param {string} text */
  loadByName(text) {
    this.#page.load(namedModel(text, this.#ask));
  }

  /** Load files of this computer. @param {Map<string, File>} files */
  loadFiles(files) {
    try {
      this.#page.load(modelOfFiles(files, this.#ask));
    } catch (error) {
      view.problems.show(error);
    }
  }

  #ask = (/** @type {Record<string, unknown>} */ texts) => this.#page.runtime.call("list_files", texts);

  /** @param {Model | null} model  in memory; null while one loads */
  #changeModel(model) {
    this.#liveLanguage = "";
    if (model) selectModel(model.id);
    if (model) this.#recording.resume();
  }

  /** @param {Choice} choice @param {Record<string, any>} info @returns {Model} */
  #showModel({ name, id }, { parameters, layers, width, window_s, languages }) {
    this.#clear();
    page.builtIn.hidden = id !== BUILT_IN;
    showLanguages(languages);
    closeOnPhone(page.choices);
    const description = `${name.replace(/^the /, "The ")}: ${(parameters / 1e6).toFixed(1)} million parameters, ${layers[0]} + ${layers[1]} layers of ${width}, windows of ${window_s} s`;
    return { id, description, window_s };
  }

  // --------------------------------------------------------------------------------------------------------- sounds

  /** Use a sound in place of the last one. @param {File} file @returns {boolean}  false during a recording, which it would replace */
  choose(file) {
    if (!this.#mayChange()) return false;
    this.#page.stopWork();
    this.#waveform.begin();
    this.#use(file);
    if (!this.#page.isLoading) status.say(`Press Transcribe to transcribe ${file.name}.`);
    return true;
  }

  /** Fetch a sound and transcribe it. @param {string} address */
  async fetch(address) {
    if (!this.#mayChange()) return;
    /** @type {File | undefined} */
    let file;
    const load = async (/** @type {AbortSignal} */ signal) => {
      const { fetchSound } = await import("./sounds.js");
      file = await fetchSound(address, signal);
    };
    await this.#page.work(load, { failed: "The sound could not be fetched." });
    if (file && this.choose(file)) await this.transcribe();
  }

  /** Start recording; or end the recording and transcribe it. */
  async record() {
    if (this.#recording.isOn) return this.#recording.end();
    this.#page.stopWork();
    this.#liveLanguage = "";
    await this.#recording.start();
  }

  /** @param {File} file @param {string} notice */
  async #takeRecording(file, notice) {
    this.#page.stopWork();
    this.#use(file);
    page.saveSound.hidden = false;
    await this.transcribe(notice);
  }

  #mayChange() {
    if (this.#recording.isOn) status.remark("This would replace the recording. Press End first.");
    return !this.#recording.isOn;
  }

  /** @param {File} file */
  #use(file) {
    problems.hide();
    this.#clear();
    this.#sound = file;
    page.saveSound.hidden = true;
    URL.revokeObjectURL(page.player.src);
    page.player.src = URL.createObjectURL(file);
    page.player.hidden = false;
    page.soundName.textContent = file.name;
  }

  /** Save the recording as a file. */
  saveSound() {
    if (this.#sound) save(this.#sound.name, this.#sound);
  }

  // ----------------------------------------------------------------------------------------------------------- text

  /** Transcribe the sound, unless a sound is being transcribed; end a recording. @param {string} [notice]  added to the status at the end */
  async transcribe(notice = "") {
    if (this.#recording.isOn) return this.#recording.end();
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
    const onEvent = (/** @type {any} */ event) => signal.aborted || this.#showProgress(event);
    signal.addEventListener("abort", () => this.#page.runtime.interrupt(), { once: true }); // otherwise Python finishes the segment
    try {
      await this.#decode(sound, signal);
      status.say(`Listening to ${sound.name}`);
      const { language, duration_s, limits } = await this.#call("begin", settings(), signal, onEvent);
      view.figures.show("Language", language);
      page.soundName.textContent = `${sound.name}, ${clock(duration_s)}`;
      this.#duration_s = duration_s;
      this.#transcript.limits = limits;
      for (;;) {
        const { segment, stats } = await this.#call("advance", {}, signal, onEvent);
        showSpeed(stats);
        this.#waveform.advance(stats.position_s);
        if (!segment) return this.#transcript.text !== "";
        count += 1;
        if (segment.text.trim()) this.#transcript.add(segment);
        if (segment.text.trim() && segment.doubts.length) this.#offerLarger();
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

  /** Text of a recording that is not complete. @param {Int16Array} samples @param {AbortSignal} signal @returns {Promise<Heard[]>} */
  async #hear(samples, signal) {
    const interrupt = () => this.#page.runtime.interrupt();
    signal.addEventListener("abort", interrupt, { once: true });
    try {
      const { language, task } = settings();
      const heard = await this.#call("live", { samples, language: language || this.#liveLanguage, task }, signal);
      this.#liveLanguage = heard.language;
      return heard.segments;
    } finally {
      signal.removeEventListener("abort", interrupt);
    }
  }

  /** Offer a larger model for text that the built-in one is unsure about. */
  #offerLarger() {
    page.another.hidden = this.#page.model?.id !== BUILT_IN;
  }

  /** Load the smallest model for all speech, and transcribe the sound again with it. */
  async useLargerModel() {
    this.loadByName(smallest().value);
    await this.transcribe();
  }

  /** Clear the results, before those of another sound or model. */
  #clear() {
    page.another.hidden = true;
    this.#transcript.clear();
    this.#spectrogram.clear();
    this.#waveform.advance(0);
    this.#duration_s = 0;
  }

  /**
   * Call Python, but stop waiting when the signal aborts. On a page that cannot interrupt Python, the call then runs to its
   * end, and the next call waits for it.
   * @param {string} method @param {Record<string, unknown>} keywords @param {AbortSignal} signal @param {(event: any) => void} [onEvent]
   */
  #call(method, keywords, signal, onEvent) {
    signal.throwIfAborted();
    return Promise.race([this.#page.runtime.call(method, keywords, { onEvent }), aborted(signal)]);
  }

  /** Call Python before the next call, without waiting. If it fails, so does the next call. @param {string} method @param {Record<string, unknown>} [keywords] */
  #queue(method, keywords) {
    this.#page.runtime.call(method, keywords).catch(() => {});
  }

  /** Pass the samples of a file to Python, unless it has them. @param {File} sound @param {AbortSignal} signal */
  async #decode(sound, signal) {
    const { runtime } = this.#page;
    if (this.#decoded === sound && this.#decodedBy === runtime) return;
    this.#decoded = null;
    const { passSamples } = await import("./decoding.js");
    await passSamples(sound, { call: (method, keywords) => runtime.call(method, keywords), waveform: this.#waveform }, signal);
    this.#decoded = sound;
    this.#decodedBy = runtime;
  }

  /** Show an event that Python sends during a call. @param {any} event */
  #showProgress(event) {
    if (event.pixels) this.#spectrogram.show({ start_s: event.position_s, ...event });
    if (event.stage === "decode") this.#transcript.draft(event.text);
    showStage(event, { window_s: this.#page.model?.window_s ?? 0, duration_s: this.#duration_s });
  }

  /** Show where a segment is in the sound. @param {Segment} segment */
  async #showSegment(segment) {
    this.#waveform.mark(segment.start, segment.end);
    if (this.#page.isWorking) return; // transcription shows the current window
    try {
      this.#spectrogram.show(await this.#page.runtime.call("spectrogram", { start_s: segment.start }));
      this.#spectrogram.mark(segment.start, segment.end);
    } catch (error) {
      problems.show(error);
    }
  }

  /** Save the text as a file. @param {string} kind */
  save(kind) {
    return saveText(kind, this.#decoded?.name ?? "text", () => this.#page.runtime.call("write", { kind }));
  }

  copy() {
    return copyText(this.#transcript.text, status, "The text was copied.");
  }

  /** Stop loading and transcribing, or end a recording. */
  stop() {
    if (this.#recording.isOn) this.#recording.end();
    else this.#page.stop();
  }
}
