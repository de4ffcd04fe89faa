/** A conversation as a file. */

import { save } from "../../web/page/page.js";

/** @import { Conversation, Message } from "./conversation.js" */
/** @import { Turn } from "./turns.js" */

const NO_RESULT = "There is no result.";

/** Save the conversation with all its branches. @param {Conversation} conversation */
export function saveJson(conversation) {
  const { saved } = conversation;
  const chosen = conversation.path().flatMap(asMessages);
  const messages = saved.system ? [{ role: "system", content: saved.system }, ...chosen] : chosen;
  const content = { title: saved.title, created: new Date(saved.created).toISOString(), messages, branches: saved };
  save(`${fileName(saved.title)}.json`, `${JSON.stringify(content, null, 2)}\n`);
}

/** Save the messages that are shown. @param {Conversation} conversation */
export function saveMarkdown(conversation) {
  const { title, system } = conversation.saved;
  const parts = conversation.path().map((message) => `## ${message.role === "user" ? "You" : (message.model ?? "Model")}\n\n${asMarkdown(message)}`);
  if (system) parts.unshift(`## System\n\n${system}`);
  save(`${fileName(title)}.md`, `# ${title}\n\n${parts.join("\n\n")}\n`);
}

/** A message as OpenAI's API has it, after its calls of tools and their results. @param {Turn & { id?: string }} message */
export function asMessages({ id = "", role, content, steps = [] }) {
  const called = steps.flatMap((step, i) => {
    const ids = step.calls.map((_, j) => `call_${id}_${i}_${j}`);
    const calls = step.calls.map((call, j) => ({ id: ids[j], type: "function", function: { name: call.name, arguments: call.arguments } }));
    const results = step.calls.map(({ result }, j) => ({ role: "tool", tool_call_id: ids[j], content: result ?? NO_RESULT }));
    return [{ role, content: step.content, tool_calls: calls }, ...results];
  });
  return [...called, { role, content }];
}

/** @param {Message} message */
function asMarkdown({ content, steps = [] }) {
  const called = steps.flatMap((step) => [step.content.trim(), ...step.calls.map((call) => `    ${call.name} ${call.arguments}\n    ${call.result ?? NO_RESULT}`)]);
  return [...called, content.trim()].filter(Boolean).join("\n\n");
}

/** @param {string} title */
function fileName(title) {
  return title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").toLowerCase() || "conversation";
}
