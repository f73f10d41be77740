import type { FaultSpec } from "./fault.ts";

/** Faults of submissions, which a client must not repeat blindly. */
export const SUBMISSION_FAULTS: readonly (readonly [string, FaultSpec])[] = [
  [
    "drop-before",
    {
      kind: "submission",
      taken: false,
      answers: false,
      description: "resets the connection of a POST before it is taken",
    },
  ],
  [
    "drop-after",
    {
      kind: "submission",
      taken: true,
      answers: false,
      description: "takes a POST, then resets its connection without an answer",
    },
  ],
  [
    "fail-after",
    { kind: "submission", taken: true, answers: true, description: "takes a POST, then answers 500" },
  ],
];
