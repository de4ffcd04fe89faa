/** Finds things in what the page looks at, and shows them. */

import { ModelPage } from "../../web/page/model-page.js";
import { megabytes, save, showStart } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { Camera } from "./camera.js";
import { page, view } from "./elements.js";
import { FoundList } from "./found-list.js";
import { drawMarks } from "./marks.js";
import { Scene, hasEmoji } from "./scene.js";
import { canvasOf, contextOf, frameOf, ofCamera, ofScene, ofStill } from "./sources.js";

/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @import { Found, Look } from "./marks.js" */
/** @import { Source } from "./sources.js" */
/** @typedef {{ labels: string[], emoji: string[] }} Kinds */

const FOLDER = new URL("model/", import.meta.url);
const NAMES = ["config.json", "model.safetensors"];
const GLANCE_MS = 1000; // over which the speed of the camera is measured
const { status, problems } = view;

/** The model that comes with the page. @type {ModelChoice} */
const SCENES = {
  name: "scenes",
  files: async () => Object.fromEntries(NAMES.map((name) => [name, { url: new URL(name, FOLDER).href }])),
};

/** What the model knows. @returns {Promise<Kinds>} */
export async function readKinds() {
  const response = await fetch(new URL(NAMES[0], FOLDER));
  if (!response.ok) throw new Problem("MissingFiles", `The site has no model: ${response.url} answers ${response.status}`, "Build the site again.");
  return response.json();
}

export class Finder {
  /** @type {Scene | null}  while a scene is what the page looks at */
  scene = null;
  /** @type {Source | null} */
  #source = null;
  /** @type {Camera | null} */
  #camera = null;
  /** @type {Found | null} */
  #found = null;
  /** @type {number | null} */
  #lit = null;
  /** @type {number[]}  when the camera's last pictures were looked at */
  #times = [];
  #isAsked = false; // to look again
  #isDrawn = true;
  #said = "";
  #opening = 0;
  #kinds;
  #list = new FoundList(page, (index) => this.light(index));
  /** @type {ModelPage<ModelChoice, { description: string }>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url) }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: (choice, { info }) => this.#showModel(info),
    isBusy: () => this.#camera !== null,
  });

  /** @param {Kinds} kinds */
  constructor(kinds) {
    this.#kinds = kinds;
    this.#page.load(SCENES);
  }

  /** Draw the scene of a seed. @param {number} seed */
  showScene(seed) {
    this.#leaveCamera();
    if (!hasEmoji()) {
      problems.show(new Problem("NoEmoji", "This system has no emoji to draw a scene with.", "Choose a picture, or use the camera."));
      return;
    }
    this.scene = new Scene(seed, this.#kinds);
    this.#watch(ofScene(this.scene));
  }

  /** Look at a picture file. @param {Blob & { name?: string }} file */
  async showFile(file) {
    const name = file.name ?? "The picture";
    const opening = ++this.#opening;
    try {
      const bitmap = await createImageBitmap(file);
      if (opening === this.#opening) {
        this.#leaveCamera();
        this.scene = null;
        this.#watch(ofStill(bitmap, (context, width, height) => context.drawImage(bitmap, 0, 0, width, height)));
      } // else something else was chosen meanwhile
      bitmap.close();
    } catch {
      if (opening !== this.#opening) return;
      problems.show(new Problem("NoPicture", `${name} is not a picture that this browser reads.`, "Choose a PNG, JPEG or WebP file."));
    }
  }

  /** Turn the camera on or off. */
  async toggleCamera() {
    if (this.#camera) return this.stop();
    const opening = ++this.#opening;
    problems.hide();
    try {
      const camera = await Camera.open(() => this.#loseCamera());
      if (opening !== this.#opening) return camera.close(); // something else was chosen meanwhile
      this.#camera = camera;
      this.scene = null;
      this.#times = [];
      this.#showCamera();
      this.#watch(ofCamera(camera));
      this.#follow(camera);
    } catch (error) {
      if (opening !== this.#opening) return;
      problems.show(error);
      status.say("The camera is off.");
    }
  }

  /** Stop the camera, whose last picture stays, and the model. */
  stop() {
    this.#said = "";
    this.#leaveCamera();
    this.#page.stop("Stopped.");
  }

  /** The scene has changed: draw it, and look at it as soon as the model is free. */
  refresh() {
    this.#draw();
    this.#isAsked = true;
    if (!this.#page.isWorking) this.#page.work((signal) => this.#tryToFind(signal), { failed: "Nothing was looked at." });
  }

  /** Show what was found again, because the look of marks has changed. */
  redraw() {
    this.#draw();
    if (this.#found) this.#list.show(this.#found, this.#marks());
  }

  /** Show one thing brightly. @param {number | null} index */
  light(index) {
    if (index === this.#lit) return;
    this.#lit = index;
    this.#list.light(index);
    this.#draw();
  }

  /** The index of the surest thing at a place of the view. @param {number} x @param {number} y  from 0 to 1 */
  thingAt(x, y) {
    if (!this.#found || !this.#source) return null;
    const { left, top, width, height } = this.#place();
    const { width: across, height: down, things } = this.#found;
    const [u, v] = [((x * page.view.width - left) / width) * across, ((y * page.view.height - top) / height) * down];
    const threshold = this.#marks().threshold;
    return things.find(({ box, score }) => score >= threshold && u >= box[0] && v >= box[1] && u < box[2] && v < box[3])?.index ?? null;
  }

  /** Save the picture with its marks. */
  async save() {
    if (!this.#source) return;
    const canvas = canvasOf(this.#source.width, this.#source.height);
    const context = contextOf(canvas);
    this.#source.draw(context, canvas.width, canvas.height);
    if (this.#found) drawMarks(context, this.#found, { ...this.#marks(), lit: null }, canvas.width);
    /** @type {Blob | null} */
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) save("found.png", blob);
  }

  /** @param {Source} source */
  #watch(source) {
    this.#source = source;
    this.#found = null;
    this.#lit = null;
    this.#list.clear();
    this.#said = "";
    problems.hide();
    this.refresh();
  }

  /** @param {AbortSignal} signal */
  async #tryToFind(signal) {
    if (!(await this.#page.ready("The model looks when it has loaded.", signal)) || !this.#page.model) return;
    while ((this.#isAsked || this.#camera) && !signal.aborted && this.#source) {
      this.#isAsked = false;
      const source = this.#source;
      const frame = frameOf(source);
      const { things, map, seconds } = await this.#page.runtime.call("find", { ...frame });
      if (source !== this.#source) continue;
      this.#found = { map, width: frame.width, height: frame.height, things: things.map((/** @type {object} */ thing, /** @type {number} */ i) => ({ ...thing, index: i + 1 })) };
      this.#showFound(seconds);
    }
  }

  /** @param {number} seconds */
  #showFound(seconds) {
    if (!this.#found) return;
    view.figures.show("Detection", `${Math.round(1000 * seconds)} ms`);
    this.#list.show(this.#found, this.#marks());
    this.#draw();
    page.view.dataset.found = String(Number(page.view.dataset.found ?? 0) + 1); // how often, for tests
    this.#say(this.#camera ? "Looking through the camera." : "Done.");
    if (this.#camera) this.#showRate();
  }

  /** Say a state once, so that it does not replace a remark. @param {string} text */
  #say(text) {
    if (text !== this.#said) status.say(text);
    this.#said = text;
  }

  #showRate() {
    const now = performance.now();
    this.#times = [...this.#times.filter((time) => now - time < GLANCE_MS), now];
    const [first] = this.#times;
    const count = this.#times.length - 1;
    page.rate.textContent = count ? `${((1000 * count) / (now - first)).toFixed(count < 10 ? 1 : 0)} frames a second` : "";
  }

  /** Draw the camera's pictures as they come. @param {Camera} camera */
  #follow(camera) {
    if (camera !== this.#camera) return;
    this.#draw();
    requestAnimationFrame(() => this.#follow(camera));
  }

  #loseCamera() {
    this.#leaveCamera();
    problems.show(new Problem("CameraLost", "The camera is gone; this is its last picture.", "Connect it and press the button again, or choose a picture."));
  }

  /** Turn the camera off and keep its last picture. */
  #leaveCamera() {
    this.#opening++;
    const camera = this.#camera;
    if (!camera) return;
    const live = ofCamera(camera);
    if (live.width) this.#source = ofStill(live, (context, width, height) => live.draw(context, width, height));
    camera.close();
    this.#camera = null;
    status.say("The camera is off.");
    this.#showCamera();
  }

  #showCamera() {
    const isOn = this.#camera !== null;
    page.camera.textContent = isOn ? "Stop the camera" : "Use the camera";
    page.camera.setAttribute("aria-pressed", String(isOn));
    if (!isOn) page.rate.textContent = "";
    document.body.classList.toggle("burning", isOn);
    this.#page.showBusy();
  }

  /** @param {Record<string, number>} info */
  #showModel({ parameters, weightBytes }) {
    view.figures.show("Weights", `${parameters.toLocaleString("en")} numbers, ${megabytes(weightBytes)}`);
    this.#said = "";
    if (this.#source) queueMicrotask(() => this.refresh()); // after a restart of Python
    return { description: `scenes: finds ${this.#kinds.labels.length} kinds of things` };
  }

  /** @returns {Look} */
  #marks() {
    return { masks: page.masks.value === "on", boxes: page.boxes.value === "on", threshold: Number(page.threshold.value), lit: this.#lit };
  }

  /** Where the picture is in the view. */
  #place() {
    const { width: w, height: h } = /** @type {Source} */ (this.#source);
    const scale = Math.min(page.view.width / w, page.view.height / h);
    const [width, height] = [w * scale, h * scale];
    return { left: (page.view.width - width) / 2, top: (page.view.height - height) / 2, width, height };
  }

  /** Draw the picture and its marks before the next paint, once. */
  #draw() {
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    requestAnimationFrame(() => {
      this.#isDrawn = true;
      if (!this.#source?.width) return;
      const context = /** @type {CanvasRenderingContext2D} */ (page.view.getContext("2d"));
      const { left, top, width, height } = this.#place();
      context.clearRect(0, 0, page.view.width, page.view.height);
      context.save();
      context.translate(left, top);
      this.#source.draw(context, width, height);
      if (this.#found) drawMarks(context, this.#found, this.#marks(), width);
      if (this.scene?.chosen) outline(context, this.scene.chosen, width);
      context.restore();
    });
  }
}

/** Show which thing the keys move. @param {CanvasRenderingContext2D} context @param {{ x: number, y: number, size: number }} thing @param {number} width */
function outline(context, { x, y, size }, width) {
  context.beginPath();
  context.arc(x * width, y * width, 0.62 * size * width, 0, 2 * Math.PI);
  context.setLineDash([10, 8]);
  context.lineWidth = 4;
  context.strokeStyle = "black";
  context.stroke();
  context.lineDashOffset = 9;
  context.strokeStyle = "white";
  context.stroke();
}
