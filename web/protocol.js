/**
 * What a page and its worker say to each other. Every request has an `id`; its replies carry the same one, and end with
 * exactly one `done` or `error`. `abort` names the request to stop and has no reply of its own.
 *
 * @typedef {{ url: string, size?: number, sha256?: string }} Remote  a file on a server, and what is known of it
 * @typedef {Remote | { file: File }} Source  where the bytes of a file come from
 *
 * Page to worker
 *
 * @typedef {{ type: "start",    id: number, site: string, app: string, modules: string[], libraries: string[],
 *   interrupts: Uint8Array | null }} Start
 *   boot Python and import `app`, a URL, with `modules` beside it, and those JavaScript `libraries` of site.json that it
 *   imports; a 2 in `interrupts`, which is shared, is Ctrl-C
 * @typedef {{ type: "load",     id: number, files: Record<string, Source> }} Load
 * @typedef {{ type: "generate", id: number, options: Record<string, unknown> }} Generate
 * @typedef {{ type: "call",     id: number, method: string, keywords: Record<string, unknown>, emits: boolean }} Call
 *   call a method of the demo; one that emits is given a function `emit`, which sends an `event` at once
 * @typedef {{ type: "abort",    id: number }} Abort  has no effect on a call
 * @typedef {Start | Load | Generate | Call} Request
 *
 * Worker to page
 *
 * @typedef {{ type: "progress", id: number, stage: Stage, name: string, loaded: number, total: number | null }} Progress
 * @typedef {{ type: "token",    id: number, text: string, stats: Record<string, number> }} Token
 * @typedef {{ type: "event",    id: number, value: any }} Emitted
 * @typedef {{ type: "done",     id: number, reason: "end" | "aborted", result: unknown }} Done
 * @typedef {{ type: "error",    id: number } & Fault} Failure
 * @typedef {Progress | Token | Emitted | Done | Failure} Reply
 *
 * @typedef {"python" | "download" | "cache" | "file" | "model"} Stage  what is being waited for; bytes where they are known
 *
 * What went wrong, and what to do about it. `details` is a traceback, for the console.
 * @typedef {{ name: string, message: string, mend: string | null, details: string | null }} Fault
 *
 * What `start` and `load` return as `result`; for `call` it is what the method returned.
 * @typedef {{ tallow: string, python: string, seconds: Record<string, number> }} Started
 * @typedef {{ info: Record<string, any>, seconds: number, bytes: number, notice: string | null }} Loaded
 */

/** An error that is shown as it stands: what was wrong, and what to do. */
export class Problem extends Error {
  /** @param {string} name @param {string} message @param {string | null} mend @param {string | null} details */
  constructor(name, message, mend = null, details = null) {
    super(message);
    this.name = name;
    this.mend = mend;
    this.details = details;
  }

  /** @param {Fault} fault */
  static from({ name, message, mend, details }) {
    return new Problem(name, message, mend, details);
  }

  /** The same as plain data, which a message can carry. @returns {Fault} */
  toFault() {
    return { name: this.name, message: this.message, mend: this.mend, details: this.details };
  }
}
