/** Connects the controls of the page with what they do. */

import { isolate } from "../../web/page/isolation.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { element, onSubmit, showStartFailure } from "../../web/page/page.js";
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
  page.pictureFile.onchange = () => page.pictureFile.files?.[0] && describer.showFile(page.pictureFile.files[0]);
  page.pictureFile.onclick = () => (page.pictureFile.value = ""); // otherwise, choosing the same file again would not be a change
  page.temperature.oninput = showTemperature;
  onSubmit(page.askForm, () => describer.ask());
  addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/"));
    if (file) describer.showFile(file);
  });
  page.presets.replaceChildren(...PRESETS.map(({ label, name }) => preset(label, name, () => describer.loadNamed(name))));
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFiles, page.modelFolder], curtain: element("drop", HTMLElement) },
    { name: (text) => describer.loadNamed(text), files: (files) => describer.take(files), drop: (files) => describer.take(files) },
    view.problems,
  );
}

/** @param {string} label @param {string} name @param {() => void} load */
function preset(label, name, load) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: label, onclick: load });
  button.dataset.testid = "preset";
  button.dataset.model = name;
  const item = document.createElement("li");
  item.append(button);
  return item;
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
