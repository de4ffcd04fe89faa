/** One task at a time: starting a task stops the one before it. */

/** @template T */
export class LatestTask {
  /** @type {{ controller: AbortController, result: Promise<T | undefined> } | null} */
  #current = null;

  /** Whether a task runs, or was stopped and has not ended yet. */
  get busy() {
    return this.#current !== null;
  }

  /** Whether a task runs that has not been stopped. */
  get running() {
    return this.#current !== null && !this.#current.controller.signal.aborted;
  }

  /** The result of the current task; undefined if there is none, or if it was stopped before it started. */
  get result() {
    return this.#current?.result ?? Promise.resolve(undefined);
  }

  /**
   * Stop the current task, wait until it has ended, then run another.
   * @param {(signal: AbortSignal) => Promise<T>} task  must end soon after its signal aborts
   * @returns {Promise<T | undefined>}  undefined if the task was stopped before it started
   */
  run(task) {
    const previousEnded = this.stop();
    const controller = new AbortController();
    const result = previousEnded.then(() => (controller.signal.aborted ? undefined : task(controller.signal)));
    const current = { controller, result };
    const end = () => {
      if (this.#current === current) this.#current = null;
    };
    this.#current = current;
    result.then(end, end);
    return result;
  }

  /** Stop the current task and wait until it has ended. */
  async stop() {
    this.#current?.controller.abort();
    await this.result.catch(() => {}); // the caller of run() gets the error
  }
}
