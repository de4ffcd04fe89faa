/** Boxes, masks and labels over a picture. */

import { canvasOf } from "../../web/page/pictures.js";

/**
 * `box` is left, top, right, bottom in pixels of the frame; `index` its number in `map`.
 * @typedef {{ label: string, kind: number, score: number, box: [number, number, number, number], index: number }} Thing
 * `map` has a number for each pixel of the frame: 0, or the index of the thing there.
 * @typedef {{ things: Thing[], map: Uint8Array, width: number, height: number }} Found
 * @typedef {{ masks: boolean, boxes: boolean, threshold: number, lit: number | null }} Look  `lit` is the index of one thing to show brightly
 */

const GOLDEN = 137.508; // degrees between the hues of kinds: neighbours differ much
const CHIP = "rgb(20 16 12 / 0.86)";
const PALE = 105;
const BRIGHT = 170;
const FAINT = 35;

/** @param {number} kind @returns {string} */
export function colourOf(kind) {
  return `rgb(${rgbOf(kind).join(" ")})`;
}

/** The things that are shown. @param {Found} found @param {Look} look */
export function shown({ things }, { threshold }) {
  return things.filter(({ score }) => score >= threshold);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Found} found @param {Look} look
 * @param {number} width  of the picture in the canvas
 */
export function drawMarks(context, found, look, width) {
  const scale = width / found.width;
  const things = shown(found, look);
  if (look.masks) drawMasks(context, found, things, look, width);
  const line = Math.max(1.5, width / 400);
  for (const thing of [...things].reverse()) {
    const [left, top, right, bottom] = thing.box.map((edge) => edge * scale);
    const isLit = thing.index === look.lit;
    context.lineWidth = isLit ? 2 * line : line;
    context.strokeStyle = colourOf(thing.kind);
    if (look.boxes || isLit) context.strokeRect(left, top, right - left, bottom - top);
  }
  for (const thing of [...things].reverse()) drawLabel(context, thing, scale, width);
}

/** @param {CanvasRenderingContext2D} context @param {Thing} thing @param {number} scale @param {number} width */
function drawLabel(context, { label, score, box, kind }, scale, width) {
  const size = Math.max(11, width / 48);
  const text = `${label} ${score.toFixed(2)}`;
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const [chipWidth, chipHeight] = [context.measureText(text).width + size, 1.5 * size];
  const left = Math.max(0, Math.min(box[0] * scale, width - chipWidth));
  const top = Math.max(0, box[1] * scale - chipHeight);
  context.fillStyle = CHIP;
  context.fillRect(left, top, chipWidth, chipHeight);
  context.fillStyle = colourOf(kind);
  context.fillRect(left, top, size / 5, chipHeight);
  context.fillStyle = "white";
  context.fillText(text, left + 0.6 * size, top + chipHeight / 2);
}

/** @param {CanvasRenderingContext2D} context @param {Found} found @param {Thing[]} things @param {Look} look @param {number} canvasWidth */
function drawMasks(context, { map, width, height }, things, { lit }, canvasWidth) {
  /** @type {Map<number, number[]>} */
  const colours = new Map(things.map(({ index, kind }) => [index, [...rgbOf(kind), lit === null ? PALE : lit === index ? BRIGHT : FAINT]]));
  const small = canvasOf(width, height);
  const image = new ImageData(width, height);
  map.forEach((index, i) => {
    const colour = index && colours.get(index);
    if (colour) image.data.set(colour, 4 * i);
  });
  small.getContext("2d")?.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, canvasWidth, (canvasWidth * height) / width);
}

/** A bright colour for a kind. @param {number} kind @returns {[number, number, number]} */
function rgbOf(kind) {
  const hue = (kind * GOLDEN) % 360;
  const channel = (/** @type {number} */ at) => {
    const k = (at + hue / 30) % 12;
    return Math.round(255 * (0.55 - 0.4 * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
