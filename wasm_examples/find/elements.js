/** The elements of the page that more than one of its modules uses, and the view that shows its state. */

import { Figures, element, pageView } from "../../web/page/page.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";

/** @import { ModelView } from "../../web/page/model-page.js" */

export const page = {
  newScene: element("new-scene", HTMLButtonElement),
  camera: element("camera", HTMLButtonElement),
  stop: element("stop", HTMLButtonElement),
  view: element("view", HTMLCanvasElement),
  rate: element("rate", HTMLElement),
  pictureFile: element("picture-file", HTMLInputElement),
  counts: element("counts", HTMLElement),
  things: element("things", HTMLElement),
  threshold: element("threshold", HTMLInputElement),
  thresholdShown: element("threshold-shown", HTMLOutputElement),
  masks: element("masks", HTMLSelectElement),
  boxes: element("boxes", HTMLSelectElement),
  save: element("save", HTMLButtonElement),
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
  knows: element("knows", HTMLElement),
};

/** @type {ModelView} */
export const view = {
  ...pageView(),
  stop: page.stop,
  modelName: element("model-name", HTMLElement),
  noModel: "No model.",
  figures: new Figures(element("stats", HTMLElement), ["Detection", "Weights", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};
