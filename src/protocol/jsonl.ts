import { type Language, splice } from "./language.ts";

/** The records of one stream, with the bytes that arrived. */
export function jsonl(stream: string): Language {
  return (event) =>
    event.kind === "records" && event.stream === stream ? splice("", "\n", event.lines) : "";
}
