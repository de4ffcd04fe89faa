/** The field for the seed of what a model writes. An empty one stands for a random seed. */

import { readNumber } from "./page.js";

/** @import { Field } from "./share.js" */

const MOST_RANDOM = 2 ** 31;
const SEED = /^\d{0,16}$/; // what readNumber takes has at most 16 digits

/** The seed in a field, or a random one. @param {HTMLInputElement} input @throws {Problem} it is not a whole number */
export function readSeed(input) {
  const isEmpty = input.value === "" && !input.validity.badInput; // text that is no number has no value either
  return isEmpty ? Math.floor(Math.random() * MOST_RANDOM) : readNumber(input, { whole: true });
}

/** The field as links have it. @param {HTMLInputElement} input @param {() => string} [used]  the seed for a link from an empty field @returns {Field} */
export function sharedSeed(input, used = () => "") {
  return {
    get value() {
      return input.value || used();
    },
    set value(text) {
      input.value = text;
    },
    accepts: (text) => SEED.test(text),
  };
}
