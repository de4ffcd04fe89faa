import { workerData } from "node:worker_threads";
import { compute } from "../../web/kernel-thread.js";

compute(workerData);
