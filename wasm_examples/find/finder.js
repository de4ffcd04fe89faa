/** Finds things in what the page looks at, and shows them. */

import { ModelPage } from "../../web/page/model-page.js";
import { megabytes, save, showStart } from "../../web/page/page.js";
import { canvasOf, contextOf, drawerOf, frameOf, placeIn, pngOf, sizeOf } from "../../web/page/pictures.js";
import { Watched } from "../../web/page/watched.js";
import { Problem } from "../../web/worker/protocol.js";
import { page, view } from "./elements.js";
import { FoundList } from "./found-list.js";
import { drawMarks } from "./marks.js";
import { Scene, hasEmoji } from "./scene.js";
import { SIDE, ofScene } from "./sources.js";

/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @import { Found, Look } from "./marks.js" */
/** @import { Source } from "../../web/page/pictures.js" */
/** @typedef {{ labels: string[], emoji: string[] }} Kinds */

const FOLDER = new URL("model/", import.meta.url);
const NAMES = ["config.json", "model.safetensors"];
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
  /** @type {Source | null}  of the scene */
  #drawn = null;
  /** @type {Found | null} */
  #found = null;
  /** @type {number | null} */
  #lit = null;
  #isAsked = false; // to look again
  #said = "";
  #kinds;
  #list = new FoundList(page, (index) => this.light(index));
  /** @type {ModelPage<ModelChoice, { description: string }>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url) }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: (choice, { info }) => this.#showModel(info),
    isBusy: () => this.#watched.isLive,
  });
  #watched = new Watched(page, view, {
    onSource: (source) => this.#watch(source),
    onFrame: () => this.#draw(),
    onCamera: () => this.#page.showBusy(),
  });

  #draw = drawerOf(page.view, () => this.#watched.source, (...given) => this.#paint(...given));

  /** @param {Kinds} kinds */
  constructor(kinds) {
    this.#kinds = kinds;
    this.#page.load(SCENES);
  }

  /** Draw the scene of a seed. @param {number} seed */
  showScene(seed) {
    this.#watched.leaveCamera();
    if (!hasEmoji()) {
      problems.show(new Problem("NoEmoji", "This system has no emoji to draw a scene with.", "Choose a picture, or use the camera."));
      return;
    }
    this.scene = new Scene(seed, this.#kinds);
    this.#drawn = ofScene(this.scene);
    this.#watched.show(this.#drawn);
  }

  /** Look at a picture file. @param {Blob & { name?: string }} file */
  showFile(file) {
    return this.#watched.showFile(file);
  }

  /** Turn the camera on or off. */
  toggleCamera() {
    return this.#watched.isLive ? this.stop() : this.#watched.useCamera();
  }

  /** Stop the camera, whose last picture stays, and the model. */
  stop() {
    this.#said = "";
    this.#watched.leaveCamera();
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
    const { source } = this.#watched;
    if (!this.#found || !source) return null;
    const { left, top, width, height } = placeIn(page.view, source);
    const { width: across, height: down, things } = this.#found;
    const [u, v] = [((x * page.view.width - left) / width) * across, ((y * page.view.height - top) / height) * down];
    const threshold = this.#marks().threshold;
    return things.find(({ box, score }) => score >= threshold && u >= box[0] && v >= box[1] && u < box[2] && v < box[3])?.index ?? null;
  }

  /** Save the picture with its marks. */
  async save() {
    const { source } = this.#watched;
    if (!source) return;
    const canvas = canvasOf(source.width, source.height);
    const context = contextOf(canvas);
    source.draw(context, canvas.width, canvas.height);
    if (this.#found) drawMarks(context, this.#found, { ...this.#marks(), lit: null }, canvas.width);
    const blob = await pngOf(canvas);
    if (blob) save("found.png", blob);
  }

  /** @param {Source} source */
  #watch(source) {
    if (source !== this.#drawn) this.scene = null;
    this.#found = null;
    this.#lit = null;
    this.#list.clear();
    this.#said = "";
    this.refresh();
  }

  /** @param {AbortSignal} signal */
  async #tryToFind(signal) {
    if (!(await this.#page.ready("The model looks when it has loaded.", signal)) || !this.#page.model) return;
    while ((this.#isAsked || this.#watched.isLive) && !signal.aborted && this.#watched.source) {
      this.#isAsked = false;
      const { source } = this.#watched;
      const frame = frameOf(source, sizeOf(source, SIDE));
      const { things, map, seconds } = await this.#page.runtime.call("find", { ...frame });
      if (signal.aborted || source !== this.#watched.source) continue;
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
    this.#say(this.#watched.isLive ? "Looking through the camera." : "Done.");
    if (this.#watched.isLive) this.#watched.count();
  }

  /** Say a state once, so that it does not replace a remark. @param {string} text */
  #say(text) {
    if (text !== this.#said) status.say(text);
    this.#said = text;
  }

  /** @param {Record<string, number>} info */
  #showModel({ parameters, weightBytes }) {
    view.figures.show("Weights", `${parameters.toLocaleString("en")} numbers, ${megabytes(weightBytes)}`);
    this.#said = "";
    if (this.#watched.source) queueMicrotask(() => this.refresh()); // after a restart of Python
    return { description: `scenes: finds ${this.#kinds.labels.length} kinds of things` };
  }

  /** @returns {Look} */
  #marks() {
    return { masks: page.masks.value === "on", boxes: page.boxes.value === "on", threshold: Number(page.threshold.value), lit: this.#lit };
  }

  /** Draw the picture and its marks. @param {CanvasRenderingContext2D} context @param {Source} source @param {number} width @param {number} height */
  #paint(context, source, width, height) {
    source.draw(context, width, height);
    if (this.#found) drawMarks(context, this.#found, this.#marks(), width);
    if (this.scene?.chosen) outline(context, this.scene.chosen, width);
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
