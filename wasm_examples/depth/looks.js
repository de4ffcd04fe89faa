/** A picture with its depths: as colours, with the background blurred, or without it. */

import { canvasOf, contextOf } from "../../web/page/pictures.js";

/** @import { Source } from "../../web/page/pictures.js" */
/**
 * `map` has a level for each pixel, from 0, the farthest, to 255; of a `matte` it is the share of the foreground.
 * @typedef {{ map: Uint8Array, width: number, height: number, isMatte: boolean }} Depths
 * `border` is the level from 0 to 1 at which the foreground begins, `blur` the radius as a share of the width in thousandths.
 * @typedef {{ name: string, border: number, blur: number }} Look
 */

const SOFT = 0.06; // of the levels, over which the foreground begins
const COLOURS = [[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21], [250, 193, 39], [252, 255, 164]]; // matplotlib's inferno

/**
 * Draw a picture at the origin, as a look wants it. Without depths it is the picture itself.
 * @param {CanvasRenderingContext2D} context @param {Source} source @param {Depths | null} depths @param {Look} look @param {number} width @param {number} height
 */
export function drawLook(context, source, depths, look, width, height) {
  if (!depths || look.name === "picture") return source.draw(context, width, height);
  context.imageSmoothingEnabled = true;
  if (look.name === "depth") return context.drawImage(coloured(depths), 0, 0, width, height);
  if (look.name === "blurred") drawBlurred(context, source, (look.blur * width) / 1000, width, height);
  context.drawImage(foreground(source, depths, look.border, width, height), 0, 0, width, height);
}

/** @param {CanvasRenderingContext2D} context @param {Source} source @param {number} radius @param {number} width @param {number} height */
function drawBlurred(context, source, radius, width, height) {
  const [across, down] = [Math.max(1, Math.round(width)), Math.max(1, Math.round(height))];
  const sharp = canvasOf(across, down);
  source.draw(contextOf(sharp), across, down);
  context.save();
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  context.drawImage(sharp, 0, 0, width, height); // under the edges, which the blur makes transparent
  if (radius >= 0.5) context.filter = `blur(${radius.toFixed(1)}px)`;
  const edge = 2 * radius; // beyond which the blur has nothing to mix with
  context.drawImage(sharp, -edge, -edge, width + 2 * edge, height + 2 * edge);
  context.restore();
}

/** The foreground of a picture, transparent elsewhere. @param {Source} source @param {Depths} depths @param {number} border @param {number} width @param {number} height */
function foreground(source, depths, border, width, height) {
  const canvas = canvasOf(Math.max(1, Math.round(width)), Math.max(1, Math.round(height)));
  const context = contextOf(canvas);
  source.draw(context, canvas.width, canvas.height);
  context.globalCompositeOperation = "destination-in";
  context.drawImage(imageOf(depths, (level) => [0, 0, 0, depths.isMatte ? level : 255 * step(level / 255, border)]), 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** From 0 to 1 around a border. @param {number} level @param {number} border */
function step(level, border) {
  const share = Math.max(0, Math.min(1, (level - border) / SOFT + 0.5));
  return share * share * (3 - 2 * share);
}

/** @param {Depths} depths */
function coloured(depths) {
  return imageOf(depths, (level) => {
    const place = (level / 255) * (COLOURS.length - 1);
    const low = Math.min(COLOURS.length - 2, Math.floor(place));
    return [...COLOURS[low].map((value, i) => value + (place - low) * (COLOURS[low + 1][i] - value)), 255];
  });
}

/** A canvas with the size of the map. @param {Depths} depths @param {(level: number) => number[]} pixelOf  red, green, blue and opacity */
function imageOf({ map, width, height }, pixelOf) {
  const table = Array.from({ length: 256 }, (_, level) => pixelOf(level));
  const image = new ImageData(width, height);
  map.forEach((level, i) => image.data.set(table[level], 4 * i));
  const canvas = canvasOf(width, height);
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}
