/** Work of which the latest alone counts. */

/** @template T */
export class Latest {
  /** @type {{ controller: AbortController, done: Promise<T | undefined> } | null} */
  #work = null;

  /** Whether something goes on. */
  get busy() {
    return this.#work !== null;
  }

  /** What comes of the work that goes on; undefined where none does, or where it was stopped before it began. */
  get done() {
    return this.#work?.done ?? Promise.resolve(undefined);
  }

  /**
   * Stop what goes on and, when that has ended, begin.
   * @param {(signal: AbortSignal) => Promise<T>} work  ends early, by whatever way, once its signal says so
   * @returns {Promise<T | undefined>}  undefined where it was stopped before it began
   */
  begin(work) {
    const ended = this.stop();
    const controller = new AbortController();
    const done = ended.then(() => (controller.signal.aborted ? undefined : work(controller.signal)));
    const begun = { controller, done };
    const end = () => {
      if (this.#work === begun) this.#work = null;
    };
    this.#work = begun;
    done.then(end, end);
    return done;
  }

  /** Stop what goes on; done when that has ended. */
  async stop() {
    this.#work?.controller.abort();
    await this.done.catch(() => {}); // who began it hears of its failure
  }
}
