/** A server's models answer, by OpenAI's API: what `ModelPage` is for a model in the tab. */

import { LatestTask } from "../../web/page/latest-task.js";
import { Problem } from "../../web/worker/protocol.js";
import { asMessages } from "../chat/export.js";

/** @import { Remedy } from "../../web/page/page.js" */
/** @import { ChatView, Model } from "../chat/chat.js" */
/** @import { Called } from "../chat/conversation.js" */
/** @import { Tool } from "../chat/settings.js" */
/** @import { Turn } from "../chat/turns.js" */
/**
 * An entry of /v1/models. Those that write texts have a context, and say whether they have a chat template.
 * @typedef {{ id: string, max_model_len?: number, capabilities?: string[] }} Card
 * The fields of a request, as the settings of the page have them.
 * @typedef {{ messages: Turn[], temperature: number, top_p: number, seed: number, max_tokens: number, schema: string | null, thinks: boolean, functions?: Tool[] }} Options
 * @typedef {{ prompt_tokens: number, completion_tokens: number, prompt_tokens_details?: { cached_tokens: number } }} Usage
 */

const TOO_LONG = "context_length_exceeded"; // a code of errors
const TOKENS_PER_CHARACTER = 1 / 3; // until an answer tells how many a conversation has

export class ServerPage {
  /** @type {Model | null} */
  model = null;
  /** @type {LatestTask<void>} */
  #working = new LatestTask();
  #view;
  #headers;
  #rate = TOKENS_PER_CHARACTER;

  /** @param {ChatView & { stop: HTMLButtonElement }} view @param {() => Record<string, string>} headers  those of every request */
  constructor(view, headers) {
    this.#view = view;
    this.#headers = headers;
    this.runtime = {
      generate: (/** @type {any} */ options, /** @type {{ signal: AbortSignal }} */ { signal }) => this.#generate(options, signal),
      call: async (/** @type {string} */ _, /** @type {any} */ { messages }) => lengthOf(messages) * this.#rate, // the tokens, nearly
    };
  }

  /** The models that write texts. @returns {Promise<Model[]>} */
  async models() {
    /** @type {{ data: Card[] }} */
    const { data } = await (await this.#fetch("v1/models")).json();
    return data.filter(({ capabilities = [] }) => capabilities.includes("completion")).map(describe);
  }

  get isWorking() {
    return this.#working.running;
  }

  /**
   * Run work, in place of the work that is running.
   * @param {(signal: AbortSignal) => Promise<void>} task @param {{ failed: string, remedy?: (error: unknown) => Remedy | Remedy[] | undefined }} texts
   */
  async work(task, { failed, remedy }) {
    const { problems, status, stop } = this.#view;
    problems.hide();
    const ended = this.#working.run(async (signal) => {
      try {
        await task(signal);
      } catch (error) {
        if (signal.aborted) return;
        status.say(failed);
        problems.show(error, ...[remedy?.(error) ?? []].flat());
      }
    });
    stop.disabled = false;
    await ended;
    stop.disabled = !this.#working.busy;
  }

  /** Whether there is a model; the page says why not. */
  async ready() {
    if (!this.model) this.#view.status.say("There is no model to answer.");
    return this.model !== null;
  }

  stopWork() {
    return this.#working.stop();
  }

  async stop() {
    await this.stopWork();
    if (!this.#working.busy) this.#view.status.say("Stopped.");
  }

  /**
   * Yield the pieces of an answer, with the counts that the page shows.
   * @param {Options} options @param {AbortSignal} signal @returns {AsyncGenerator<{ text: string, stats: Record<string, any> }>}
   */
  async *#generate(options, signal) {
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    const model = /** @type {Model} */ (this.model);
    const [path, body] = requestOf(model, options);
    const answer = await this.#fetch(path, { method: "POST", body: JSON.stringify(body), signal });
    let promptSeconds = 0;
    const last = options.messages.at(-1);
    const before = (last?.role === "assistant" && last.steps) || []; // with the results that the answer goes on from
    /** @type {Called[]} */
    const calls = [];
    let [said, counted] = ["", {}];
    for await (const part of events(answer)) {
      if (part.error) throw problemOf(part.error);
      /** @type {Usage | undefined} */
      const usage = part.usage ?? undefined;
      const { delta, text = delta?.content ?? "" } = part.choices?.[0] ?? {};
      addCalls(calls, delta?.tool_calls ?? []);
      const { prompt_tokens = 0, completion_tokens: tokens = 0 } = usage ?? {};
      if (prompt_tokens) this.#rate = prompt_tokens / Math.max(1, lengthOf(options.messages));
      if (!tokens) continue;
      promptSeconds ||= seconds();
      const rest = seconds() - promptSeconds;
      const counts = { prompt_tokens, reused: usage?.prompt_tokens_details?.cached_tokens ?? 0, read: prompt_tokens, prompt_s: promptSeconds };
      counted = { ...counts, tokens, tokens_per_s: rest && (tokens - 1) / rest, limit: options.max_tokens };
      said += text ?? "";
      yield { text: text ?? "", stats: { ...counted, steps: before } };
    }
    if (calls.length) yield { text: "", stats: { ...counted, steps: [...before, { content: said, calls }] } };
  }

  /** @param {string} path @param {RequestInit} [init] @throws {Problem} the server does not answer, or refuses the request */
  async #fetch(path, init = {}) {
    let answer;
    try {
      answer = await fetch(path, { ...init, headers: { "Content-Type": "application/json", ...this.#headers() } });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Problem("NoServer", "The server does not answer.", "See whether tallow serve still runs, and try again.");
    }
    if (answer.ok) return answer;
    const { error } = await answer.json().catch(() => ({}));
    throw problemOf(error ?? { message: `the server answered ${answer.status} ${answer.statusText}`.trim() });
  }
}

/** @param {Card} card @returns {Model} */
function describe({ id, max_model_len: context = Infinity, capabilities = [] }) {
  const chats = capabilities.includes("chat");
  const tools = capabilities.includes("tools");
  const description = `${id}: context of ${context.toLocaleString("en")} tokens, on this page's server`;
  const thinks = capabilities.includes("thinking");
  return { name: id, description, bytes: 0, context, cacheBytes: 0, chats, thinks, constrains: true, tools };
}

/**
 * The path and the body of a request. A model without a chat template continues the conversation as plain text, as in the tab.
 * @param {Model} model @param {Options} options @returns {[string, Record<string, unknown>]}
 */
function requestOf({ name, chats, thinks: canThink }, { messages, temperature, top_p, seed, max_tokens, schema, thinks, functions = [] }) {
  const format = schema?.trim() ? { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(schema) } } : { type: "json_object" };
  const body = {
    model: name,
    ...{ temperature, top_p, seed, max_tokens },
    ...(schema === null ? {} : { response_format: format }),
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
  if (!chats) return ["v1/completions", { ...body, prompt: messages.map(({ content }) => content).join("\n\n") }];
  const said = messages.flatMap((turn, i) => asMessages({ ...turn, id: String(i) }));
  if (said.at(-1)?.role === "assistant") said.pop(); // the answer to go on with, so far without a text
  const variables = canThink ? { chat_template_kwargs: { enable_thinking: thinks && schema === null } } : {};
  return ["v1/chat/completions", { ...body, ...variables, ...(functions.length ? { tools: functions } : {}), messages: said }];
}

/** The events of a stream. @param {Response} answer @returns {AsyncGenerator<any>} */
async function* events(answer) {
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = "", part; !(part = await reader.read()).done; ) {
      const found = (rest + part.value).split("\n\n");
      rest = found.pop() ?? "";
      for (const event of found) {
        const data = event.slice(event.indexOf("data:") + 5).trim();
        if (data.startsWith("{")) yield JSON.parse(data);
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // the answer has ended, or was stopped
  }
}

/** @param {{ message: string, code?: string | null }} error  as the server writes it */
function problemOf({ message, code }) {
  if (code === TOO_LONG) return new Problem("ContextFull", message, "Edit an earlier message, or start a new conversation.");
  if (code === "invalid_api_key") return new Problem("NoKey", "This server asks for an API key.", "Write it in the field API key.");
  return new Problem("Refused", message);
}

/** Add parts of calls, as a stream brings them. @param {Called[]} calls @param {{ index: number, function?: { name?: string, arguments?: string } }[]} parts */
function addCalls(calls, parts) {
  for (const { index, function: { name = "", arguments: given = "" } = {} } of parts) {
    const call = (calls[index] ??= { name: "", arguments: "", result: null, failed: false });
    call.name += name;
    call.arguments += given;
  }
}

/** The characters of a conversation. @param {{ content: string }[]} messages */
function lengthOf(messages) {
  return messages.reduce((length, { content }) => length + content.length, 0);
}
