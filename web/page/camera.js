/** The camera, live. */

import { Problem } from "../worker/protocol.js";

/** @type {Record<string, [string, string]>} */
const REFUSALS = {
  NotAllowedError: ["The page may not use the camera.", "Allow it next to the address above and press the button again, or choose a picture."],
  NotFoundError: ["There is no camera.", "Connect one and press the button again, or choose a picture."],
  NotReadableError: ["The camera does not answer; another program may be using it.", "Close that and press the button again, or choose a picture."],
};

export class Camera {
  #stream;
  #video;

  /** @param {MediaStream} stream @param {HTMLVideoElement} video */
  constructor(stream, video) {
    this.#stream = stream;
    this.#video = video;
  }

  /**
   * Ask for the camera and wait for its first picture.
   * @param {() => void} onLost  called if the camera disappears
   * @returns {Promise<Camera>}
   * @throws {Problem} there is no camera, or the page may not use it
   */
  static async open(onLost) {
    const stream = await ask();
    const video = Object.assign(document.createElement("video"), { srcObject: stream, muted: true, playsInline: true });
    const camera = new Camera(stream, video);
    for (const track of stream.getVideoTracks()) track.onended = onLost;
    try {
      await video.play();
    } catch (error) {
      camera.close();
      throw new Problem("CameraError", `The camera gives no picture: ${error}`, "Press the button again, or choose a picture.");
    }
    return camera;
  }

  /** What it shows now. */
  get picture() {
    return this.#video;
  }

  get width() {
    return this.#video.videoWidth;
  }

  get height() {
    return this.#video.videoHeight;
  }

  /** Turn the camera off. */
  close() {
    for (const track of this.#stream.getTracks()) {
      track.onended = null;
      track.stop();
    }
    this.#video.srcObject = null;
  }
}

async function ask() {
  if (!navigator.mediaDevices) throw new Problem("Insecure", "This address is not secure, so the browser does not allow the camera.", "Open the page by https, or choose a picture.");
  try {
    return await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: 1280 } } });
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    const [text, hint] = REFUSALS[name] ?? [`The camera cannot be used: ${message || name}`, "Choose a picture."];
    throw new Problem(name, text, hint);
  }
}
