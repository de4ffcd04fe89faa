/** The microphone, recorded as a WAV file. */

import { Problem } from "../../web/protocol.js";
import { mono16, writeWav } from "../../web/wav.js";

/** @type {Record<string, [string, string]>} */
const REFUSALS = {
  NotAllowedError: ["The page may not use the microphone.", "Allow it next to the address above and press Record again, or choose a file."],
  NotFoundError: ["There is no microphone.", "Connect one and press Record again, or choose a file."],
  NotReadableError: ["The microphone does not answer; another program may be using it.", "Close that and press Record again, or choose a file."],
};

export class Recorder {
  #stream;
  #context;
  /** @type {Int16Array<ArrayBuffer>[]} */
  #chunks = [];

  /** @param {MediaStream} stream @param {AudioContext} context */
  constructor(stream, context) {
    this.#stream = stream;
    this.#context = context;
  }

  /**
   * Ask for the microphone and start recording.
   * @param {{ onLevel: (level: number, seconds: number) => void, onEnd: () => void }} on
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
    for (const track of stream.getAudioTracks()) track.onended = onEnd;
    const node = new AudioWorkletNode(context, "recorder");
    let frames = 0;
    node.port.onmessage = ({ data }) => {
      recorder.#chunks.push(data.samples);
      frames += data.samples.length;
      onLevel(data.level, frames / context.sampleRate);
    };
    context.resume();
    context.createMediaStreamSource(stream).connect(node).connect(context.destination); // the worklet outputs silence, but only runs while connected
    return recorder;
  }

  /** Stop recording. @returns {File}  the recording */
  stop() {
    for (const track of this.#stream.getTracks()) {
      track.onended = null;
      track.stop();
    }
    this.#context.close();
    return new File([writeWav(mono16(this.#context.sampleRate), new Blob(this.#chunks))], "recording.wav", { type: "audio/wav" });
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
