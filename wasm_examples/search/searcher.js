/** Searches pictures by words, and names pictures: one model, one query and one named picture at a time. */

import { findFiles } from "../../web/page/model-files.js";
import { ModelPage } from "../../web/page/model-page.js";
import { closeOnPhone, megabytes, showStart } from "../../web/page/page.js";
import { Watched } from "../../web/page/watched.js";
import { Problem } from "../../web/worker/protocol.js";
import { page, view } from "./elements.js";
import { drawInto, readPicture, squareOf } from "./pictures.js";
import { showNames, showPictures, showResults } from "./lists.js";

/** @import { NamedModel } from "../../web/page/model-files.js" */
/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @import { Source } from "../../web/page/pictures.js" */
/** @import { Picture } from "./pictures.js" */
/** @typedef {{ description: string, side: number }} Model */

const MOST_PICTURES = 100;
const MOST_LABELS = 24;
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
  #isSeen = false; // what is named is a picture of the camera, of which the middle is shown
  #isAsked = false; // to name again
  /** @type {ModelPage<ModelChoice, Model>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), parts: ["emoji"], libraries: ["huggingface_tokenizers"] }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: ({ name }, { info }) => this.#begin(name, info),
    onModel: (model) => this.#mark(model),
    isBusy: () => this.#watched.isLive,
  });
  #watched = new Watched(page, view, {
    onSource: () => this.#watch(),
    onFrame: () => this.#draw(),
    onCamera: () => this.#page.showBusy(),
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
    this.#page.stay();
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
    this.#page.stay();
    problems.hide();
    /** @type {{ picture?: Picture, failure?: unknown }}  the last ones */
    const last = {};
    for (const file of files) {
      try {
        if (this.#pictures.size >= MOST_PICTURES) {
          throw new Problem("TooMany", `The page keeps ${MOST_PICTURES} pictures.`, "Remove some.");
        }
        const picture = await readPicture(file, this.#nextNumber++);
        this.#pictures.set(picture.number, picture);
        this.#showPictures();
        if (this.#side !== null) await this.#keep(picture);
        last.picture = picture;
      } catch (error) {
        last.failure = error;
      }
    }
    if (last.picture) this.name(last.picture); // which hides problems
    if (last.failure) problems.show(last.failure);
    await this.#searchAgain();
  }

  /** Name a picture. @param {Source} source */
  name(source) {
    this.#watched.show(source);
  }

  /** The labels or the picture have changed: name it as soon as the model is free. */
  refresh() {
    this.#draw();
    if (!this.#watched.source) return;
    this.#isAsked = true;
    if (!this.#page.isWorking) this.#page.work((signal) => this.#tryToName(signal), { failed: "The picture was not named." });
  }

  /** Turn the camera on or off. */
  toggleCamera() {
    return this.#watched.isLive ? this.stop() : this.#watched.useCamera();
  }

  /** Stop the camera, whose last picture stays, the model and its download. */
  stop() {
    this.#watched.leaveCamera();
    this.#page.stop("Stopped.");
  }

  #watch() {
    this.#isSeen = this.#watched.isLive;
    this.refresh();
  }

  /** The model in memory, or null while one loads. @param {Model | null} model */
  #mark(model) {
    page.packaged.disabled = model === null;
    const isBack = this.#side === null && model !== null; // the load of another one failed
    this.#side = model?.side ?? null;
    if (isBack) this.#readAgain();
  }

  /** @param {string} name @param {Record<string, any>} info @returns {Model} */
  #begin(name, { side, cuts, parameters, emoji, knows }) {
    [this.#side, this.#isCut] = [side, cuts];
    closeOnPhone(page.choices);
    view.figures.show("Weights", `${parameters.toLocaleString("en")} numbers`);
    queueMicrotask(() => this.#readAgain());
    return { side, description: knows ? `${name}: knows ${emoji.toLocaleString("en")} ${knows}` : `${name}: a CLIP, ${megabytes(4 * parameters)} in memory` };
  }

  /** Give the model that has just loaded the pictures of the user. */
  async #readAgain() {
    try {
      for (const picture of this.#pictures.values()) {
        if (this.#side === null) return; // another model loads, which gets them
        await this.#keep(picture);
      }
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
    this.#page.stay();
    try {
      if (this.#side !== null) await this.#page.runtime.call("forget", { number: picture.number });
    } catch (error) {
      problems.show(error);
    }
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
    while ((this.#isAsked || this.#watched.isLive) && !signal.aborted && this.#watched.source) {
      this.#isAsked = false;
      const labels = readLabels();
      if (labels.length < 2) {
        showNames([], []);
        status.say("Write two labels or more, with commas between them.");
        if (this.#watched.isLive) await new Promise(requestAnimationFrame);
        continue;
      }
      const { source } = this.#watched;
      const pixels = squareOf(source, this.#side, this.#isCut || this.#isSeen);
      const { shares, seconds } = await this.#page.runtime.call("label", { pixels, labels });
      if (signal.aborted || source !== this.#watched.source) continue;
      showNames(labels, shares);
      view.figures.show("Naming", `${(1000 * seconds).toFixed(1)} ms`);
      page.view.dataset.named = String(Number(page.view.dataset.named ?? 0) + 1); // how often, for tests
      status.say(this.#watched.isLive ? "Looking through the camera." : "Done.");
      if (this.#watched.isLive) this.#watched.count();
    }
  }

  #draw() {
    const { source } = this.#watched;
    if (!source?.width) return;
    const context = /** @type {CanvasRenderingContext2D} */ (page.view.getContext("2d"));
    context.clearRect(0, 0, page.view.width, page.view.height);
    drawInto(context, source, page.view.width, this.#isSeen || this.#isCut);
  }
}

/** The labels that the user has written, without repetition. */
function readLabels() {
  const labels = page.labels.value.split(/[,;、，،]/u).map((label) => label.trim());
  return [...new Set(labels.filter(Boolean))].slice(0, MOST_LABELS);
}
