/** Pictures of the user, and the squares of them that a model gets. */

import { canvasOf, contextOf, frameOf } from "../../web/page/pictures.js";
import { Problem } from "../../web/worker/protocol.js";

/**
 * @import { Source } from "../../web/page/pictures.js"
 * @typedef {Source & { number: number, name: string, url: string }} Picture
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
    contextOf(canvas).drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return { width: canvas.width, height: canvas.height, draw: (context, w, h) => context.drawImage(canvas, 0, 0, w, h), number, name, url: canvas.toDataURL("image/jpeg", 0.9) };
  } catch {
    throw new Problem("NoPicture", `${name} is not a picture that this browser reads.`, "Choose a PNG, JPEG or WebP file.");
  }
}

/** The pixels, RGBA, of a square. @param {Source} source @param {number} side @param {boolean} isCut  the middle is shown, in place of everything on white */
export function squareOf(source, side, isCut) {
  const square = { width: side, height: side };
  return frameOf({ ...square, draw: (context) => drawInto(context, source, side, isCut) }, square).pixels;
}

/** @param {CanvasRenderingContext2D} context @param {Source} source @param {number} side @param {boolean} isCut */
export function drawInto(context, source, side, isCut) {
  const { width, height } = source;
  const scale = isCut ? side / Math.min(width, height) : (FILLED * side) / Math.max(width, height);
  const [w, h] = [width * scale, height * scale];
  context.save();
  context.imageSmoothingQuality = "high";
  context.translate((side - w) / 2, (side - h) / 2);
  source.draw(context, w, h);
  context.restore();
}
