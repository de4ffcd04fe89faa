/**
 * The messages between a page and its worker. Every request has an `id`. Its replies have the same `id`, and end with
 * exactly one `done` or `error`. `abort` has the id of the request to stop. `abort` and `interrupt` have no reply. `refusal` and
 * what is a Notice belong to no request.
 *
 * @import { Work } from "../threads/kernel-thread.js"
 * @typedef {{ url: string, size?: number, sha256?: string }} Remote  a file on a server; its size and hash are checked if given
 * @typedef {Remote | { file: File }} Source  the origin of a file's bytes
 *
 * Page to worker
 *
 * @typedef {{ type: "start",    id: number, app: string, modules: string[], parts: string[],
 *   packages: string[], libraries: string[], interrupts: Uint8Array | null }} Start
 *   import `app`, a URL, in the Python that starts with the worker, and the `modules` that it imports, which need these `parts`
 *   of Python and other `packages`; make the JavaScript `libraries` of site.json importable; writing 2 to the shared `interrupts` is Ctrl-C
 * @typedef {{ type: "load",     id: number, files: Record<string, Source> }} Load
 * @typedef {{ type: "generate", id: number, options: Record<string, unknown> }} Generate
 * @typedef {{ type: "call",     id: number, method: string, keywords: Record<string, unknown>, emits: boolean }} Call
 *   call a method of the demo; with `emits`, the method gets a function `emit`, which sends an `event` at once
 * @typedef {{ type: "threads",  id: number, count: number }} Threads  set the number of threads for kernels
 * @typedef {{ type: "ping",     id: number }} Ping  answered as soon as the worker does not compute
 * @typedef {{ type: "abort",    id: number }} Abort  has no effect on a "call"
 * @typedef {{ type: "interrupt" }} Interrupt  follows a write to `interrupts`: stop code that waits
 * @typedef {{ type: "refusal", reason: string }} Refusal  a thread of the kernels has not started
 * @typedef {Start | Load | Generate | Call | Threads | Ping} Request
 *
 * Worker to page
 *
 * @typedef {{ type: "progress", id: number, stage: Stage, name: string, loaded: number, total: number | null }} Progress
 * @typedef {{ type: "token",    id: number, text: string, stats: Record<string, any> }} Token
 * @typedef {{ type: "event",    id: number, value: any }} Emitted
 * @typedef {{ type: "done",     id: number, reason: "end" | "aborted", result: unknown }} Done
 * @typedef {{ type: "error",    id: number } & Fault} Failure
 * @typedef {Progress | Token | Emitted | Done | Failure} Reply
 * @typedef {{ type: "thread", work: Work }} Thread  start a thread of the kernels, also while Python runs
 * @typedef {{ type: "alive", lock: string }} Alive  the worker holds a lock of this name as long as it lives
 * @typedef {{ type: "stopped" } & Fault} Stopped  Python cannot go on
 * @typedef {Thread | Alive | Stopped} Notice
 *
 * @typedef {"python" | "download" | "cache" | "file" | "model"} Stage  the step in progress; `loaded` and `total` are bytes
 *
 * An error: its message, and what to do about it. `details` is a traceback, for the browser's console.
 * @typedef {{ name: string, message: string, hint: string | null, details: string | null }} Fault
 *
 * The `result` of `start` and of `load`. The `result` of `call` is the return value of the method. `unshared` says why other
 * workers cannot use Python's memory; null if they can. `snapshot` is true if Python started from a snapshot of its memory, or says why not. `threads` is the number for kernels, at most `mostThreads`; `oneThread`
 * says why there is one, or is empty. The `result` of `threads` is the number.
 * @typedef {{ tallow: string, python: string, seconds: Record<string, number>, unshared: string | null, snapshot: true | string, threads: number,
 *   mostThreads: number, oneThread: string }} Started
 * @typedef {{ info: Record<string, any>, seconds: number, bytes: number, notice: string | null }} Loaded
 */

/** The name of the error when Python has stopped and answers nothing any more. */
export const FATAL = "PythonStopped";

/** An error whose message and hint a page shows to the user. */
export class Problem extends Error {
  /** @param {string} name @param {string} message @param {string | null} hint @param {string | null} details */
  constructor(name, message, hint = null, details = null) {
    super(message);
    this.name = name;
    this.hint = hint;
    this.details = details;
  }

  /** @param {Fault} fault */
  static from({ name, message, hint, details }) {
    return new Problem(name, message, hint, details);
  }

  /** Convert to plain data, which a message can contain. @returns {Fault} */
  toFault() {
    return { name: this.name, message: this.message, hint: this.hint, details: this.details };
  }
}
