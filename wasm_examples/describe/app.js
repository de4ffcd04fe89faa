/** Connects the controls of the page with what they do. */

import { isolate } from "../../web/page/isolation.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { element, onSubmit, showStartFailure } from "../../web/page/page.js";
import { listenForPictures } from "../../web/page/picture-inputs.js";
import { preset } from "../../web/page/presets.js";
import { ShareLink } from "../../web/page/share.js";
import { CAPTIONS, Describer } from "./describer.js";
import { page, view } from "./elements.js";

/** Models of the Hub that the page offers. */
const PRESETS = [
  { label: "BLIP, base: captions, 990 MB", name: CAPTIONS },
  { label: "BLIP, base: answers to questions, 1.5 GB", name: "Salesforce/blip-vqa-base" },
];

/** @param {Describer} describer */
function listen(describer) {
  page.camera.onclick = () => describer.toggleCamera();
  page.stop.onclick = () => describer.stop();
  page.temperature.oninput = showTemperature;
  onSubmit(page.askForm, () => describer.ask());
  listenForPictures(page.pictureFile, ([file]) => describer.showFile(file));
  page.presets.replaceChildren(...PRESETS.map(({ label, name }) => preset(label, name, () => describer.loadNamed(name))));
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFiles, page.modelFolder], curtain: element("drop", HTMLElement) },
    { name: (text) => describer.loadNamed(text), files: (files) => describer.take(files), drop: (files) => describer.take(files) },
    view.problems,
  );
}

function showTemperature() {
  page.temperatureShown.textContent = Number(page.temperature.value).toFixed(1);
}

const link = new ShareLink({ text: page.text, steps: page.steps, temperature: page.temperature }, { button: page.share, note: page.shareNote });
link.onOpen = showTemperature;
showTemperature();
isolate();
try {
  listen(new Describer());
} catch (error) {
  showStartFailure(view, error);
}
await view.downloads.refresh();
