/**
 * The pictures of the cards. Each moves for less than five seconds: when its card comes on the screen, and when the card is
 * pointed at or focused. Otherwise, and if the user wants reduced motion, it shows its last state.
 */

import { redrawOnChange } from "../page/canvas.js";
import { TinyTraining } from "./tiny-training.js";

const REDUCED = matchMedia("(prefers-reduced-motion: reduce)");
const WORD_S = 0.09;

/** Move the picture of a card when it is seen. @param {HTMLElement} card */
export function bringToLife(card) {
  for (const text of /** @type {NodeListOf<HTMLElement>} */ (card.querySelectorAll("[data-words]"))) splitWords(text);
  const canvas = card.querySelector("canvas");
  const training = canvas && trainOn(canvas);
  const play = () => {
    if (REDUCED.matches) return;
    card.classList.remove("live");
    void card.offsetWidth; // so that the animations begin again
    card.classList.add("live");
    training?.play();
  };
  const stop = () => {
    card.classList.remove("live");
    training?.finish();
  };
  new IntersectionObserver(([{ isIntersecting }]) => (isIntersecting ? play() : stop()), { threshold: 0.6 }).observe(card);
  card.addEventListener("pointerenter", play);
  card.addEventListener("focusin", play);
  REDUCED.addEventListener("change", stop);
}

/** Let the words of a text appear one after the other. @param {HTMLElement} text */
function splitWords(text) {
  const words = (text.textContent ?? "").trim().split(/\s+/);
  text.replaceChildren(
    ...words.flatMap((word, i) => {
      const span = Object.assign(document.createElement("span"), { textContent: word });
      span.style.animationDelay = `${i * WORD_S}s`;
      return [span, " "];
    }),
  );
}

/** @param {HTMLCanvasElement} canvas */
function trainOn(canvas) {
  let training = new TinyTraining();
  let frame = 0;
  const draw = () => training.draw(canvas);
  const step = () => {
    training.advance();
    draw();
    frame = training.isDone ? 0 : requestAnimationFrame(step);
  };
  const finish = () => {
    cancelAnimationFrame(frame);
    while (!training.isDone) training.advance();
    draw();
  };
  finish();
  redrawOnChange(canvas, draw);
  return {
    play() {
      cancelAnimationFrame(frame);
      training = new TinyTraining();
      frame = requestAnimationFrame(step);
    },
    finish,
  };
}
