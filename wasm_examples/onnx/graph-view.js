/** A graph on a canvas: moved with the pointer, zoomed by pinching, Ctrl and the wheel or buttons, walked with the arrow keys. */

import { clearCanvas, redrawOnChange } from "../../web/page/canvas.js";
import { NODE, layout } from "./layout.js";

/** @import { Layout } from "./layout.js" */
/**
 * `label` is the operator, `detail` a line below it, `inputs` the nodes that it reads; `kind` is "input", "output" or "operator"; with `unsupported`
 * it cannot run.
 * @typedef {{ label: string, detail: string, inputs: number[], kind: string, unsupported?: boolean }} GraphNode
 */

const ZOOM = { least: 0.02, most: 2.5, step: 1.3, readable: 0.45 };
const MARGIN = 16;
const CLICK_PX = 6; // a pointer that moves further drags the graph

/** @type {Record<string, "above" | "below" | "left" | "right">} */
const ARROWS = { ArrowUp: "above", ArrowDown: "below", ArrowLeft: "left", ArrowRight: "right" };

export class GraphView {
  #canvas;
  #onSelect;
  /** @type {GraphNode[]} */
  #nodes = [];
  /** @type {Layout} */
  #layout = layout([]);
  /** @type {number[][]} */
  #readers = [];
  /** @type {number[]}  of each node, from 0 to 1 */
  #heat = [];
  /** @type {number | null} */
  #selected = null;
  #scale = 1;
  #shift = { x: 0, y: 0 };
  /** @type {Map<number, { x: number, y: number }>}  the pointers that are down */
  #pointers = new Map();
  #dragged = 0;
  #frame = 0;

  /** @param {HTMLCanvasElement} canvas @param {(node: number) => void} onSelect */
  constructor(canvas, onSelect) {
    this.#canvas = canvas;
    this.#onSelect = onSelect;
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#release(event));
    canvas.addEventListener("pointercancel", ({ pointerId }) => this.#pointers.delete(pointerId));
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    redrawOnChange(canvas, () => this.#draw());
  }

  /** Show a graph from its top, as large as it is readable. @param {GraphNode[]} nodes */
  show(nodes) {
    this.#nodes = nodes;
    this.#layout = layout(nodes.map(({ inputs }) => inputs));
    this.#readers = nodes.map(() => []);
    nodes.forEach(({ inputs }, node) => inputs.forEach((input) => this.#readers[input].push(node)));
    this.#heat = [];
    this.#selected = null;
    const { clientWidth } = this.#canvas;
    this.#scale = Math.min(1, Math.max(0.6, (clientWidth - 2 * MARGIN) / Math.max(1, this.#layout.width)));
    const [first = 0] = this.#layout.rows[0] ?? [];
    const x = this.#layout.places[first]?.x ?? 0;
    const fits = this.#layout.width * this.#scale <= clientWidth - 2 * MARGIN;
    this.#shift = { x: clientWidth / 2 - this.#scale * (fits ? this.#layout.width / 2 : x), y: MARGIN };
    this.#request();
  }

  /** Change the lines below the operators, and how warm each node is, from 0 to 1. @param {string[]} details @param {number[]} heat */
  update(details, heat) {
    details.forEach((detail, i) => (this.#nodes[i].detail = detail));
    this.#heat = heat;
    this.#request();
  }

  /** Show the whole graph. */
  fit() {
    const { clientWidth, clientHeight } = this.#canvas;
    const { width, height } = this.#layout;
    this.#scale = clamp(Math.min((clientWidth - 2 * MARGIN) / Math.max(1, width), (clientHeight - 2 * MARGIN) / Math.max(1, height)), ZOOM.least, 1);
    this.#shift = { x: (clientWidth - this.#scale * width) / 2, y: (clientHeight - this.#scale * height) / 2 };
    this.#request();
  }

  /** Zoom in, or out if `steps` is negative. @param {number} steps */
  zoom(steps) {
    const { clientWidth, clientHeight } = this.#canvas;
    this.#zoomAt(clientWidth / 2, clientHeight / 2, ZOOM.step ** steps);
  }

  /** Select a node, and bring it into view. @param {number} node */
  select(node) {
    this.#selected = node;
    const { clientWidth, clientHeight } = this.#canvas;
    if (this.#scale < ZOOM.readable) this.#scale = 0.8;
    const { x, y } = this.#layout.places[node];
    const [atX, atY] = [this.#shift.x + this.#scale * x, this.#shift.y + this.#scale * y];
    const [marginX, marginY] = [this.#scale * NODE.width, this.#scale * 2 * NODE.height];
    const { width, height } = this.#layout;
    if (atX < marginX || atX > clientWidth - marginX) this.#shift.x = within(clientWidth / 2 - this.#scale * x, this.#scale * width, clientWidth);
    if (atY < marginY || atY > clientHeight - marginY) this.#shift.y = within(clientHeight / 2 - this.#scale * y, this.#scale * height, clientHeight);
    this.#request();
    this.#onSelect(node);
  }

  /** @param {number} x @param {number} y  on the canvas, what stays in its place @param {number} factor */
  #zoomAt(x, y, factor) {
    const scale = clamp(this.#scale * factor, ZOOM.least, ZOOM.most);
    const change = scale / this.#scale;
    this.#shift = { x: x - change * (x - this.#shift.x), y: y - change * (y - this.#shift.y) };
    this.#scale = scale;
    this.#request();
  }

  /** @param {PointerEvent} event */
  #press(event) {
    this.#canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.#dragged = this.#pointers.size > 1 ? Infinity : 0;
  }

  /** @param {PointerEvent} event */
  #move({ pointerId, offsetX: x, offsetY: y }) {
    const last = this.#pointers.get(pointerId);
    if (!last) return;
    const [other] = [...this.#pointers].filter(([id]) => id !== pointerId).map(([, place]) => place);
    if (other) {
      const distance = (/** @type {{ x: number, y: number }} */ place) => Math.max(1, Math.hypot(place.x - other.x, place.y - other.y));
      this.#zoomAt(other.x, other.y, distance({ x, y }) / distance(last));
    } else {
      this.#dragged += Math.hypot(x - last.x, y - last.y);
      this.#shift = { x: this.#shift.x + x - last.x, y: this.#shift.y + y - last.y };
      this.#request();
    }
    this.#pointers.set(pointerId, { x, y });
  }

  /** @param {PointerEvent} event */
  #release({ pointerId, offsetX, offsetY }) {
    if (!this.#pointers.delete(pointerId) || this.#dragged > CLICK_PX) return;
    const node = this.#nodeAt((offsetX - this.#shift.x) / this.#scale, (offsetY - this.#shift.y) / this.#scale);
    if (node !== null) this.select(node);
  }

  /** @param {number} x @param {number} y */
  #nodeAt(x, y) {
    const found = this.#layout.places.findIndex((place) => Math.abs(place.x - x) <= NODE.width / 2 && Math.abs(place.y - y) <= NODE.height / 2);
    return found < 0 ? null : found;
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    this.#zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY / 300));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const arrow = ARROWS[event.key];
    if (arrow && this.#nodes.length) this.select(this.#neighbour(arrow));
    else if (event.key === "+" || event.key === "=") this.zoom(1);
    else if (event.key === "-") this.zoom(-1);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  /** The next node in a direction, or the selected one if there is none. @param {"above" | "below" | "left" | "right"} direction */
  #neighbour(direction) {
    const node = this.#selected;
    if (node === null) return this.#layout.rows[0][0];
    if (direction === "above") return this.#nodes[node].inputs[0] ?? node;
    if (direction === "below") return this.#readers[node][0] ?? node;
    const row = this.#layout.rows.find((members) => members.includes(node)) ?? [node];
    return row[row.indexOf(node) + (direction === "left" ? -1 : 1)] ?? node;
  }

  #request() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    if (!this.#nodes.length) return;
    const { width, height, context, color } = clearCanvas(this.#canvas);
    context.translate(this.#shift.x, this.#shift.y);
    context.scale(this.#scale, this.#scale);
    const top = -this.#shift.y / this.#scale - NODE.height;
    const bottom = top + height / this.#scale + 2 * NODE.height;
    const left = -this.#shift.x / this.#scale - NODE.width;
    const right = left + width / this.#scale + 2 * NODE.width;
    this.#drawEdges(context, color, top, bottom);
    this.#layout.places.forEach(({ x, y }, node) => {
      if (y > top && y < bottom && x > left && x < right) this.#drawNode(context, color, node);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {(name: string) => string} color @param {number} top @param {number} bottom */
  #drawEdges(context, color, top, bottom) {
    const { places, edges } = this.#layout;
    for (const chosen of [false, true]) {
      context.strokeStyle = color(chosen ? "--accent" : "--edge");
      context.lineWidth = (chosen ? 2 : 1) / Math.min(1, this.#scale); // as thin at any zoom
      context.beginPath();
      for (const { from, to, points } of edges) {
        if ((from === this.#selected || to === this.#selected) !== chosen) continue;
        const [start, end] = [places[from], places[to]];
        if (end.y < top || start.y > bottom) continue;
        let last = { x: start.x, y: start.y + NODE.height / 2 };
        context.moveTo(last.x, last.y);
        for (const next of [...points, { x: end.x, y: end.y - NODE.height / 2 }]) {
          const middle = (last.y + next.y) / 2;
          context.bezierCurveTo(last.x, middle, next.x, middle, next.x, next.y);
          last = next;
        }
      }
      context.stroke();
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {(name: string) => string} color @param {number} node */
  #drawNode(context, color, node) {
    const { label, detail, kind, unsupported } = this.#nodes[node];
    const { x, y } = this.#layout.places[node];
    const isSelected = node === this.#selected;
    const heat = this.#heat[node] ?? 0;
    context.beginPath();
    context.roundRect(x - NODE.width / 2, y - NODE.height / 2, NODE.width, NODE.height, kind === "operator" ? 10 : NODE.height / 2);
    context.fillStyle = unsupported ? color("--bad-ground") : `color-mix(in srgb, ${color("--accent")} ${(45 * heat).toFixed(1)}%, ${color(kind === "operator" ? "--card" : "--sunken")})`;
    context.fill();
    context.strokeStyle = color(isSelected ? "--accent" : unsupported ? "--bad" : "--edge");
    context.lineWidth = isSelected ? 3 : 1;
    context.stroke();
    if (this.#scale < 0.3) return; // too small to read
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = color(unsupported ? "--bad" : "--ink");
    context.font = `600 14px ${color("--sans")}`;
    context.fillText(cut(context, label), x, detail ? y - 8 : y);
    context.fillStyle = color(heat > 0.5 ? "--ink" : "--muted");
    context.font = `11px ${color("--mono")}`;
    context.fillText(cut(context, detail), x, y + 11);
  }
}

/** The beginning of a text, as much as a node has room for. @param {CanvasRenderingContext2D} context @param {string} text */
function cut(context, text) {
  const room = NODE.width - 14;
  if (context.measureText(text).width <= room) return text;
  let end = text.length;
  while (end && context.measureText(`${text.slice(0, end)}…`).width > room) end--;
  return `${text.slice(0, end)}…`;
}

/** A shift that leaves no more room beside the graph than there must be. @param {number} shift @param {number} length  of the graph @param {number} room */
function within(shift, length, room) {
  return length + 2 * MARGIN < room ? clamp(shift, MARGIN, room - MARGIN - length) : clamp(shift, room - MARGIN - length, MARGIN);
}

/** @param {number} value @param {number} least @param {number} most */
function clamp(value, least, most) {
  return Math.min(most, Math.max(least, value));
}
