/** Connects the controls of the page with what they do. */

import { isolate } from "../../web/page/isolation.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { element, showStartFailure } from "../../web/page/page.js";
import { listenForPictures } from "../../web/page/picture-inputs.js";
import { preset } from "../../web/page/presets.js";
import { ShareLink } from "../../web/page/share.js";
import { DEPTH_ANYTHING, DepthMaker } from "./depth-maker.js";
import { page, view } from "./elements.js";

/** Models of the Hub that the page offers. */
const PRESETS = [
  { label: "Depth Anything v2, small: depths, 99 MB", name: DEPTH_ANYTHING },
  { label: "Depth Anything v2, small, indoors: metres, 99 MB", name: "depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf" },
  { label: "MODNet: people without their background, 26 MB", name: "Xenova/modnet:onnx/model.onnx" },
];

/** @param {DepthMaker} maker */
function listen(maker) {
  page.camera.onclick = () => maker.toggleCamera();
  page.stop.onclick = () => maker.stop();
  page.save.onclick = () => maker.save();
  page.detail.onchange = page.levels.onchange = () => maker.refresh();
  page.look.onchange = () => show(maker);
  page.border.oninput = page.blur.oninput = () => show(maker);
  listenForPictures(page.pictureFile, ([file]) => maker.showFile(file));
  page.presets.replaceChildren(...PRESETS.map(({ label, name }) => preset(label, name, () => maker.loadNamed(name))));
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFiles, page.modelFolder], curtain: element("drop", HTMLElement) },
    { name: (text) => maker.loadNamed(text), files: (files) => maker.take(files), drop: (files) => maker.take(files) },
    view.problems,
  );
}

/** Show the settings next to their controls, and the picture with them. @param {DepthMaker | null} maker */
function show(maker) {
  page.borderShown.textContent = Number(page.border.value).toFixed(2);
  page.blurShown.textContent = page.blur.value;
  const { value } = page.look;
  page.border.disabled = value !== "blurred" && value !== "removed";
  page.blur.disabled = value !== "blurred";
  maker?.draw();
}

const link = new ShareLink({ look: page.look, detail: page.detail, border: page.border, blur: page.blur }, { button: page.share, note: page.shareNote });
show(null);
isolate();
try {
  const maker = new DepthMaker();
  listen(maker);
  show(maker);
  link.onOpen = () => {
    show(maker);
    maker.refresh();
  };
} catch (error) {
  showStartFailure(view, error);
}
await view.downloads.refresh();
