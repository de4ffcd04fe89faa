/** The elements of the page that more than one of its modules uses, and the view that shows its state. */

import { Figures, element, pageView } from "../../web/page/page.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";

/** @import { ModelView } from "../../web/page/model-page.js" */

export const page = {
  query: element("query", HTMLInputElement),
  examples: element("examples", HTMLElement),
  results: element("results", HTMLElement),
  stop: element("stop", HTMLButtonElement),
  pictureFiles: element("picture-files", HTMLInputElement),
  pictures: element("pictures", HTMLElement),
  view: element("view", HTMLCanvasElement),
  camera: element("camera", HTMLButtonElement),
  rate: element("rate", HTMLElement),
  labels: element("labels", HTMLInputElement),
  names: element("names", HTMLElement),
  choices: element("choices", HTMLDetailsElement),
  packaged: element("packaged", HTMLButtonElement),
  modelForm: element("model-form", HTMLFormElement),
  modelId: element("model-id", HTMLInputElement),
  modelFolder: element("model-folder", HTMLInputElement),
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
};

/** @type {ModelView} */
export const view = {
  ...pageView(),
  stop: page.stop,
  modelName: element("model-name", HTMLElement),
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Search", "Each picture", "Naming", "Weights", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};
