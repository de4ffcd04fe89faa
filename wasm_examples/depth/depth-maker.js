/** Tells what is near in what the page looks at, and shows it. */

import { companionsOf, findFiles, folderName, localFolder, parseModel, parseModelFile } from "../../web/page/model-files.js";
import { ModelPage } from "../../web/page/model-page.js";
import { closeOnPhone, megabytes, save, showStart } from "../../web/page/page.js";
import { pictureAmong } from "../../web/page/picture-inputs.js";
import { canvasOf, drawerOf, frameOf, pngOf, sizeOf } from "../../web/page/pictures.js";
import { markPresets } from "../../web/page/presets.js";
import { Watched } from "../../web/page/watched.js";
import { page, view } from "./elements.js";
import { drawLook } from "./looks.js";

/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @import { Source } from "../../web/page/pictures.js" */
/** @import { Source as ModelFile } from "../../web/worker/protocol.js" */
/** @import { Depths, Look } from "./looks.js" */
/** @typedef {{ name: string, description: string, kind: string, multiple: number, width: number | null, height: number | null }} Model */

export const DEPTH_ANYTHING = "depth-anything/Depth-Anything-V2-Small-hf";
const EXAMPLE = "onnx-community/depth-anything-v2-small:onnx/model_quantized.onnx";
const ONNX = /\.onnx$/i;
const HEADS = { config: "config.json" };
const KINDS = { relative: "tells what is nearer", metric: "tells metres", matte: "cuts out the foreground" };
const { status } = view;

export class DepthMaker {
  /** @type {Depths | null} */
  #depths = null;
  #isAsked = false; // to look again
  #said = "";
  /** @type {ModelPage<ModelChoice, Model>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), parts: ["tallow"] }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: (choice, { info }) => this.#showModel(choice, info),
    onModel: (model) => this.#mark(model),
    isBusy: () => this.#watched.isLive,
  });
  #watched = new Watched(page, view, {
    onSource: () => this.#watch(),
    onFrame: () => this.draw(),
    onCamera: () => this.#page.showBusy(),
  });

  /** Draw the picture as it is to look. */
  draw = drawerOf(page.view, () => this.#watched.source, (context, source, width, height) => drawLook(context, source, this.#depths, this.#look(), width, height));

  /** Load the model of a name or an address: a repository, or an ONNX file. @param {string} text @throws {Problem} it is neither */
  loadNamed(text) {
    const typed = text.trim();
    if (!ONNX.test(typed)) return this.#loadFolder(parseModel(typed, DEPTH_ANYTHING));
    const { name, find } = parseModelFile(typed, { ending: "onnx", kind: "an ONNX file", example: EXAMPLE });
    this.#page.load({ name, files: async (signal) => ({ ...(await companionsOf(typed, signal)), "model.onnx": await find(signal) }) });
  }

  /** Take chosen or dropped files: a picture, an ONNX file, or the files of a model. @param {Map<string, File>} files */
  take(files) {
    const all = [...files.values()];
    const model = all.find((file) => ONNX.test(file.name));
    if (model) {
      /** @type {Record<string, ModelFile>} */
      const others = Object.fromEntries(all.filter((file) => file !== model).map((file) => [file.name, { file }]));
      return void this.#page.load({ name: model.name, files: async () => ({ ...others, "model.onnx": { file: model } }) });
    }
    const picture = pictureAmong(files);
    if (picture) return void this.showFile(picture);
    this.#loadFolder({ name: folderName(files) ?? "your model", location: localFolder(files) });
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

  /** Look at the picture again, as soon as the model is free. */
  refresh() {
    this.draw();
    this.#isAsked = true;
    if (!this.#page.isWorking && (this.#page.model || this.#page.isLoading)) this.#page.work((signal) => this.#tryToSee(signal), { failed: "There are no depths of this picture." });
  }

  /** Save the picture as it is shown. */
  async save() {
    const { source } = this.#watched;
    if (!source) return;
    const canvas = canvasOf(source.width, source.height);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    drawLook(context, source, this.#depths, this.#look(), canvas.width, canvas.height);
    const blob = await pngOf(canvas);
    if (blob) save(`${page.look.value}.png`, blob);
  }

  /** @param {import("../../web/page/model-files.js").NamedModel} model */
  #loadFolder({ name, location }) {
    const ask = (/** @type {Record<string, unknown>} */ texts) => this.#page.runtime.call("list_files", texts);
    this.#page.load({ name, files: (signal) => findFiles(location, HEADS, ask, signal) });
  }

  #watch() {
    this.#depths = null;
    this.#said = "";
    if (!this.#page.model && !this.#page.isLoading) status.say("Choose a model: it tells what is near.");
    this.refresh();
  }

  /** @param {AbortSignal} signal */
  async #tryToSee(signal) {
    if (!(await this.#page.ready("The model looks when it has loaded.", signal)) || !this.#page.model) return;
    while ((this.#isAsked || this.#watched.isLive) && !signal.aborted && this.#watched.source) {
      this.#isAsked = false;
      const { source } = this.#watched;
      const { map, mapWidth, mapHeight, range, seconds } = await this.#page.runtime.call("see", { ...frameOf(source, this.#frameSize(source)), levels: page.levels.value });
      if (signal.aborted || source !== this.#watched.source) continue;
      this.#depths = { map, width: mapWidth, height: mapHeight, isMatte: this.#page.model?.kind === "matte" };
      this.#showDepths(range, seconds);
    }
  }

  /** The size of the frames that the model gets. @param {Source} source */
  #frameSize(source) {
    const { width, height, multiple } = /** @type {Model} */ (this.#page.model);
    return width && height ? { width, height } : sizeOf(source, Number(page.detail.value), multiple);
  }

  /** @param {[number, number]} range @param {number} seconds */
  #showDepths([least, most], seconds) {
    const { kind } = /** @type {Model} */ (this.#page.model);
    view.figures.show("Depth", seconds < 1 ? `${Math.round(1000 * seconds)} ms` : `${seconds.toFixed(1)} s`);
    view.figures.show("Range", kind === "metric" ? `${least.toFixed(1)} to ${most.toFixed(1)} m` : `${least.toPrecision(3)} to ${most.toPrecision(3)}`);
    view.figures.show("Map", `${this.#depths?.width} × ${this.#depths?.height}`);
    this.draw();
    page.view.dataset.seen = String(Number(page.view.dataset.seen ?? 0) + 1); // how often, for tests
    this.#say(this.#watched.isLive ? "Looking through the camera." : "Done.");
    if (this.#watched.isLive) this.#watched.count();
  }

  /** Say a state once, so that it does not replace a remark. @param {string} text */
  #say(text) {
    if (text !== this.#said) status.say(text);
    this.#said = text;
  }

  /** @param {ModelChoice} choice @param {Record<string, any>} info @returns {Model} */
  #showModel({ name }, { kind, multiple, width, height, asksLevels, parameters, weightBytes }) {
    view.figures.show("Weights", `${parameters.toLocaleString("en")} numbers, ${megabytes(weightBytes)}`);
    page.levelsField.hidden = !asksLevels;
    page.detail.disabled = Boolean(width && height);
    closeOnPhone(page.choices);
    this.#said = "";
    this.#depths = null;
    if (this.#watched.source) queueMicrotask(() => this.refresh());
    const does = KINDS[/** @type {keyof typeof KINDS} */ (kind)];
    return { name, kind, multiple, width, height, description: `${name}: ${does}, ${(parameters / 1e6).toFixed(1)} million parameters` };
  }

  /** Say which of the offered models is in memory. @param {Model | null} model */
  #mark(model) {
    markPresets(page.presets, model?.name);
  }

  /** @returns {Look} */
  #look() {
    return { name: page.look.value, border: Number(page.border.value), blur: Number(page.blur.value) };
  }
}
