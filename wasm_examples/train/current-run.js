/** Which run of a tab trains. Starting another one, or pausing, ends the run that is current. */

export class CurrentRun {
  /** @type {object | null} */
  #run = null;
  #pause;

  /** @param {HTMLButtonElement} pause  can be pressed during a run */
  constructor(pause) {
    this.#pause = pause;
  }

  /** Identifies the run; null while paused. */
  get run() {
    return this.#run;
  }

  set run(run) {
    this.#run = run;
    this.#pause.disabled = run === null;
  }
}
