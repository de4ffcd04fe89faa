/** What a model reads of a conversation, and what it forgets when its context is full. */

import { divide } from "./thoughts.js";

/** @import { Message, Role, Step } from "./conversation.js" */
/** @typedef {{ role: Role | "system", content: string, steps?: Step[] }} Turn */

const SHARE = 0.5; // of the context, for what the model still reads: the next turns have room, too

/**
 * Messages as the model reads them: without thoughts and without those that it has forgotten, and in turns, because many chat
 * templates refuse two messages of one side.
 * @param {Message[]} messages @param {string} system  the system prompt, empty for none @returns {Turn[]}
 */
export function asRead(messages, system) {
  /** @type {Turn[]} */
  const turns = [];
  for (const { role, content, steps = [], isForgotten } of messages) {
    if (isForgotten) continue;
    const text = role === "user" ? content : divide(content).answer;
    const last = turns.at(-1);
    if (last?.role === role) last.content += `\n\n${text}`;
    else if (steps.length) turns.push({ role, content: text, steps: steps.map((step) => ({ ...step, content: divide(step.content).answer })) });
    else turns.push({ role, content: text });
  }
  return system ? [{ role: "system", content: system }, ...turns] : turns;
}

/** The places in a conversation from which the model can go on to read: a later message of the user. @param {Message[]} messages */
export function laterStarts(messages) {
  const first = messages.findIndex(({ isForgotten }) => !isForgotten);
  return [...messages.keys()].filter((at) => at > first && messages[at].role === "user");
}

/**
 * Forget the oldest messages of a conversation: as few as leave half of the context free, at most all but the last message of the user.
 * @param {Message[]} messages  which the context has no room for, and which have `laterStarts`
 * @param {number} context  in tokens
 * @param {(rest: Message[]) => Promise<number>} count  the tokens of the other messages
 */
export async function forgetOldest(messages, context, count) {
  const starts = laterStarts(messages);
  let [least, most] = [0, starts.length - 1];
  while (least < most) {
    const middle = (least + most) >> 1;
    if ((await count(messages.slice(starts[middle]))) <= SHARE * context) most = middle;
    else least = middle + 1;
  }
  for (const message of messages.slice(0, starts[least])) message.isForgotten = true;
}
