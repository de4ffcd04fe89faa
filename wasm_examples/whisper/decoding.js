/** Pass a sound to Python, part by part, and draw its waveform. */

import { aborted } from "../../web/page/page.js";
import { SAMPLE_RATE, samplesOf } from "../../web/sound/sound.js";
import { hearing, view } from "./elements.js";

/** @import { Waveform } from "./waveform.js" */

/**
 * @param {File} sound
 * @param {{ call: (method: string, keywords?: Record<string, unknown>) => Promise<any>, waveform: Waveform }} to  `call` calls Python
 * @param {AbortSignal} signal
 */
export async function passSamples(sound, { call, waveform }, signal) {
  view.status.say(`Reading ${sound.name}`);
  hearing.update(`Reading ${sound.name}`, 0);
  waveform.begin();
  await Promise.race([call("clear"), aborted(signal)]);
  try {
    for await (const { samples, share } of samplesOf(sound, signal)) {
      hearing.update(share === null ? `Decoding ${sound.name}` : `Reading ${sound.name}, ${Math.round(100 * share)}%`, share);
      waveform.addSamples(samples, SAMPLE_RATE);
      if (samples.length) await call("add", { samples });
    }
  } catch (error) {
    call("clear").catch(() => {}); // an incomplete sound is useless, and may be large
    throw error;
  }
}
