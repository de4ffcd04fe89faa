/**
 * The supervisor of the kernels' threads: a worker that starts them, and gives back what a thread leaves that was ended from
 * outside, such as by the browser. Python's worker cannot: while Python runs, it receives no events, and in Chromium its
 * workers do not start.
 */

import { bury } from "./kernel-thread.js";

/** @import { Work } from "./kernel-thread.js" */
/**
 * @typedef {{ onmessage: ((event: { data: Work }) => void) | null, postMessage(reason: string): void }} Port
 *   receives the work of a thread that is to start, and posts why one has not started
 */

const MODULE = new URL("./kernel-thread.js", import.meta.url).href;
// A thread holds a lock as long as it lives, which the browser passes on however it ends.
const SCRIPT = `
import { compute } from ${JSON.stringify(MODULE)};
onmessage = ({ data: { work, lock } }) => {
  const locked = () => {
    postMessage(""); // it has started
    compute(work);
  };
  navigator.locks.request(lock, locked).catch((error) => postMessage(String(error))).finally(close);
};`;

/** Start threads from now on. @param {Port} port */
export function supervise(port) {
  // A worker from a blob inherits the Content-Security-Policy; a worker from a file has that of its response.
  const url = URL.createObjectURL(new Blob([SCRIPT], { type: "text/javascript" }));
  const refuse = (/** @type {string} */ reason) => port.postMessage(reason);
  port.onmessage = ({ data: work }) => {
    const lock = crypto.randomUUID();
    const thread = new Worker(url, { type: "module" });
    thread.onerror = (event) => {
      event.preventDefault(); // or it is an error of the workers above, and of the page
      refuse(event.message ?? "its script is blocked");
    };
    thread.onmessage = ({ data: reason }) => {
      if (reason) return refuse(reason);
      thread.onerror = (event) => event.preventDefault(); // Chromium reports the end of a thread as an error of it
      navigator.locks.request(lock, () => bury(work));
    };
    thread.postMessage({ work, lock });
  };
}
