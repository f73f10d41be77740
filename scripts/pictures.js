// Writes the results of runs and of the demo into docs/*.svg. `--check` only compares, and skips the demo.
import { importSource } from "./import-source.js";

await importSource("scripts/draw-pictures.js");
