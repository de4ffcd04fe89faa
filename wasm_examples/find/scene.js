/** A drawn scene: emoji over a ground, which a seed determines, and which the user can move. */

/** `x` and `y` are its middle; lengths are shares of the width of the scene. @typedef {{ emoji: string, label: string, x: number, y: number, size: number, turn: number }} Thing */

export const RATIO = 3 / 4; // height of a scene by its width
const LEAST = 5;
const MOST = 9;
const TRIES = 40; // for a place that overlaps others little
const FONT = '"Noto Color Emoji", "Apple Color Emoji", "Segoe UI Emoji", "Twemoji Mozilla", sans-serif';
const VARIATION = "\uFE0F"; // asks for the colours of a character that also has a form in text

export class Scene {
  /** @type {Thing[]}  those behind first */
  things = [];
  /** @type {Thing | null}  the one that the keys move */
  chosen = null;
  #colours;
  #angle;

  /** @param {number} seed @param {{ labels: string[], emoji: string[] }} kinds */
  constructor(seed, { labels, emoji }) {
    const random = randomNumbers(seed);
    const hue = 360 * random();
    this.#colours = [0, 40 + 60 * random()].map((turn) => `hsl(${(hue + turn) % 360} ${30 + 40 * random()}% ${62 + 28 * random()}%)`);
    this.#angle = 2 * Math.PI * random();
    const count = LEAST + Math.floor((MOST + 1 - LEAST) * random());
    for (let i = 0; i < count; i++) {
      const kind = Math.floor(labels.length * random());
      const size = 0.11 + 0.13 * random();
      const turn = 0.6 * (random() - 0.5);
      this.things.push({ emoji: emoji[kind], label: labels[kind], size, turn, ...this.#place(size, random) });
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width  of the scene in the canvas */
  draw(context, width) {
    const height = width * RATIO;
    const [dx, dy] = [(Math.cos(this.#angle) * width) / 2, (Math.sin(this.#angle) * height) / 2];
    const ground = context.createLinearGradient(width / 2 - dx, height / 2 - dy, width / 2 + dx, height / 2 + dy);
    this.#colours.forEach((colour, i) => ground.addColorStop(i, colour));
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
    for (const thing of this.things) drawThing(context, thing, width);
  }

  /** The thing in front at a place. @param {number} x @param {number} y  as shares of the scene's width and height */
  at(x, y) {
    return this.things.findLast((thing) => Math.hypot(thing.x - x, thing.y - y * RATIO) < 0.5 * thing.size) ?? null;
  }

  /** Move a thing, and keep its middle in the scene. @param {Thing} thing @param {number} x @param {number} y  of its middle */
  move(thing, x, y) {
    thing.x = Math.min(1, Math.max(0, x));
    thing.y = Math.min(RATIO, Math.max(0, y));
  }

  /** Bring a thing to the front. @param {Thing} thing */
  raise(thing) {
    this.things = [...this.things.filter((other) => other !== thing), thing];
  }

  /** Choose the thing after the chosen one, from left to right. @returns {Thing} */
  chooseNext() {
    const ordered = [...this.things].sort((a, b) => a.x - b.x);
    this.chosen = ordered[(ordered.findIndex((thing) => thing === this.chosen) + 1) % ordered.length];
    return this.chosen;
  }

  /** A place away from the other things, if there is one. @param {number} size @param {() => number} random */
  #place(size, random) {
    let best = { x: 0.5, y: RATIO / 2, room: -Infinity };
    for (let i = 0; i < TRIES && best.room < 0; i++) {
      const [x, y] = [size / 2 + (1 - size) * random(), size / 2 + (RATIO - size) * random()];
      const room = Math.min(1, ...this.things.map((other) => Math.hypot(other.x - x, other.y - y) - 0.5 * (other.size + size)));
      if (room > best.room) best = { x, y, room };
    }
    return { x: best.x, y: best.y };
  }
}

/** An emoji that is drawn in colours, where the system has them. @param {string} emoji */
export function inColours(emoji) {
  return emoji + VARIATION;
}

/** Whether the system has emoji in colours. */
export function hasEmoji() {
  const canvas = Object.assign(document.createElement("canvas"), { width: 32, height: 32 });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  drawThing(context, { emoji: "🍎", label: "", x: 0.5, y: 0.5, size: 0.8, turn: 0 }, 32);
  const { data } = context.getImageData(0, 0, 32, 32);
  return data.some((value, i) => i % 4 === 0 && value > data[i + 1] + 60);
}

/** @param {CanvasRenderingContext2D} context @param {Thing} thing @param {number} width */
function drawThing(context, { emoji, x, y, size, turn }, width) {
  context.save();
  context.translate(x * width, y * width);
  context.rotate(turn);
  context.font = `${0.84 * size * width}px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  context.fillStyle = "black";
  const text = inColours(emoji);
  const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = context.measureText(text);
  context.fillText(text, 0, (up - down) / 2);
  context.restore();
}

/** Numbers from 0 to 1 that a seed determines: mulberry32, by Tommy Ettinger. @param {number} seed */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
