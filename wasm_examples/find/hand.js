/** Moves the things of a drawn scene, by the pointer or by the keys; and shows what is under the pointer. */

import { pointerPosition } from "../../web/page/canvas.js";
import { RATIO } from "./scene.js";
import { page, view } from "./elements.js";

/** @import { Finder } from "./finder.js" */
/** @import { Thing } from "./scene.js" */

const STRIDE = 0.02; // of a key, as a share of the scene's width
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @param {Finder} finder */
export function listenForMoves(finder) {
  /** @type {{ thing: Thing, dx: number, dy: number } | null} */
  let held = null;
  const { view: canvas } = page;

  canvas.onpointerdown = (event) => {
    const [x, y] = pointerPosition(canvas, event);
    const { scene } = finder;
    const thing = scene?.at(x, y);
    if (!scene || !thing) return;
    scene.chosen = null;
    scene.raise(thing);
    held = { thing, dx: thing.x - x, dy: thing.y - y * RATIO };
    canvas.setPointerCapture(event.pointerId);
    finder.refresh();
  };
  canvas.onpointermove = (event) => {
    const [x, y] = pointerPosition(canvas, event);
    if (!held || !finder.scene) {
      canvas.style.cursor = finder.scene?.at(x, y) ? "grab" : "";
      return finder.light(finder.thingAt(x, y));
    }
    canvas.style.cursor = "grabbing";
    finder.scene.move(held.thing, x + held.dx, y * RATIO + held.dy);
    finder.refresh();
  };
  canvas.onpointerup = canvas.onpointercancel = () => {
    held = null;
    canvas.style.cursor = "";
  };
  canvas.onpointerleave = () => finder.light(null);
  // A finger on a thing moves it; elsewhere it scrolls the page.
  canvas.addEventListener("touchstart", (event) => held && event.cancelable && event.preventDefault(), { passive: false });

  canvas.onkeydown = (event) => {
    const { scene } = finder;
    const arrow = ARROWS[event.key];
    if (!scene || !(arrow || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    if (!arrow || !scene.chosen) view.status.remark(`The arrow keys move: ${scene.chooseNext().label}.`);
    else scene.move(scene.chosen, scene.chosen.x + STRIDE * arrow[0], scene.chosen.y + STRIDE * arrow[1]);
    finder.refresh();
  };
  canvas.onblur = () => {
    if (!finder.scene?.chosen) return;
    finder.scene.chosen = null;
    finder.redraw();
  };
}
