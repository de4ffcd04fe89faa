/** What the model is unsure about, in words. app.py finds it, by the thresholds of OpenAI's whisper. */

/** @typedef {"unlikely" | "repetitive" | "silent"} Doubt */
/**
 * The numbers of a segment, and the limits beyond which it is doubtful.
 * @typedef {{ logprob: number, ratio: number, silence: number }} Measures
 */

/** @type {Record<Doubt, { label: string, explain: (it: Measures) => string }>} */
const DOUBTS = {
  unlikely: { label: "unlikely words", explain: ({ logprob }) => `the mean log-probability of its tokens is below ${round(logprob)}` },
  repetitive: { label: "repeats itself", explain: ({ ratio }) => `its text compresses to less than 1/${round(ratio)}` },
  silent: { label: "maybe no speech", explain: ({ silence }) => `the probability that nobody speaks is above ${round(silence)}` },
};

/** A label that says why a segment is doubtful, with its numbers as the tooltip. @param {Doubt[]} doubts @param {Measures} measures */
export function doubtLabel(doubts, { logprob, ratio, silence }) {
  const label = document.createElement("em");
  label.className = "flag";
  label.textContent = `unsure: ${doubts.map((doubt) => DOUBTS[doubt].label).join(", ")}`;
  label.title = `Mean log-probability ${logprob.toFixed(2)}, compression ratio ${ratio.toFixed(1)}, probability of no speech ${silence.toFixed(2)}`;
  return label;
}

/** A sentence for each kind of doubt. @param {Iterable<Doubt>} doubts @param {Measures} limits */
export function explainDoubts(doubts, limits) {
  return [...doubts].map((doubt) => `“${DOUBTS[doubt].label}”: ${DOUBTS[doubt].explain(limits)}.`).join(" ");
}

/** @param {number} value */
function round(value) {
  return +value.toFixed(2);
}
