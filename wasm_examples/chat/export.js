/** A conversation as a file. */

import { save } from "../../web/page.js";

/** @import { Conversation } from "./conversation.js" */

/** Save the conversation with all its branches. @param {Conversation} conversation */
export function saveJson(conversation) {
  const { saved } = conversation;
  const chosen = conversation.path().map(({ role, content }) => ({ role, content }));
  const messages = saved.system ? [{ role: "system", content: saved.system }, ...chosen] : chosen;
  const content = { title: saved.title, created: new Date(saved.created).toISOString(), messages, branches: saved };
  save(`${fileName(saved.title)}.json`, `${JSON.stringify(content, null, 2)}\n`);
}

/** Save the messages that are shown. @param {Conversation} conversation */
export function saveMarkdown(conversation) {
  const { title, system } = conversation.saved;
  const parts = conversation.path().map(({ role, model, content }) => `## ${role === "user" ? "You" : (model ?? "Model")}\n\n${content.trim()}`);
  if (system) parts.unshift(`## System\n\n${system}`);
  save(`${fileName(title)}.md`, `# ${title}\n\n${parts.join("\n\n")}\n`);
}

/** @param {string} title */
function fileName(title) {
  return title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").toLowerCase() || "conversation";
}
