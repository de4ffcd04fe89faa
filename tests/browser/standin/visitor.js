/** A worker that stores the site's snapshot, as that of a page does at the end of a first visit. */

import { fetchForNextVisit } from "../web/snapshot-visits.js";

const site = new URL("..", import.meta.url);
const { snapshot } = await (await fetch(new URL("site.json", site))).json();
fetchForNextVisit({ ...snapshot, url: new URL(snapshot.url, site).href }, true);
