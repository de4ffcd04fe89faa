/** A picture as an input: a drawn one, or one from a file or the camera, resized as the model takes it. */

import { Problem } from "../../web/worker/protocol.js";
import { choice, labelled } from "./inputs.js";

/** @import { Call, Input } from "./inputs.js" */

const FITS = { crop: "Crop", stretch: "Stretch", pad: "Pad with grey" };
const SCALES = { unit: "0 to 1", imagenet: "ImageNet's", signed: "−1 to 1", bytes: "0 to 255" };
const ORDERS = { rgb: "RGB", bgr: "BGR" };
const DEFAULT_SIDE = 224; // where the file leaves the size open
const MOST_SIDE = 4096;
const GREY = "rgb(114 114 114)";

export class PictureField {
  element = document.createElement("div");
  /** The picture as the model gets it. */
  shown = document.createElement("canvas");
  #input;
  #fit;
  #scale;
  #order;
  #note = Object.assign(document.createElement("p"), { className: "hint" });
  /** @type {ImageBitmap | HTMLCanvasElement | null} */
  #picture = null;
  /** @type {MediaStream | null}  of the camera, while it is on */
  #stream = null;
  /** @type {Map<"height" | "width", HTMLInputElement>}  where the file leaves the size open */
  #sides = new Map();

  /** @param {Input} input */
  constructor(input) {
    this.#input = input;
    const picker = Object.assign(document.createElement("input"), { type: "file", accept: "image/*" });
    picker.dataset.testid = `picture-${input.name}`;
    picker.onchange = () => picker.files?.[0] && this.take(picker.files[0]);
    const camera = Object.assign(document.createElement("button"), { type: "button", textContent: "Use the camera" });
    camera.dataset.testid = `camera-${input.name}`;
    camera.onclick = () => this.#photograph(camera);
    this.#fit = choice("Resize", `fit-${input.name}`, FITS, () => this.#draw());
    this.#scale = choice("Range", `scale-${input.name}`, SCALES, () => {});
    this.#order = choice("Channels", `order-${input.name}`, ORDERS, () => {});
    const fields = document.createElement("div");
    fields.className = "fields";
    for (const side of /** @type {const} */ (["height", "width"])) if (input.size[side] === null) fields.append(this.#sideField(side));
    this.#scale.select.value = input.scale;
    this.#order.label.hidden = input.size.channels === 1;
    fields.append(this.#fit.label, this.#scale.label, this.#order.label);
    this.shown.className = "picture";
    this.shown.setAttribute("role", "img");
    this.shown.setAttribute("aria-label", "The picture as the model gets it");
    this.element.className = "picture-field";
    const controls = document.createElement("div");
    controls.className = "input-body";
    controls.append(labelled("A picture", picker), camera, fields, this.#note);
    this.element.append(this.shown, controls);
    this.#use(drawnSample());
  }

  /** Use a file. @param {File} file @returns {boolean}  whether it may be a picture */
  take(file) {
    if (!/^image\//.test(file.type)) return false;
    createImageBitmap(file).then(
      (bitmap) => this.#use(bitmap),
      () => this.#say(`${file.name} is not a picture that this browser reads.`),
    );
    return true;
  }

  /** @param {Call} call */
  async give(call) {
    if (!this.#picture) throw new Problem("NoPicture", `The input ${this.#input.name} has no picture yet.`, "Choose a file, or use the camera.");
    this.#draw();
    const { width, height } = this.shown;
    const context = /** @type {CanvasRenderingContext2D} */ (this.shown.getContext("2d"));
    const pixels = new Uint8Array(context.getImageData(0, 0, width, height).data.buffer);
    await call("give_picture", { name: this.#input.name, pixels, width, height, scale: this.#scale.select.value, order: this.#order.select.value });
  }

  /** @param {"height" | "width"} side */
  #sideField(side) {
    const field = Object.assign(document.createElement("input"), { type: "number", min: "1", max: String(MOST_SIDE), step: "1", value: String(DEFAULT_SIDE) });
    field.dataset.testid = `${side}-${this.#input.name}`;
    field.onchange = () => this.#draw();
    this.#sides.set(side, field);
    return labelled(`${side[0].toUpperCase()}${side.slice(1)} in pixels`, field);
  }

  /** @param {"height" | "width"} side @returns {number} */
  #length(side) {
    const field = this.#sides.get(side);
    if (!field) return /** @type {number} */ (this.#input.size[side]);
    const length = Math.round(field.valueAsNumber);
    if (length >= 1 && length <= MOST_SIDE) return length;
    field.focus();
    throw new Problem("BadNumber", `The ${side} of ${this.#input.name} cannot be ${field.value || "empty"}.`, `Write a number from 1 to ${MOST_SIDE}.`);
  }

  /** @param {ImageBitmap | HTMLCanvasElement} picture */
  #use(picture) {
    this.#picture = picture;
    this.#say("");
    try {
      this.#draw();
    } catch {
      // the size is wrong, which a run says
    }
  }

  #draw() {
    const picture = this.#picture;
    if (!picture) return;
    const [width, height] = [this.#length("width"), this.#length("height")];
    this.shown.width = width;
    this.shown.height = height;
    const context = /** @type {CanvasRenderingContext2D} */ (this.shown.getContext("2d", { willReadFrequently: true }));
    context.imageSmoothingQuality = "high";
    context.fillStyle = GREY;
    context.fillRect(0, 0, width, height);
    const fit = this.#fit.select.value;
    const [across, down] = [width / picture.width, height / picture.height];
    const scale = fit === "pad" ? Math.min(across, down) : Math.max(across, down);
    const [w, h] = fit === "stretch" ? [width, height] : [picture.width * scale, picture.height * scale];
    context.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h);
  }

  /** Take a picture with the camera, at the second press. @param {HTMLButtonElement} button */
  async #photograph(button) {
    if (!navigator.mediaDevices) return this.#say("Pages without HTTPS get no camera.");
    button.disabled = true;
    try {
      this.#stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    } catch {
      return this.#say("There is no camera, or the browser does not let the page use it.");
    } finally {
      button.disabled = false;
    }
    if (!this.element.isConnected) return this.close(); // the model has changed meanwhile
    const video = Object.assign(document.createElement("video"), { srcObject: this.#stream, muted: true, playsInline: true, className: "picture" });
    this.shown.before(video);
    this.shown.hidden = true;
    await video.play();
    button.textContent = "Take the picture";
    button.onclick = () => {
      const still = Object.assign(document.createElement("canvas"), { width: video.videoWidth, height: video.videoHeight });
      still.getContext("2d")?.drawImage(video, 0, 0);
      this.close();
      video.remove();
      this.shown.hidden = false;
      button.textContent = "Use the camera";
      button.onclick = () => this.#photograph(button);
      this.#use(still);
    };
  }

  /** Turn the camera off. */
  close() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
  }

  /** @param {string} text */
  #say(text) {
    this.#note.textContent = text;
  }
}

/** A handwritten seven, white on black, as MNIST has it. @returns {HTMLCanvasElement} */
function drawnSample() {
  const canvas = Object.assign(document.createElement("canvas"), { width: 112, height: 112 });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillRect(0, 0, 112, 112);
  context.strokeStyle = "white";
  context.lineWidth = 11;
  context.lineCap = context.lineJoin = "round";
  context.beginPath();
  for (const [x, y] of [[30, 22], [80, 22], [52, 90]]) context.lineTo(x, y);
  context.stroke();
  return canvas;
}
