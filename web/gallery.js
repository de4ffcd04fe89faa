/** The gallery is plain HTML. This script sets up isolation on hosts without headers, before the user opens a demo. */

import { isolate } from "./isolation.js";

await isolate();
