/** What a page looks at: one picture, or the camera live. */

import { Problem } from "../worker/protocol.js";
import { Camera } from "./camera.js";
import { ofCamera, ofStill } from "./pictures.js";

/** @import { ProblemBox, Status } from "./page.js" */
/** @import { Source } from "./pictures.js" */
/**
 * `camera` is the button that turns the camera on and off, `rate` shows how often its pictures are looked at.
 * @typedef {{ camera: HTMLButtonElement, rate: HTMLElement }} CameraControls
 * `onSource` is called with each new source, `onFrame` before each paint while the camera is on, `onCamera` when it has been
 * turned on or off.
 * @typedef {{ onSource(source: Source): void, onFrame(): void, onCamera(isOn: boolean): void }} WatchHandlers
 */

const GLANCE_MS = 1000; // over which the speed of the camera is measured

export class Watched {
  /** @type {Source | null} */
  source = null;
  /** @type {Camera | null} */
  #camera = null;
  /** @type {number[]}  when the camera's last pictures were looked at */
  #times = [];
  #opening = 0;
  #controls;
  #view;
  #handlers;

  /** @param {CameraControls} controls @param {{ status: Status, problems: ProblemBox }} view @param {WatchHandlers} handlers */
  constructor(controls, view, handlers) {
    this.#controls = controls;
    this.#view = view;
    this.#handlers = handlers;
  }

  get isLive() {
    return this.#camera !== null;
  }

  /** Look at a source in place of what there is. @param {Source} source */
  show(source) {
    this.leaveCamera();
    this.#take(source);
  }

  /** Look at a picture file. @param {Blob & { name?: string }} file */
  async showFile(file) {
    const name = file.name ?? "The picture";
    const opening = ++this.#opening;
    try {
      const bitmap = await createImageBitmap(file);
      if (opening === this.#opening) this.show(ofStill(bitmap, (context, width, height) => context.drawImage(bitmap, 0, 0, width, height))); // else something else was chosen meanwhile
      bitmap.close();
    } catch {
      if (opening !== this.#opening) return;
      this.#view.problems.show(new Problem("NoPicture", `${name} is not a picture that this browser reads.`, "Choose a PNG, JPEG or WebP file."));
    }
  }

  /** Turn the camera on. */
  async useCamera() {
    const opening = ++this.#opening;
    this.#view.problems.hide();
    try {
      const camera = await Camera.open(() => this.#loseCamera());
      if (opening !== this.#opening) return camera.close(); // something else was chosen meanwhile
      this.#camera = camera;
      this.#times = [];
      this.#showCamera();
      this.#take(ofCamera(camera));
      this.#follow(camera);
    } catch (error) {
      if (opening !== this.#opening) return;
      this.#view.problems.show(error);
      this.#view.status.say("The camera is off.");
    }
  }

  /** Turn the camera off and keep its last picture. */
  leaveCamera() {
    this.#opening++;
    const camera = this.#camera;
    if (!camera) return;
    const live = ofCamera(camera);
    if (live.width) this.source = ofStill(live, (context, width, height) => live.draw(context, width, height));
    camera.close();
    this.#camera = null;
    this.#view.status.say("The camera is off.");
    this.#showCamera();
  }

  /** A picture of the camera was looked at. */
  count() {
    const now = performance.now();
    this.#times = [...this.#times.filter((time) => now - time < GLANCE_MS), now];
    const [first] = this.#times;
    const count = this.#times.length - 1;
    this.#controls.rate.textContent = count ? `${((1000 * count) / (now - first)).toFixed(count < 10 ? 1 : 0)} frames a second` : "";
  }

  /** @param {Source} source */
  #take(source) {
    this.source = source;
    this.#view.problems.hide();
    this.#handlers.onSource(source);
  }

  /** @param {Camera} camera */
  #follow(camera) {
    if (camera !== this.#camera) return;
    this.#handlers.onFrame();
    requestAnimationFrame(() => this.#follow(camera));
  }

  #loseCamera() {
    this.leaveCamera();
    this.#view.problems.show(new Problem("CameraLost", "The camera is gone; this is its last picture.", "Connect it and press the button again, or choose a picture."));
  }

  #showCamera() {
    const { camera, rate } = this.#controls;
    camera.textContent = this.isLive ? "Stop the camera" : "Use the camera";
    camera.setAttribute("aria-pressed", String(this.isLive));
    if (!this.isLive) rate.textContent = "";
    document.body.classList.toggle("burning", this.isLive);
    this.#handlers.onCamera(this.isLive);
  }
}
