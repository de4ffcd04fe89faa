/** Connects the controls of the page with what they do. */

import { isolate } from "../../web/page/isolation.js";
import { element, onDrop, showStartFailure } from "../../web/page/page.js";
import { listenForPictures } from "../../web/page/picture-inputs.js";
import { ShareLink } from "../../web/page/share.js";
import { page, view } from "./elements.js";
import { Finder, readKinds } from "./finder.js";
import { listenForMoves } from "./hand.js";
import { inColours } from "./scene.js";

const SEED = /^\d{1,9}$/;
const FIRST = "7"; // the scene of a page without a link

/** The seed of the scene, as links have it. */
const seed = { value: FIRST, accepts: (/** @type {string} */ text) => SEED.test(text) };

/** @param {Finder} finder */
function listen(finder) {
  const showScene = () => finder.showScene(Number(seed.value));
  page.newScene.onclick = () => {
    seed.value = String(Math.floor(Math.random() * 1e6));
    showScene();
  };
  page.camera.onclick = () => finder.toggleCamera();
  page.stop.onclick = () => finder.stop();
  page.save.onclick = () => finder.save();
  page.masks.onchange = page.boxes.onchange = () => finder.redraw();
  page.threshold.oninput = () => {
    showThreshold();
    finder.redraw();
  };
  onDrop(element("drop", HTMLElement), ([file]) => finder.showFile(file));
  listenForPictures(page.pictureFile, ([file]) => finder.showFile(file));
  listenForMoves(finder);
  showScene();
  return showScene;
}

function showThreshold() {
  page.thresholdShown.textContent = Number(page.threshold.value).toFixed(2);
}

const link = new ShareLink({ scene: seed, threshold: page.threshold, masks: page.masks, boxes: page.boxes }, { button: page.share, note: page.shareNote });
showThreshold();
isolate();
try {
  const kinds = await readKinds();
  page.knows.textContent = kinds.labels.map((label, i) => `${inColours(kinds.emoji[i])}\u00a0${label}`).join(" ");
  const finder = new Finder(kinds);
  const showScene = listen(finder);
  link.onOpen = () => {
    showThreshold();
    showScene();
  };
} catch (error) {
  showStartFailure(view, error);
}
await view.downloads.refresh();
