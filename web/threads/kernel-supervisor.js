/**
 * The supervisor of the kernels' threads: it starts them, and gives back what a thread leaves that was ended from outside, such as
 * by the browser. It runs on the page, or in a worker of its own where the page does not know Python's worker. Python's worker
 * cannot: while Python runs, it receives no events, and in Chromium its workers do not start.
 */

import { bury } from "./kernel-thread.js";

/** @import { Work } from "./kernel-thread.js" */
/** @typedef {{ start(work: Work): void, end(): void }} Supervisor  starts a thread, and ends all that run */

const MODULE = new URL("./kernel-thread.js", import.meta.url).href;
// A thread holds a lock as long as it lives, which the browser passes on however it ends. It imports as Python's worker does, see
// tallow.js.
const SCRIPT = `
const module = import(${JSON.stringify(MODULE)});
const run = async ({ work, lock }) => {
  const { compute } = await module;
  const locked = () => {
    postMessage(""); // it has started
    compute(work);
  };
  await navigator.locks.request(lock, locked);
};
onmessage = ({ data }) => run(data).catch((error) => postMessage(String(error))).finally(close);`;

/** @param {(reason: string) => void} refuse  receives why a thread has not started @returns {Supervisor} */
export function supervise(refuse) {
  // A worker from a blob inherits the Content-Security-Policy; a worker from a file has that of its response.
  const url = URL.createObjectURL(new Blob([SCRIPT], { type: "text/javascript" }));
  /** @type {Set<Worker>} */
  const threads = new Set();
  return { start, end: () => threads.forEach((thread) => thread.terminate()) };

  /** @param {Work} work */
  function start(work) {
    const lock = crypto.randomUUID();
    const thread = new Worker(url, { type: "module" });
    threads.add(thread);
    thread.onerror = (event) => {
      event.preventDefault(); // or it is an error of the workers above, and of the page
      refuse(event.message ?? "its script is blocked");
    };
    thread.onmessage = ({ data: reason }) => {
      if (reason) return refuse(reason);
      thread.onerror = (event) => event.preventDefault(); // Chromium reports the end of a thread as an error of it
      navigator.locks.request(lock, () => {
        threads.delete(thread);
        bury(work);
      });
    };
    thread.postMessage({ work, lock });
  }
}
