/** The text of a transcription: the final segments, which play when clicked, and the draft of the current one. */

import { doubtLabel, explainDoubts } from "./doubts.js";
import { clock } from "./spectrogram.js";

/** @import { Doubt, Measures } from "./doubts.js" */
/** @typedef {{ id: number, start: number, end: number, text: string, words: [string, number, number][], doubts: Doubt[] } & Measures} Segment */
/** @typedef {{ transcript: HTMLElement, segments: HTMLElement, player: HTMLAudioElement, results: HTMLElement, unsure: HTMLElement, unsureText: HTMLElement, unsureWhy: HTMLElement }} Elements */

export class Transcript {
  #text;
  #list;
  #player;
  #results;
  #onPlay;
  #draft = document.createElement("span");
  /** @type {{ segment: Segment, item: HTMLElement, span: HTMLElement }[]} */
  #rows = [];
  /** @type {number | null}  the end of the segment that plays, in seconds */
  #playUntil = null;

  /** The limits beyond which a segment is doubtful. @type {Measures} */
  limits = { logprob: 0, ratio: 0, silence: 0 };
  #unsure;
  #unsureText;
  #unsureWhy;
  /** @type {Set<Doubt>} */
  #doubts = new Set();

  /** @param {Elements} elements @param {(segment: Segment) => void} onPlay */
  constructor({ transcript, segments, player, results, unsure, unsureText, unsureWhy }, onPlay) {
    this.#text = transcript;
    this.#list = segments;
    this.#player = player;
    this.#results = results;
    this.#unsure = unsure;
    this.#unsureText = unsureText;
    this.#unsureWhy = unsureWhy;
    this.#onPlay = onPlay;
    this.#draft.className = "draft";
    player.addEventListener("timeupdate", () => this.#followPlayer());
    player.addEventListener("pause", () => (this.#playUntil = null));
    this.clear();
  }

  clear() {
    this.#rows = [];
    this.#playUntil = null;
    this.#draft.textContent = "";
    this.#text.replaceChildren();
    this.#list.replaceChildren();
    this.#results.hidden = true;
    this.#unsure.hidden = true;
    this.#doubts.clear();
  }

  /** The text without the draft. */
  get text() {
    return this.#rows.map(({ segment }) => segment.text.trim()).join(" ");
  }

  /** Show the draft of the current segment. @param {string} text */
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
    this.#results.hidden = false;
    const [item, button, time, text] = ["li", "button", "time", "span"].map((name) => document.createElement(name));
    /** @type {HTMLButtonElement} */ (button).type = "button";
    button.dataset.testid = "segment";
    time.textContent = `${seconds(segment.start)} – ${seconds(segment.end)}`;
    text.dir = "auto";
    text.append(...(segment.words.length ? segment.words.map(wordSpan) : [segment.text.trim()]));
    button.append(time, text);
    if (segment.doubts.length) {
      for (const label of [span, text]) label.classList.add("unsure");
      const flag = doubtLabel(segment.doubts, segment);
      span.title = `${flag.textContent}. ${flag.title}`;
      button.append(flag);
      this.#explain(segment.doubts);
    }
    button.onclick = () => this.#play(segment);
    item.append(button);
    this.#list.append(item);
    this.#rows.push({ segment, item, span });
  }

  /** Say what the model is unsure about, and why. @param {Doubt[]} doubts */
  #explain(doubts) {
    for (const doubt of doubts) this.#doubts.add(doubt);
    this.#unsure.hidden = false;
    this.#unsureText.textContent = "The model is unsure about the underlined text.";
    this.#unsureWhy.textContent = explainDoubts(this.#doubts, this.limits);
  }

  /** @param {Segment} segment */
  #play(segment) {
    this.#onPlay(segment);
    this.#player.currentTime = segment.start;
    this.#player.play().then(
      () => (this.#playUntil = segment.end),
      () => {}, // another click interrupted it, or the browser cannot play what it could decode
    );
  }

  #followPlayer() {
    const time = this.#player.currentTime;
    if (this.#playUntil !== null && time >= this.#playUntil) this.#player.pause();
    for (const { segment, item, span } of this.#rows) {
      const isPlaying = !this.#player.paused && time >= segment.start && time < segment.end;
      item.toggleAttribute("aria-current", isPlaying);
      span.classList.toggle("playing", isPlaying);
    }
  }
}

/** A word, with its time as the tooltip. @param {[string, number, number]} word */
function wordSpan([word, start, end]) {
  const span = document.createElement("span");
  span.textContent = word;
  span.title = `${seconds(start)} – ${seconds(end)}`;
  return span;
}

/** Format a time as 1:02.3. @param {number} time */
function seconds(time) {
  const tenths = Math.round(10 * time);
  return `${clock(tenths / 10)}.${tenths % 10}`;
}
