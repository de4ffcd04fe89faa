/** Draw on canvases: at the size of the element, in device pixels, with the colours of the page's theme. */

/** Call `draw` when the size or the theme changes. @param {HTMLCanvasElement} canvas @param {() => void} draw */
export function redrawOnChange(canvas, draw) {
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

/** Clear a canvas and return its context, which draws in CSS pixels. @param {HTMLCanvasElement} canvas */
export function clearCanvas(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(height * devicePixelRatio);
  const context = contextOf(canvas);
  context.scale(devicePixelRatio, devicePixelRatio);
  const style = getComputedStyle(canvas);
  /** The value of a CSS custom property: a colour or a font. @param {string} name */
  const color = (name) => style.getPropertyValue(name);
  return { width, height, context, color };
}

/** Show a line of text in place of a picture. @param {HTMLCanvasElement} canvas @param {string} text */
export function showNote(canvas, text) {
  const { width, height, context, color } = clearCanvas(canvas);
  context.fillStyle = color("--muted");
  context.font = `15px ${color("--sans")}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, width / 2, height / 2);
}

/** Show a square image, one value per canvas pixel: 0 is transparent, 255 black. @param {HTMLCanvasElement} canvas @param {Uint8Array} pixels @param {number} side */
export function showInk(canvas, pixels, side) {
  canvas.width = canvas.height = side;
  const image = new ImageData(side, side);
  pixels.forEach((value, i) => (image.data[4 * i + 3] = value));
  contextOf(canvas).putImageData(image, 0, 0);
}

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/** The position of the pointer on a canvas, x and y from 0 to 1. @param {HTMLCanvasElement} canvas @param {PointerEvent} event @returns {[number, number]} */
export function pointerPosition(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * A cursor on a canvas that the arrow keys move, for users without a pointer.
 * @param {HTMLCanvasElement} canvas
 * @param {number} stride  how far a key moves the cursor, as a share of the canvas
 * @param {{ move: () => void, press: () => void }} on  `press` is called on Enter and the space bar
 */
export function keyCursor(canvas, stride, on) {
  const cursor = { x: 0.5, y: 0.5, shown: false };
  canvas.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (arrow) {
      cursor.x = Math.min(1, Math.max(0, cursor.x + stride * arrow[0]));
      cursor.y = Math.min(1, Math.max(0, cursor.y + stride * arrow[1]));
    } else if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    cursor.shown = true;
    if (arrow) on.move();
    else on.press();
  });
  canvas.addEventListener("blur", () => {
    cursor.shown = false;
    on.move();
  });
  return cursor;
}
