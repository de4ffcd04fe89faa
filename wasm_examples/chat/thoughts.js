/** The thoughts of a model that thinks before it answers: `<think>…</think>`. Some templates write the first tag themselves. */

const START = "<think>";
const END = "</think>";

/**
 * Divide an answer.
 * @param {string} text
 * @returns {{ thought: string | null, answer: string, isThinking: boolean }}  `thought` is null if there is none
 */
export function divide(text) {
  const end = text.indexOf(END);
  const begins = text.trimStart().startsWith(START);
  if (end < 0 && !begins) return { thought: null, answer: text, isThinking: false };
  const thought = (end < 0 ? text : text.slice(0, end)).trimStart().replace(START, "").trim();
  const answer = end < 0 ? "" : text.slice(end + END.length).trimStart();
  return { thought: thought || (end < 0 ? "" : null), answer, isThinking: end < 0 };
}
