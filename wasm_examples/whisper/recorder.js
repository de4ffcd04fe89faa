/** The microphone, recorded as a WAV file. */

import { aborted } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { mono16, writeWav } from "../../web/sound/wav.js";

/** @type {Record<string, [string, string]>} */
const REFUSALS = {
  NotAllowedError: ["The page may not use the microphone.", "Allow it next to the address above and press Record again, or choose a file."],
  NotFoundError: ["There is no microphone.", "Connect one and press Record again, or choose a file."],
  NotReadableError: ["The microphone does not answer; another program may be using it.", "Close that and press Record again, or choose a file."],
};
const FRAME_BYTES = 2;
// The samples move from memory to a Blob, which browsers keep on disk, when this many seconds have accumulated.
const IN_MEMORY_S = 10;

/** @typedef {{ onLevel: (level: number, seconds: number) => void, onEnd: (reason: string) => void }} Events */

export class Recorder {
  #stream;
  #context;
  /** @type {Blob[]} */
  #stored = [];
  /** @type {Int16Array<ArrayBuffer>[]} */
  #recent = [];
  #recentFrames = 0;
  #frames = 0;
  /** @type {Set<() => void>}  called after each chunk of samples */
  #waiting = new Set();
  #resume = () => void this.#context.resume();

  /** @param {MediaStream} stream @param {AudioContext} context */
  constructor(stream, context) {
    this.#stream = stream;
    this.#context = context;
    addEventListener("visibilitychange", this.#resume); // phones suspend the context of a hidden page
  }

  /**
   * Ask for the microphone and start recording.
   * @param {Events} on
   *   `onLevel` gets the peak level, from 0 to 1, and the duration so far; `onEnd` is called if the microphone disappears
   * @returns {Promise<Recorder>}
   * @throws {Problem} there is no microphone, or the page may not use it
   */
  static async start({ onLevel, onEnd }) {
    const context = new AudioContext();
    let stream;
    try {
      // Load the worklet before the microphone opens, because people start to speak at once.
      await context.audioWorklet.addModule(new URL("recorder-worklet.js", import.meta.url));
      stream = await microphone();
    } catch (error) {
      context.close();
      throw error instanceof Problem ? error : new Problem("RecorderError", `The browser cannot record: ${error}`, "Choose a file.");
    }
    const recorder = new Recorder(stream, context);
    for (const track of stream.getAudioTracks()) track.onended = () => onEnd("The microphone is gone; this is the text up to then.");
    const node = new AudioWorkletNode(context, "recorder");
    node.onprocessorerror = () => onEnd("The browser stopped recording; this is the text up to then.");
    node.port.onmessage = ({ data }) => {
      recorder.#add(data.samples);
      onLevel(data.level, recorder.seconds);
    };
    context.resume();
    context.createMediaStreamSource(stream).connect(node).connect(context.destination); // the worklet outputs silence, but only runs while connected
    return recorder;
  }

  /** The duration so far. */
  get seconds() {
    return this.#frames / this.#context.sampleRate;
  }

  /** Wait until this much has been recorded. @param {number} seconds @param {AbortSignal} signal */
  async reach(seconds, signal) {
    signal.throwIfAborted();
    while (this.seconds < seconds) {
      let wake = () => {};
      /** @type {Promise<void>} */
      const chunk = new Promise((resolve) => (wake = resolve));
      this.#waiting.add(wake);
      try {
        await Promise.race([chunk, aborted(signal)]);
      } finally {
        this.#waiting.delete(wake);
      }
    }
  }

  /** A part of the recording. @param {number} [start_s] @param {number} [end_s] @returns {File} */
  part(start_s = 0, end_s = this.seconds) {
    const samples = new Blob([...this.#stored, ...this.#recent]);
    const { sampleRate } = this.#context;
    const [start, end] = [start_s, end_s].map((seconds) => FRAME_BYTES * Math.round(seconds * sampleRate));
    return new File([writeWav(mono16(sampleRate), samples.slice(start, end))], "recording.wav", { type: "audio/wav" });
  }

  /** Stop recording. @returns {File}  the recording */
  stop() {
    removeEventListener("visibilitychange", this.#resume);
    for (const track of this.#stream.getTracks()) {
      track.onended = null;
      track.stop();
    }
    this.#context.close();
    return this.part();
  }

  /** @param {Int16Array<ArrayBuffer>} samples */
  #add(samples) {
    this.#recent.push(samples);
    this.#frames += samples.length;
    this.#recentFrames += samples.length;
    if (this.#recentFrames > IN_MEMORY_S * this.#context.sampleRate) {
      this.#stored.push(new Blob(this.#recent));
      this.#recent = [];
      this.#recentFrames = 0;
    }
    for (const wake of this.#waiting) wake();
  }
}

async function microphone() {
  if (!navigator.mediaDevices) throw new Problem("Insecure", "This address is not secure, so the browser does not allow the microphone.", "Open the page by https, or choose a file.");
  try {
    // Without the filters for calls: they do not help a model that was trained on all kinds of sound.
    return await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    const [text, hint] = REFUSALS[name] ?? [`The microphone cannot be used: ${message || name}`, "Choose a file."];
    throw new Problem(name, text, hint);
  }
}
