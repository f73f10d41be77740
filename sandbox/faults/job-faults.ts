import { wireJson } from "../data/wire-text.ts";
import { type Answer, errorBody, jsonAnswer } from "./answer.ts";
import type { Fault, FaultTable, Visit } from "./fault.ts";

const FAR_AWAY = "2999-01-01T00:00:00.000Z";

type Result = (jobId: string, isCheck: boolean) => Answer;

/** The possible answers to a request for a result. */
const RESULTS: Readonly<Record<string, Result>> = {
  lost: () => jsonAnswer(404, errorBody("JOB_NOT_FOUND", "There is no such job")),
  error: () => jsonAnswer(500, errorBody("INTERNAL_ERROR", "The service failed")),
  malformed: (id) => jsonAnswer(200, `{"job_id":${wireJson(id)},"status":"success","contacts":[{`),
  processing: (id, isCheck) =>
    waiting(id, isCheck, { status: "processing", message: "The job is being processed" }),
  "far-away": (id, isCheck) =>
    waiting(id, isCheck, {
      status: "queued",
      contacts: [],
      credits_used: 0,
      scheduled_processing_time: FAR_AWAY,
    }),
  "no-credits": (id) =>
    jsonAnswer(500, wireJson({ job_id: id, ...FAILED, error_code: "INSUFFICIENT_CREDITS" })),
  quota: () => jsonAnswer(429, errorBody("QUOTA_EXCEEDED", "The quota is used up")),
};

const FAILED = { status: "error", contacts: [], credits_used: 0, message: "The lookup failed" };

function waiting(job_id: string, isCheck: boolean, fields: object): Answer {
  if (isCheck)
    return jsonAnswer(200, wireJson({ success: true, job_id, email: "", status: "running", sources: {} }));
  return jsonAnswer(202, wireJson({ job_id, ...fields }));
}

/** How a submission may be refused. */
const REFUSALS: Readonly<Record<string, Answer>> = {
  "no-credits": jsonAnswer(500, errorBody("INSUFFICIENT_CREDITS", "Not enough credits")),
  quota: jsonAnswer(429, errorBody("QUOTA_EXCEEDED", "The quota is used up")),
  item: jsonAnswer(400, errorBody("SOURCE_NOT_VERIFIABLE", "This cannot be checked")),
};

const INTERNAL_ERROR = jsonAnswer(500, errorBody("INTERNAL_ERROR", "The service failed after it took this"));

function resultAnswer({ text }: Fault, { path }: Visit): Answer {
  const [, jobId = ""] = /(?:company-lookup|verify)\/([^/]+)/.exec(path) ?? [];
  const result = RESULTS[text] ?? ((): Answer => INTERNAL_ERROR);
  return result(decodeURIComponent(jobId), path.includes("/verify/"));
}

/** The prices in turn, one for each result. */
function priced({ text, nth }: Fault): string {
  const prices = text.split(",");
  return prices[nth % prices.length] ?? "0";
}

/** Faults of submissions, which a client must not repeat blindly. */
export const JOB_FAULTS: FaultTable = {
  "drop-before": {
    kind: "submission",
    taken: false,
    answer: "drop",
    description: "resets the connection of a POST before it is taken",
  },
  "drop-after": {
    kind: "submission",
    taken: true,
    answer: "drop",
    description: "takes a POST, then resets its connection without an answer",
  },
  "fail-after": {
    kind: "submission",
    taken: true,
    answer: INTERNAL_ERROR,
    description: "takes a POST, then answers 500",
  },
  submission: {
    kind: "answer",
    on: ["job"],
    description: "refuses a submission: out of credits, out of quota, or for what it is about",
    argument: { label: "WHY", type: "text", choices: Object.keys(REFUSALS) },
    answer: ({ text }) => REFUSALS[text] ?? INTERNAL_ERROR,
  },
  result: {
    kind: "answer",
    on: ["poll"],
    description:
      "answers a question for a job's result: 404, an error, broken JSON, or that it is not there yet",
    argument: { label: "WHAT", type: "text", choices: Object.keys(RESULTS) },
    answer: resultAnswer,
  },
  "credits-used": {
    kind: "lines",
    on: ["poll"],
    lasts: true,
    description: "results say that they cost CREDITS, in turn if several are given: 1,40,-5",
    argument: { label: "CREDITS", type: "text" },
    rewrite: (pieces, _, fault) => [[...pieces].join("").replace(/(?<="credits_used":)-?\d+/, priced(fault))],
  },
  "poll-after": {
    kind: "lines",
    on: ["job"],
    lasts: true,
    description: "submissions of e-mail checks say not to ask before this moment",
    argument: { label: "DATE", type: "text", fallback: FAR_AWAY },
    rewrite: (pieces, _, { text }) => [
      [...pieces].join("").replace(/(?<="poll_after":)(?:null|"[^"]*")/, wireJson(text)),
    ],
  },
};
