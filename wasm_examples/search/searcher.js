/** Searches pictures by words, and names pictures: one model, one query and one named picture at a time. */

import { findFiles } from "../../web/page/model-files.js";
import { ModelPage } from "../../web/page/model-page.js";
import { closeOnPhone, megabytes, showStart } from "../../web/page/page.js";
import { Camera } from "../../web/page/camera.js";
import { Problem } from "../../web/worker/protocol.js";
import { page, view } from "./elements.js";
import { drawInto, readPicture, squareOf } from "./pictures.js";
import { showNames, showPictures, showResults } from "./lists.js";

/** @import { NamedModel } from "../../web/page/model-files.js" */
/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @import { Drawable, Picture } from "./pictures.js" */

const MOST_PICTURES = 100;
const MOST_LABELS = 24;
const GLANCE_MS = 1000; // over which the speed of the camera is measured
const { status, problems } = view;

/** The model that comes with tallow. @type {ModelChoice} */
const PACKAGED = { name: "emoji", files: async () => ({}) };

export class Searcher {
  /** @type {Map<number, Picture>} */
  #pictures = new Map();
  #nextNumber = 1;
  #isSearching = false;
  /** @type {number | null}  the side of a picture for the model in memory */
  #side = null;
  #isCut = false;
  /** @type {Drawable | null}  what is named */
  #source = null;
  /** @type {Camera | null} */
  #camera = null;
  #opening = 0;
  #isAsked = false; // to name again
  /** @type {number[]}  when the camera's last pictures were named */
  #times = [];
  /** @type {ModelPage<ModelChoice, { description: string }>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), parts: ["emoji"], libraries: ["huggingface_tokenizers"] }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: ({ name }, { info }) => this.#begin(name, info),
    onModel: (model) => (page.packaged.disabled = model === null),
    isBusy: () => this.#camera !== null,
  });

  loadPackaged() {
    this.#page.load(PACKAGED);
  }

  /** Load a CLIP in place of the model that is loading or loaded. @param {NamedModel} model */
  load({ name, location }) {
    const ask = (/** @type {Record<string, unknown>} */ texts) => this.#page.runtime.call("list_files", texts);
    this.#page.load({ name, files: (signal) => findFiles(location, { config: "config.json" }, ask, signal) });
  }

  /** Search for the query of the page. A search that is running repeats until it has used the latest query. */
  async search() {
    if (this.#isSearching || this.#side === null) return; // the page searches when the model has loaded
    this.#isSearching = true;
    try {
      let query = null;
      while (query !== page.query.value) {
        query = page.query.value;
        if (!query.trim()) {
          showResults([], this.#pictures);
          page.results.dataset.query = "";
          continue;
        }
        const { found, known, seconds } = await this.#page.runtime.call("search", { query });
        page.results.dataset.empty = known ? "There are no pictures yet. Choose some." : "This text has no letters.";
        showResults(found, this.#pictures);
        page.results.dataset.query = query; // for tests
        view.figures.show("Search", `${(1000 * seconds).toFixed(1)} ms`);
      }
    } catch (error) {
      problems.show(error);
    } finally {
      this.#isSearching = false;
    }
  }

  /** Add pictures, and name the last one. @param {(Blob & { name?: string })[]} files */
  async add(files) {
    problems.hide();
    for (const file of files) {
      try {
        if (this.#pictures.size >= MOST_PICTURES) {
          throw new Problem("TooMany", `The page keeps ${MOST_PICTURES} pictures.`, "Remove some.");
        }
        const picture = await readPicture(file, this.#nextNumber++);
        this.#pictures.set(picture.number, picture);
        this.#showPictures();
        if (this.#side !== null) await this.#keep(picture);
        this.name(picture);
      } catch (error) {
        problems.show(error);
      }
    }
    await this.#searchAgain();
  }

  /** Name a picture. @param {Drawable} source */
  name(source) {
    this.#leaveCamera();
    this.#source = source;
    this.refresh();
  }

  /** The labels or the picture have changed: name it as soon as the model is free. */
  refresh() {
    this.#draw();
    if (!this.#source) return;
    this.#isAsked = true;
    if (!this.#page.isWorking) this.#page.work((signal) => this.#tryToName(signal), { failed: "The picture was not named." });
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
      this.#source = camera;
      this.#times = [];
      this.#showCamera();
      this.refresh();
      this.#follow(camera);
    } catch (error) {
      if (opening !== this.#opening) return;
      problems.show(error);
      status.say("The camera is off.");
    }
  }

  /** Stop the camera, the model and its download. */
  stop() {
    this.#leaveCamera();
    this.#page.stop("Stopped.");
  }

  /** @param {string} name @param {Record<string, any>} info */
  #begin(name, { side, cuts, parameters, emoji, knows }) {
    [this.#side, this.#isCut] = [side, cuts];
    closeOnPhone(page.choices);
    view.figures.show("Weights", `${parameters.toLocaleString("en")} numbers`);
    queueMicrotask(() => this.#readAgain());
    return { description: knows ? `${name}: knows ${emoji.toLocaleString("en")} ${knows}` : `${name}: a CLIP, ${megabytes(4 * parameters)} in memory` };
  }

  /** Give the model that has just loaded the pictures of the user. */
  async #readAgain() {
    try {
      for (const picture of this.#pictures.values()) await this.#keep(picture);
      await this.#searchAgain();
      this.refresh();
    } catch (error) {
      problems.show(error);
    }
  }

  /** @param {Picture} picture */
  async #keep(picture) {
    const pixels = squareOf(picture, /** @type {number} */ (this.#side), this.#isCut);
    const { seconds } = await this.#page.runtime.call("keep", { pixels, number: picture.number });
    view.figures.show("Each picture", `${(1000 * seconds).toFixed(1)} ms`);
  }

  /** @param {Picture} picture */
  async #remove(picture) {
    this.#pictures.delete(picture.number);
    this.#showPictures();
    if (this.#side !== null) await this.#page.runtime.call("forget", { number: picture.number });
    await this.#searchAgain();
  }

  async #searchAgain() {
    page.results.dataset.query = "";
    await this.search();
  }

  #showPictures() {
    showPictures([...this.#pictures.values()], { name: (picture) => this.name(picture), remove: (picture) => this.#remove(picture) });
  }

  /** @param {AbortSignal} signal */
  async #tryToName(signal) {
    if (!(await this.#page.ready("The picture is named when the model has loaded.", signal)) || this.#side === null) return;
    while ((this.#isAsked || this.#camera) && !signal.aborted && this.#source) {
      this.#isAsked = false;
      const labels = readLabels();
      if (labels.length < 2) {
        showNames([], []);
        status.say("Write two labels or more, with commas between them.");
        if (this.#camera) await new Promise(requestAnimationFrame);
        continue;
      }
      const source = this.#source;
      const pixels = squareOf(source, this.#side, this.#isCut || this.#camera !== null);
      const { shares, seconds } = await this.#page.runtime.call("label", { pixels, labels });
      if (source !== this.#source) continue;
      showNames(labels, shares);
      view.figures.show("Naming", `${(1000 * seconds).toFixed(1)} ms`);
      page.view.dataset.named = String(Number(page.view.dataset.named ?? 0) + 1); // how often, for tests
      status.say(this.#camera ? "Looking through the camera." : "Done.");
      if (this.#camera) this.#showRate();
    }
  }

  #showRate() {
    const now = performance.now();
    this.#times = [...this.#times.filter((time) => now - time < GLANCE_MS), now];
    const [first] = this.#times;
    const count = this.#times.length - 1;
    page.rate.textContent = count ? `${((1000 * count) / (now - first)).toFixed(count < 10 ? 1 : 0)} pictures a second` : "";
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

  /** Turn the camera off; its last picture stays in the view. */
  #leaveCamera() {
    this.#opening++;
    if (!this.#camera) return;
    this.#camera.close();
    this.#camera = null;
    this.#source = null;
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

  #draw() {
    if (!this.#source?.width) return;
    const context = /** @type {CanvasRenderingContext2D} */ (page.view.getContext("2d"));
    context.clearRect(0, 0, page.view.width, page.view.height);
    drawInto(context, this.#source, page.view.width, this.#camera !== null || this.#isCut);
  }
}

/** The labels that the user has written, without repetition. */
function readLabels() {
  const labels = page.labels.value.split(/[,;、，،]/u).map((label) => label.trim());
  return [...new Set(labels.filter(Boolean))].slice(0, MOST_LABELS);
}
