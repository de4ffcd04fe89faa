/** Connects the controls of the page with what they do. */

import { isolate } from "../../web/page/isolation.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { element, onSubmit } from "../../web/page/page.js";
import { page, view } from "./elements.js";
import { BUILT_IN, hasModel, smallest } from "./models.js";
import { listenForLinks } from "./settings.js";
import { showSamples } from "./sounds.js";
import { Transcriber } from "./transcriber.js";

/** Use dropped files: those of a model, or a sound. @param {Transcriber} transcriber @param {Map<string, File>} files */
async function takeDrop(transcriber, files) {
  if (hasModel(files)) return transcriber.loadFiles(files);
  const [file] = files.values();
  if (transcriber.choose(file)) await transcriber.transcribe();
}

/** @param {Transcriber} transcriber */
function listen(transcriber) {
  onSubmit(page.form, () => transcriber.transcribe());
  onSubmit(page.addressForm, () => transcriber.fetch(page.address.value));
  page.audioFile.onchange = () => page.audioFile.files?.[0] && transcriber.choose(page.audioFile.files[0]);
  page.audioFile.onclick = () => (page.audioFile.value = ""); // otherwise, choosing the same file again would not be a change
  page.record.onclick = () => transcriber.record();
  page.stop.onclick = () => transcriber.stop();
  page.copy.onclick = () => transcriber.copy();
  page.saveSound.onclick = () => transcriber.saveSound();
  for (const button of document.querySelectorAll("button[data-kind]")) {
    const { kind = "" } = /** @type {HTMLElement} */ (button).dataset;
    button.addEventListener("click", () => transcriber.save(kind));
  }
  listenForModelChoices(transcriber);
}

/** @param {Transcriber} transcriber */
function listenForModelChoices(transcriber) {
  page.larger.textContent = page.another.textContent = `Load ${smallest().text}`;
  page.larger.onclick = () => transcriber.loadByName(smallest().value);
  page.another.onclick = () => transcriber.useLargerModel();
  page.model.onchange = () => {
    if (page.model.value === BUILT_IN) transcriber.loadBuiltIn();
    else transcriber.loadByName(page.model.value);
  };
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFile, page.modelFolder], curtain: element("drop", HTMLElement) },
    {
      name: (text) => transcriber.loadByName(text),
      files: (files) => transcriber.loadFiles(files),
      drop: (files) => takeDrop(transcriber, files),
    },
    view.problems,
  );
}

listenForLinks();
const transcriber = new Transcriber();
listen(transcriber);
isolate();
await showSamples(page.samples, (address) => transcriber.fetch(address));
await view.downloads.refresh();
