/** Describes the picture that the page looks at, or answers questions about it, and shows the text as it comes. */

import { findFiles, folderName, localFolder, parseModel } from "../../web/page/model-files.js";
import { ModelPage } from "../../web/page/model-page.js";
import { closeOnPhone, readNumber, showStart } from "../../web/page/page.js";
import { pictureAmong } from "../../web/page/picture-inputs.js";
import { drawerOf, frameOf } from "../../web/page/pictures.js";
import { markPresets } from "../../web/page/presets.js";
import { Watched } from "../../web/page/watched.js";
import { Problem } from "../../web/worker/protocol.js";
import { page, view } from "./elements.js";

/** @import { NamedModel } from "../../web/page/model-files.js" */
/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @import { Source } from "../../web/page/pictures.js" */
/** @typedef {{ name: string, description: string, answers: boolean, width: number, height: number }} Model */

export const CAPTIONS = "Salesforce/blip-image-captioning-base";
const HEADS = { config: "config.json" };
const { status } = view;

export class Describer {
  /** @type {Source | null}  the picture that Python has */
  #given = null;
  /** @type {ModelPage<ModelChoice, Model>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), parts: ["tallow"], libraries: ["huggingface_tokenizers"] }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: (choice, { info }) => this.#showModel(choice, info),
    onModel: (model) => this.#mark(model),
    isBusy: () => this.#watched.isLive,
  });
  #watched = new Watched(page, view, {
    onSource: () => this.#watch(),
    onFrame: () => this.#draw(),
    onCamera: () => this.#page.showBusy(),
  });

  #draw = drawerOf(page.view, () => this.#watched.source, (context, source, width, height) => source.draw(context, width, height));

  /** Load a repository of the Hub, or the folder at an address. @param {string} text @throws {Problem} it is neither */
  loadNamed(text) {
    this.#load(parseModel(text.trim(), CAPTIONS));
  }

  /** Take chosen or dropped files: a picture, or those of a model. @param {Map<string, File>} files */
  take(files) {
    const picture = pictureAmong(files);
    if (picture) return void this.showFile(picture);
    this.#load({ name: folderName(files) ?? "your model", location: localFolder(files) });
  }

  /** Look at a picture file. @param {Blob & { name?: string }} file */
  showFile(file) {
    return this.#watched.showFile(file);
  }

  /** Turn the camera on, or off with its last picture. */
  toggleCamera() {
    return this.#watched.isLive ? this.#watched.leaveCamera() : this.#watched.useCamera();
  }

  /** Describe the picture, or answer the question; a camera's picture of this moment. */
  ask() {
    const { source } = this.#watched;
    if (!source) return status.say("Choose a picture first.");
    if (!this.#page.model && !this.#page.isLoading) return status.say("Choose a model first.");
    this.#page.work((signal) => this.#tryToAsk(signal), { failed: "There is no text about this picture." });
  }

  /** Stop writing, loading and the camera. */
  stop() {
    this.#watched.leaveCamera();
    this.#page.stop("Stopped.");
  }

  /** @param {AbortSignal} signal */
  async #tryToAsk(signal) {
    const text = page.text.value.trim();
    const steps = readNumber(page.steps, { whole: true, above: 0 });
    const temperature = Number(page.temperature.value);
    if (!(await this.#page.ready("The text is written when the model has loaded.", signal)) || !this.#page.model) return;
    const { model, runtime } = this.#page;
    const { source, isLive } = this.#watched;
    if (!source) return;
    if (model.answers && !text) throw new Problem("NoQuestion", "This model answers questions.", "Write one, such as: how many dogs are there?");
    if (isLive || source !== this.#given) await runtime.call("show", { ...frameOf(source, model) });
    signal.throwIfAborted();
    this.#given = isLive ? null : source;
    const output = entry(model.answers ? text : "", model.answers ? "" : text);
    document.body.classList.add("burning");
    status.say("Reading the picture");
    try {
      const options = { text, max_tokens: steps, temperature, seed: Math.floor(Math.random() * 2 ** 31) };
      for await (const { text: piece, stats } of runtime.generate(options, { signal })) {
        output.textContent += piece;
        status.say("Writing");
        view.figures.show("Picture", `read in ${stats.readSeconds.toFixed(2)} s`);
        view.figures.show("Speed", `${(stats.tokens / Math.max(stats.seconds, 1e-3)).toFixed(1)} tokens/s`);
      }
      status.say(output.textContent ? "Done." : "Done; the model wrote nothing.");
    } finally {
      document.body.classList.toggle("burning", this.#watched.isLive);
    }
  }

  /** @param {NamedModel} model */
  #load({ name, location }) {
    const ask = (/** @type {Record<string, unknown>} */ texts) => this.#page.runtime.call("list_files", texts);
    this.#page.load({ name, files: (signal) => findFiles(location, HEADS, ask, signal) });
  }

  #watch() {
    this.#page.stopWork();
    this.#draw();
    if (!this.#page.model && !this.#page.isLoading) status.say("Choose a model: it puts the picture into words.");
  }

  /** @param {ModelChoice} choice @param {Record<string, any>} info @returns {Model} */
  #showModel({ name }, { answers, width, height, parameters }) {
    view.figures.show("Weights", `${parameters.toLocaleString("en")} numbers`);
    page.textLabel.textContent = answers ? "Your question" : "The beginning, if you want one";
    this.#given = null;
    closeOnPhone(page.choices);
    const does = answers ? "answers questions" : "writes captions";
    return { name, answers, width, height, description: `${name}: ${does}, ${(parameters / 1e6).toFixed(1)} million parameters` };
  }

  /** Say which of the offered models is in memory. @param {Model | null} model */
  #mark(model) {
    markPresets(page.presets, model?.name);
  }
}

/** Add an entry to the list, the last one first, and return the element for its text. @param {string} question @param {string} begun */
function entry(question, begun) {
  const item = document.createElement("li");
  if (question) item.append(Object.assign(document.createElement("p"), { className: "question", textContent: question }));
  const answer = Object.assign(document.createElement("p"), { className: "written", textContent: begun && `${begun} ` });
  answer.dataset.testid = "written";
  item.append(answer);
  page.log.prepend(item);
  return answer;
}
