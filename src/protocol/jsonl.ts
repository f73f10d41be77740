import { type Language, splice } from "./language.ts";

/** The bare records of one stream, as they came, and nothing else. */
export function jsonl(stream: string): Language {
  return (event) =>
    event.kind === "records" && event.stream === stream ? splice("", "\n", event.lines) : "";
}
