/** Pictures that a page looks at: files and the camera; and the small frames of them that a model gets. */

/** @import { Camera } from "./camera.js" */
/**
 * `draw` paints all of it to a width and a height with its ratio.
 * @typedef {{ width: number, height: number, draw(context: CanvasRenderingContext2D, width: number, height: number): void }} Source
 * @typedef {{ pixels: Uint8Array, width: number, height: number }} Frame  RGBA
 */

const MOST_PIXELS = 2048 * 2048; // of a picture that is kept

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

/** The size of a source with a longest side, whose sides are multiples of a number. @param {Source} source @param {number} side @param {number} [multiple] */
export function sizeOf(source, side, multiple = 1) {
  const scale = side / Math.max(source.width, source.height);
  const rounded = (/** @type {number} */ length) => Math.max(1, Math.round((length * scale) / multiple)) * multiple;
  return { width: rounded(source.width), height: rounded(source.height) };
}

/** The frame of a source that a model gets. @param {Source} source @param {{ width: number, height: number }} size @returns {Frame} */
export function frameOf(source, { width, height }) {
  const canvas = canvasOf(width, height);
  const context = contextOf(canvas, { isRead: true });
  source.draw(context, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  return { pixels: new Uint8Array(data.buffer), width: canvas.width, height: canvas.height };
}

/** Where a source is in a canvas that shows all of it. @param {HTMLCanvasElement} canvas @param {Source} source */
export function placeIn(canvas, source) {
  const scale = Math.min(canvas.width / source.width, canvas.height / source.height);
  const [width, height] = [source.width * scale, source.height * scale];
  return { left: (canvas.width - width) / 2, top: (canvas.height - height) / 2, width, height };
}

/**
 * A function that shows a source in a canvas before the next paint: once, however often it was called.
 * @param {HTMLCanvasElement} canvas @param {() => Source | null} sourceOf  the source to show
 * @param {(context: CanvasRenderingContext2D, source: Source, width: number, height: number) => void} paint  to this size, at the origin
 */
export function drawerOf(canvas, sourceOf, paint) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      const source = sourceOf();
      if (!source?.width) return;
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      const { left, top, width, height } = placeIn(canvas, source);
      context.clearRect(0, 0, canvas.width, canvas.height);
      context.save();
      context.translate(left, top);
      paint(context, source, width, height);
      context.restore();
    });
  };
}

/** @param {number} width @param {number} height */
export function canvasOf(width, height) {
  return Object.assign(document.createElement("canvas"), { width, height });
}

/** @param {HTMLCanvasElement} canvas @param {{ isRead?: boolean }} [use]  whether its pixels are read */
export function contextOf(canvas, { isRead = false } = {}) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: isRead }));
  context.imageSmoothingQuality = "high";
  if (!context.getContextAttributes().alpha) return context;
  context.fillStyle = "white"; // behind what is transparent
  context.fillRect(0, 0, canvas.width, canvas.height);
  return context;
}

/** Save a canvas as a PNG file. @param {HTMLCanvasElement} canvas @returns {Promise<Blob | null>} */
export function pngOf(canvas) {
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
