/** Recording: the button, the waveform, and the text while one speaks. */

import { Problem } from "../../web/worker/protocol.js";
import { page, view } from "./elements.js";
import { wantsLiveText } from "./settings.js";
import { clock } from "./spectrogram.js";

/** @import { Recorder } from "./recorder.js" */
/** @import { Heard, LiveText } from "./live.js" */
/** @import { Waveform } from "./waveform.js" */
/**
 * What the page does with a recording. `work` runs a task that may use Python, until another task replaces it; `hear` returns
 * the text of samples, and `window_s` the length of the model's window, 0 while there is no model. `onChange` is called when `isOn` changes; `onEnd` gets
 * the recording.
 * @typedef {{
 *   work(task: (signal: AbortSignal) => Promise<void>): void,
 *   hear(samples: Int16Array, signal: AbortSignal): Promise<Heard[]>,
 *   window_s(): number,
 *   onChange(): void,
 *   onEnd(recording: File, notice: string): void,
 * }} Handlers
 */
/** @typedef {{ controller: AbortController, recorder: Promise<Recorder>, live: LiveText | null, hasBegun: boolean }} Session */

const LEAST_S = 0.2; // a shorter recording has no word
const MOST_S = 3 * 3600;
const SILENT_AFTER_S = 3;
const SILENCE = 0.002; // a microphone that is on is louder
const BUSY = "Recording. Press End to transcribe it.";
const SILENT = "Recording, but the microphone gives no sound. It may be muted.";
const NOTHING = "Nothing was recorded.";
const { status, problems } = view;

export class Recording {
  #waveform;
  #handlers;
  /** @type {Session | null} */
  #session = null;
  #loudest = 0;
  #isSilent = false; // and the page says so

  /** @param {Waveform} waveform @param {Handlers} handlers */
  constructor(waveform, handlers) {
    this.#waveform = waveform;
    this.#handlers = handlers;
  }

  /** Whether the page records, or waits for the microphone. */
  get isOn() {
    return this.#session !== null;
  }

  /** Ask for the microphone and record. */
  async start() {
    problems.hide();
    const controller = new AbortController();
    const recorder = this.#open(controller.signal);
    /** @type {Session} */
    const session = { controller, recorder, live: null, hasBegun: false };
    this.#switchTo(session);
    status.say("The browser asks whether the page may use the microphone.");
    try {
      const ready = await recorder;
      if (controller.signal.aborted) return void ready.stop(); // allowed after the recording had ended
      session.hasBegun = true;
      this.#loudest = 0;
      this.#isSilent = false;
      this.#waveform.beginLive();
      this.resume();
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#switchTo(null);
      status.say(NOTHING);
      problems.show(error);
    }
  }

  /** Say that the page records, and continue with the live text, after a model has been loaded meanwhile. */
  resume() {
    const session = this.#session;
    if (!session?.hasBegun) return;
    status.say(this.#isSilent ? SILENT : BUSY);
    if (wantsLiveText()) this.#handlers.work((signal) => this.#listen(session, signal));
  }

  /** End the recording and hand it over. @param {string} [reason]  if the user did not end it */
  async end(reason = "") {
    const session = this.#session;
    if (!session) return;
    session.controller.abort();
    this.#switchTo(null);
    const pending = {};
    const recorder = await Promise.race([session.recorder, Promise.resolve(pending)]);
    if (!("stop" in recorder)) return status.say(NOTHING); // the user has not allowed the microphone yet
    const { seconds } = recorder;
    const file = recorder.stop();
    this.#waveform.endLive(seconds >= LEAST_S);
    if (seconds < LEAST_S) return status.say(`${NOTHING} Press Record, speak, then press End.`);
    this.#handlers.onEnd(file, reason);
  }

  /** @param {Session | null} session */
  #switchTo(session) {
    this.#session = session;
    showRecording(session !== null);
    this.#handlers.onChange();
  }

  /** @param {AbortSignal} signal  aborts when the recording ends @returns {Promise<Recorder>} */
  async #open(signal) {
    const { Recorder } = await import("./recorder.js");
    const onLevel = (/** @type {number} */ level, /** @type {number} */ seconds) => !signal.aborted && this.#showLevel(level, seconds);
    const onEnd = (/** @type {string} */ reason) => !signal.aborted && this.end(reason);
    return Recorder.start({ onLevel, onEnd });
  }

  /** @param {number} level @param {number} seconds */
  #showLevel(level, seconds) {
    this.#waveform.addLevel(level, seconds);
    const elapsed = clock(seconds);
    if (page.elapsed.textContent !== elapsed) page.elapsed.textContent = elapsed;
    this.#loudest = Math.max(this.#loudest, level);
    const isSilent = seconds > SILENT_AFTER_S && this.#loudest < SILENCE;
    if (isSilent !== this.#isSilent) status.say(isSilent ? SILENT : BUSY);
    this.#isSilent = isSilent;
    if (seconds > MOST_S) this.end(`A recording ends after ${clock(MOST_S)}.`);
  }

  /** Show the text while one speaks. If that fails, the recording goes on. @param {Session} session @param {AbortSignal} signal */
  async #listen(session, signal) {
    try {
      const { LiveText } = await import("./live.js");
      const recorder = await session.recorder;
      const { hear, window_s } = this.#handlers;
      session.live ??= new LiveText(hear, showLive);
      await session.live.run(recorder, window_s, signal);
    } catch (error) {
      if (signal.aborted) return;
      const hint = "The recording goes on; press End to transcribe it.";
      problems.show(new Problem("LiveText", `There is no live text: ${error instanceof Error ? error.message : error}`, hint));
    }
  }
}

/** @param {{ steady: string, draft: string }} text */
function showLive({ steady, draft }) {
  page.liveSteady.textContent = steady;
  page.liveDraft.textContent = draft && ` ${draft}`;
}

/** Have the browser ask before the page is left. @param {Event} event */
function askFirst(event) {
  event.preventDefault();
}

/** @param {boolean} on */
function showRecording(on) {
  if (on) addEventListener("beforeunload", askFirst);
  else removeEventListener("beforeunload", askFirst);
  page.record.setAttribute("aria-pressed", String(on));
  page.record.textContent = on ? "End" : "Record";
  page.elapsed.hidden = !on;
  page.elapsed.textContent = clock(0);
  page.live.hidden = !on || !wantsLiveText();
  showLive({ steady: "", draft: "" });
}
