/** The front page: a story that the visitor starts, and cards whose pictures move when they are on the screen. */

import { FrontStory } from "./front-story.js";
import { isolate } from "../page/isolation.js";
import { onSubmit, element } from "../page/page.js";
import { bringToLife } from "./previews.js";

const story = new FrontStory();
onSubmit(element("story-form", HTMLFormElement), () => story.toggle());
element("prompt", HTMLInputElement).addEventListener("focus", () => story.start());
for (const card of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".demo"))) bringToLife(card);
story.startIfQuick();
element("kept", HTMLElement).hidden = !(await isolate());
