// Puts into docs/*.svg what runs against the sandbox and the demo show; `--check` only compares, all but the demo.
import { importSource } from "./import-source.js";

await importSource("scripts/draw-pictures.js");
