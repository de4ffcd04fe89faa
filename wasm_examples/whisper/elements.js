/** The elements of the page that more than one of its modules uses, and the view that shows its state. */

import { Figures, ProgressBar, element, pageView } from "../../web/page/page.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";

/** @import { ModelView } from "../../web/page/model-page.js" */

export const page = {
  modelName: element("model-name", HTMLElement),
  choices: element("choices", HTMLDetailsElement),
  model: element("model", HTMLSelectElement),
  modelForm: element("model-form", HTMLFormElement),
  modelId: element("model-id", HTMLInputElement),
  modelFile: element("model-file", HTMLInputElement),
  modelFolder: element("model-folder", HTMLInputElement),
  builtIn: element("built-in", HTMLElement),
  larger: element("larger", HTMLButtonElement),
  form: element("sound-form", HTMLFormElement),
  addressForm: element("address-form", HTMLFormElement),
  address: element("address", HTMLInputElement),
  audioFile: element("audio-file", HTMLInputElement),
  record: element("record", HTMLButtonElement),
  wave: element("wave", HTMLCanvasElement),
  elapsed: element("elapsed", HTMLElement),
  live: element("live", HTMLElement),
  liveSteady: element("live-steady", HTMLElement),
  liveDraft: element("live-draft", HTMLElement),
  samples: element("samples", HTMLElement),
  soundName: element("sound-name", HTMLElement),
  player: element("player", HTMLAudioElement),
  saveSound: element("save-sound", HTMLButtonElement),
  stop: element("stop", HTMLButtonElement),
  language: element("language", HTMLSelectElement),
  task: element("task", HTMLSelectElement),
  timestamps: element("timestamps", HTMLSelectElement),
  liveOn: element("live-on", HTMLSelectElement),
  transcript: element("transcript", HTMLElement),
  segments: element("segments", HTMLElement),
  results: element("results", HTMLElement),
  copy: element("copy", HTMLButtonElement),
  unsure: element("unsure", HTMLElement),
  unsureText: element("unsure-text", HTMLElement),
  unsureWhy: element("unsure-why", HTMLElement),
  another: element("another", HTMLButtonElement),
  picture: element("picture", HTMLElement),
  mel: element("mel", HTMLCanvasElement),
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
};

/** @type {ModelView} */
export const view = {
  ...pageView(),
  stop: page.stop,
  modelName: page.modelName,
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Speed", "Heard", "Language", "Encoder", "Decoder", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};

/** The progress of work on a sound. */
export const hearing = new ProgressBar(element("hearing", HTMLElement));
