/** What the page looks at: a drawn scene, a picture or the camera; and the small frame of it that the model gets. */

import { RATIO } from "./scene.js";

/** @import { Camera } from "./camera.js" */
/** @import { Scene } from "./scene.js" */
/**
 * `draw` paints all of it to a width and a height with its ratio.
 * @typedef {{ width: number, height: number, draw(context: CanvasRenderingContext2D, width: number, height: number): void }} Source
 * @typedef {{ pixels: Uint8Array, width: number, height: number }} Frame  RGBA
 */

export const SIDE = 256; // longest side of a frame
const SCENE_WIDTH = 1024;
const MOST_PIXELS = 2048 * 2048; // of a picture that is kept

/** @param {Scene} scene @returns {Source} */
export function ofScene(scene) {
  return { width: SCENE_WIDTH, height: SCENE_WIDTH * RATIO, draw: (context, width) => scene.draw(context, width) };
}

/** @param {Camera} camera @returns {Source} */
export function ofCamera(camera) {
  return {
    get width() {
      return camera.width;
    },
    get height() {
      return camera.height;
    },
    draw: (context, width, height) => context.drawImage(camera.picture, 0, 0, width, height),
  };
}

/** A copy of a picture, on white, made smaller if it is very large. @param {{ width: number, height: number }} size @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} draw @returns {Source} */
export function ofStill({ width, height }, draw) {
  const scale = Math.min(1, Math.sqrt(MOST_PIXELS / (width * height)));
  const canvas = canvasOf(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  draw(contextOf(canvas), canvas.width, canvas.height);
  return { width: canvas.width, height: canvas.height, draw: (context, w, h) => context.drawImage(canvas, 0, 0, w, h) };
}

/** The frame of a source that the model gets. @param {Source} source @returns {Frame} */
export function frameOf(source) {
  const scale = SIDE / Math.max(source.width, source.height);
  const canvas = canvasOf(Math.max(1, Math.round(source.width * scale)), Math.max(1, Math.round(source.height * scale)));
  const context = contextOf(canvas);
  source.draw(context, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  return { pixels: new Uint8Array(data.buffer), width: canvas.width, height: canvas.height };
}

/** @param {number} width @param {number} height */
export function canvasOf(width, height) {
  return Object.assign(document.createElement("canvas"), { width, height });
}

/** @param {HTMLCanvasElement} canvas */
export function contextOf(canvas) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: canvas.width <= SIDE }));
  context.imageSmoothingQuality = "high";
  if (!context.getContextAttributes().alpha) return context;
  context.fillStyle = "white"; // behind what is transparent
  context.fillRect(0, 0, canvas.width, canvas.height);
  return context;
}
