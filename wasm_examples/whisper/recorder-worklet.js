/** The audio thread of recorder.js, which posts the samples in chunks, each with its peak level. */

const CHUNK = 2048;

/** @type {any} */
const scope = globalThis;

class Recorder extends scope.AudioWorkletProcessor {
  #samples = new Int16Array(CHUNK);
  #filled = 0;
  #peak = 0;

  /** @param {Float32Array[][]} inputs */
  process([channels]) {
    const length = channels?.[0]?.length ?? 0;
    for (let i = 0; i < length; i++) {
      const value = channels.reduce((sum, channel) => sum + channel[i], 0) / channels.length;
      this.#peak = Math.max(this.#peak, Math.abs(value));
      this.#samples[this.#filled++] = Math.max(-32768, Math.min(32767, Math.round(value * 32768)));
      if (this.#filled === CHUNK) this.#send();
    }
    return true;
  }

  #send() {
    /** @type {any} */ (this).port.postMessage({ samples: this.#samples, level: Math.min(1, this.#peak) }, [this.#samples.buffer]);
    this.#samples = new Int16Array(CHUNK);
    this.#filled = 0;
    this.#peak = 0;
  }
}

scope.registerProcessor("recorder", Recorder);
