/** The settings of the text tab, which links carry. */

import { element } from "../../web/page/page.js";

export const textFields = {
  task: element("text-task", HTMLSelectElement),
  width: element("text-width", HTMLSelectElement),
  layers: element("text-layers", HTMLInputElement),
  context: element("text-context", HTMLSelectElement),
  rank: element("text-rank", HTMLInputElement),
  lr: element("text-lr", HTMLInputElement),
  batch: element("text-batch", HTMLInputElement),
  seed: element("text-seed", HTMLInputElement),
  prompt: element("text-prompt", HTMLInputElement),
};
