/** The lists of the page: what was found, the user's pictures, and the labels of a picture. */

import { page } from "./elements.js";

/** @import { Picture } from "./pictures.js" */
/** @typedef {{ picture: string | number, score: number }} Found  an emoji, or the number of a picture of the user */

const COLOURED = "\ufe0f"; // after a character that is also a black-and-white symbol

/** @param {Found[]} found @param {Map<number, Picture>} pictures */
export function showResults(found, pictures) {
  page.results.replaceChildren(
    ...found.map(({ picture, score }) => {
      const item = document.createElement("li");
      const own = typeof picture === "number" ? pictures.get(picture) : undefined;
      const shown = own ? thumbnail(own) : text("span", "emoji", picture + COLOURED);
      item.append(shown, text("span", "score", score.toFixed(2)));
      item.dataset.testid = "result";
      item.classList.toggle("own", own !== undefined);
      return item;
    }),
  );
}

/** @param {Picture[]} pictures @param {{ name(picture: Picture): void, remove(picture: Picture): void }} on */
export function showPictures(pictures, on) {
  page.pictures.replaceChildren(
    ...pictures.map((picture) => {
      const item = document.createElement("li");
      const name = document.createElement("button");
      name.type = "button";
      name.title = `Name ${picture.name}`;
      name.dataset.testid = "picture";
      name.append(thumbnail(picture));
      name.onclick = () => on.name(picture);
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "quiet remove";
      remove.textContent = "Remove";
      remove.setAttribute("aria-label", `Remove ${picture.name}`);
      remove.onclick = () => on.remove(picture);
      item.append(name, remove);
      return item;
    }),
  );
}

/** @param {string[]} labels @param {number[]} shares */
export function showNames(labels, shares) {
  const order = labels.map((_, i) => i).sort((a, b) => shares[b] - shares[a]);
  page.names.replaceChildren(
    ...order.map((i) => {
      const item = document.createElement("li");
      const meter = Object.assign(document.createElement("meter"), { min: 0, max: 1, value: shares[i] });
      meter.setAttribute("aria-hidden", "true");
      const label = text("span", "label", labels[i]);
      label.dir = "auto";
      item.append(label, meter, text("span", "score", `${Math.round(100 * shares[i])} %`));
      item.dataset.testid = "name";
      return item;
    }),
  );
}

/** @param {Picture} picture */
function thumbnail({ url, name }) {
  return Object.assign(document.createElement("img"), { src: url, alt: name });
}

/** @param {string} tag @param {string} kind @param {string} content */
function text(tag, kind, content) {
  return Object.assign(document.createElement(tag), { className: kind, textContent: content });
}
