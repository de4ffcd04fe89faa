/** The outputs of a model: as classes, a picture, boxes over the picture that went in, or a table. */

import { choice } from "./inputs.js";

/**
 * What Python says of an output: `views` are those that fit, the likeliest first, by name.
 * @typedef {{ label: string, share: number }[]} Classes
 * @typedef {{ width: number, height: number, pixels: Uint8Array }} Picture  RGBA
 * @typedef {{ left: number, top: number, right: number, bottom: number, label: string, score: number }[]} Boxes  in shares of the picture that went in
 * @typedef {{ header: string[], rows: string[][], note: string }} Table
 * @typedef {{ name: string, dtype: string, shape: string, summary: string, views: { classes?: Classes, picture?: Picture, boxes?: Boxes, table?: Table } }} Output
 */

const VIEWS = { classes: "Classes", boxes: "Boxes", picture: "Picture", table: "Table" };

/** Show the outputs of a run. @param {HTMLElement} place @param {Output[]} outputs @param {HTMLCanvasElement | null} picture  that went in */
export function showOutputs(place, outputs, picture) {
  place.replaceChildren(...outputs.map((output) => outputElement(output, picture)));
}

/** @param {Output} output @param {HTMLCanvasElement | null} picture */
function outputElement({ name, dtype, shape, summary, views }, picture) {
  const section = document.createElement("section");
  section.className = "output";
  section.dataset.testid = `output-${name}`;
  const heading = Object.assign(document.createElement("h3"), { textContent: name });
  heading.append(" ", Object.assign(document.createElement("span"), { className: "hint mono", textContent: `${dtype} ${shape}` }));
  const body = document.createElement("div");
  /** @type {Record<string, () => HTMLElement>} */
  const makers = {
    classes: () => classList(views.classes ?? []),
    boxes: () => boxPicture(views.boxes ?? [], picture),
    picture: () => canvasOf(/** @type {Picture} */ (views.picture)),
    table: () => tableOf(/** @type {Table} */ (views.table)),
  };
  const names = Object.keys(views).filter((view) => view in makers);
  const show = (/** @type {string} */ view) => body.replaceChildren(makers[view]());
  section.append(heading);
  if (names.length > 1) {
    const options = Object.fromEntries(names.map((view) => [view, VIEWS[/** @type {keyof typeof VIEWS} */ (view)]]));
    section.append(choice("Show as", `view-${name}`, options, show).label);
  }
  section.append(body, Object.assign(document.createElement("p"), { className: "hint mono", textContent: summary }));
  if (names.length) show(names[0]);
  return section;
}

/** @param {Classes} classes */
function classList(classes) {
  const list = document.createElement("ol");
  list.className = "classes";
  list.dataset.testid = "classes";
  list.append(
    ...classes.map(({ label, share }) => {
      const item = document.createElement("li");
      const meter = Object.assign(document.createElement("meter"), { min: 0, max: 1, value: share });
      meter.setAttribute("aria-hidden", "true");
      const number = Object.assign(document.createElement("span"), { className: "mono", textContent: `${(100 * share).toFixed(1)} %` });
      item.append(Object.assign(document.createElement("span"), { textContent: label }), meter, number);
      return item;
    }),
  );
  return list;
}

/** @param {Picture} picture */
export function canvasOf({ width, height, pixels }) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height, className: "picture" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "The values as a picture");
  canvas.dataset.testid = "values-picture";
  const data = new ImageData(new Uint8ClampedArray(pixels), width, height);
  canvas.getContext("2d")?.putImageData(data, 0, 0);
  return canvas;
}

/** @param {Boxes} boxes @param {HTMLCanvasElement | null} picture */
function boxPicture(boxes, picture) {
  const figure = document.createElement("figure");
  figure.dataset.testid = "boxes";
  const [width, height] = [picture?.width ?? 320, picture?.height ?? 320];
  const scale = Math.max(1, 480 / Math.max(width, height));
  const canvas = Object.assign(document.createElement("canvas"), { width: width * scale, height: height * scale, className: "picture" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "The boxes over the picture; the list below has the same");
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  if (picture) context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  context.lineWidth = 3;
  context.font = "600 15px system-ui, sans-serif";
  context.textBaseline = "bottom";
  for (const { left, top, right, bottom, label, score } of boxes) {
    const [x, y] = [left * canvas.width, top * canvas.height];
    context.strokeStyle = context.fillStyle = "#f0a040";
    context.strokeRect(x, y, (right - left) * canvas.width, (bottom - top) * canvas.height);
    const text = `${label} ${score.toFixed(2)}`;
    const at = Math.max(20, y);
    context.fillRect(x - 1, at - 20, context.measureText(text).width + 10, 20);
    context.fillStyle = "#1d1206";
    context.fillText(text, x + 4, at - 1);
  }
  const list = document.createElement("ol");
  list.append(...boxes.map(({ label, score }) => Object.assign(document.createElement("li"), { textContent: `${label}, ${score.toFixed(3)}` })));
  figure.append(canvas, list);
  return figure;
}

/** @param {Table} table */
export function tableOf({ header, rows, note }) {
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Values");
  const table = document.createElement("table");
  table.dataset.testid = "table";
  const line = (/** @type {string[]} */ texts, /** @type {"th" | "td"} */ kind) => {
    const row = document.createElement("tr");
    row.append(...texts.map((text) => Object.assign(document.createElement(kind), { textContent: text })));
    return row;
  };
  if (header.length) table.append(line(header, "th"));
  table.append(...rows.map((texts) => line(texts, "td")));
  scroll.append(table);
  if (note) scroll.append(Object.assign(document.createElement("p"), { className: "hint", textContent: note }));
  return scroll;
}
