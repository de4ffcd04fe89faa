/** Pictures of the user, and the squares of them that a model gets. */

import { Problem } from "../../web/worker/protocol.js";

/**
 * What can be drawn, with its size.
 * @typedef {{ picture: CanvasImageSource, width: number, height: number }} Drawable
 * @typedef {Drawable & { number: number, name: string, url: string }} Picture
 */

const LONGEST = 640; // side of a picture that is kept
const FILLED = 0.94; // share of the side that a whole picture takes, as in training

/** A copy of a picture file, small enough to keep. @param {Blob & { name?: string }} file @param {number} number @returns {Promise<Picture>} @throws {Problem} */
export async function readPicture(file, number) {
  const name = file.name ?? "pasted picture";
  try {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height));
    const canvas = canvasOf(Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale)));
    onWhite(canvas).drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return { picture: canvas, width: canvas.width, height: canvas.height, number, name, url: canvas.toDataURL("image/jpeg", 0.9) };
  } catch {
    throw new Problem("NoPicture", `${name} is not a picture that this browser reads.`, "Choose a PNG, JPEG or WebP file.");
  }
}

/** The pixels, RGBA, of a square. @param {Drawable} drawable @param {number} side @param {boolean} isCut  the middle is shown, in place of everything on white */
export function squareOf(drawable, side, isCut) {
  const context = onWhite(canvasOf(side, side), true);
  drawInto(context, drawable, side, isCut);
  return new Uint8Array(context.getImageData(0, 0, side, side).data.buffer);
}

/** @param {CanvasRenderingContext2D} context @param {Drawable} drawable @param {number} side @param {boolean} isCut */
export function drawInto(context, { picture, width, height }, side, isCut) {
  const scale = isCut ? side / Math.min(width, height) : (FILLED * side) / Math.max(width, height);
  const [w, h] = [width * scale, height * scale];
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, (side - w) / 2, (side - h) / 2, w, h);
}

/** @param {number} width @param {number} height */
function canvasOf(width, height) {
  return Object.assign(document.createElement("canvas"), { width, height });
}

/** @param {HTMLCanvasElement} canvas */
function onWhite(canvas, willReadFrequently = false) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently }));
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  return context;
}
