/** The text as it is decided: what is sure, what the model is writing, and segments that play when they are clicked. */

import { clock } from "./spectrogram.js";

/** @typedef {{ id: number, start: number, end: number, text: string, words: [string, number, number][], logprob: number, unsure: boolean }} Segment  `logprob` is the mean of its tokens */

export class Transcript {
  #text;
  #list;
  #player;
  #onPlay;
  #draft = document.createElement("span");
  /** @type {{ segment: Segment, item: HTMLElement, span: HTMLElement }[]} */
  #rows = [];
  /** @type {number | null}  seconds, where what was clicked ends */
  #until = null;

  /**
   * @param {HTMLElement} text
   * @param {HTMLElement} list
   * @param {HTMLAudioElement} player
   * @param {(segment: Segment) => void} onPlay
   */
  constructor(text, list, player, onPlay) {
    this.#text = text;
    this.#list = list;
    this.#player = player;
    this.#onPlay = onPlay;
    this.#draft.className = "draft";
    player.addEventListener("timeupdate", () => this.#follow());
    player.addEventListener("pause", () => (this.#until = null));
    this.clear();
  }

  clear() {
    this.#rows = [];
    this.#until = null;
    this.#draft.textContent = "";
    this.#text.replaceChildren();
    this.#list.replaceChildren();
  }

  /** The text without what is not decided yet. */
  get text() {
    return this.#rows.map(({ segment }) => segment.text.trim()).join(" ");
  }

  /** What the model writes now. @param {string} text */
  draft(text) {
    this.#draft.textContent = text;
    if (text && !this.#draft.isConnected) this.#text.append(this.#draft);
    if (!text) this.#draft.remove();
  }

  /** @param {Segment} segment */
  add(segment) {
    const span = document.createElement("span");
    span.textContent = `${segment.text.trim()} `;
    this.draft("");
    this.#text.append(span);
    const [item, button, time, text] = ["li", "button", "time", "span"].map((name) => document.createElement(name));
    /** @type {HTMLButtonElement} */ (button).type = "button";
    button.dataset.testid = "segment";
    time.textContent = `${seconds(segment.start)} – ${seconds(segment.end)}`;
    for (const place of [span, text]) {
      place.classList.toggle("unsure", segment.unsure);
      if (segment.unsure) place.title = `Unsure: the mean log-probability is ${segment.logprob.toFixed(2)}`;
    }
    text.append(...(segment.words.length ? segment.words.map(timed) : [segment.text.trim()]));
    button.append(time, text);
    button.onclick = () => this.#play(segment);
    item.append(button);
    this.#list.append(item);
    this.#rows.push({ segment, item, span });
  }

  /** @param {Segment} segment */
  #play(segment) {
    this.#onPlay(segment);
    this.#player.currentTime = segment.start;
    this.#player.play().then(
      () => (this.#until = segment.end),
      () => {}, // another click was quicker, or the browser cannot play what it could decode
    );
  }

  #follow() {
    const at = this.#player.currentTime;
    if (this.#until !== null && at >= this.#until) this.#player.pause();
    for (const { segment, item, span } of this.#rows) {
      const heard = !this.#player.paused && at >= segment.start && at < segment.end;
      item.toggleAttribute("aria-current", heard);
      span.classList.toggle("heard", heard);
    }
  }
}

/** @param {[string, number, number]} word */
function timed([word, start, end]) {
  const span = document.createElement("span");
  span.textContent = word;
  span.title = `${seconds(start)} – ${seconds(end)}`;
  return span;
}

/** As 1:02.3. @param {number} at */
function seconds(at) {
  const tenths = Math.round(10 * at);
  return `${clock(tenths / 10)}.${tenths % 10}`;
}
