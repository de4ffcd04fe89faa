/** A drawn scene as what the page looks at, and the size of the frames that the model gets. */

import { RATIO } from "./scene.js";

/** @import { Source } from "../../web/page/pictures.js" */
/** @import { Scene } from "./scene.js" */

export const SIDE = 256; // longest side of a frame
const SCENE_WIDTH = 1024;

/** @param {Scene} scene @returns {Source} */
export function ofScene(scene) {
  return { width: SCENE_WIDTH, height: SCENE_WIDTH * RATIO, draw: (context, width) => scene.draw(context, width) };
}
