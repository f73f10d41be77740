import type { Submission } from "../sync/jobs.ts";
import { VERIFICATION } from "./assumptions.ts";
import type { Client } from "./client.ts";
import { inExternalWords } from "./failures.ts";
import { type ToLines, toCursor } from "./job-answer.ts";
import { submitOnce } from "./submission.ts";

/** The answer's form is not documented, so that it is kept whole, whatever it is. */
export async function submitVerification(
  client: Client,
  email: string,
  toLines: ToLines,
): Promise<Submission> {
  const submission = await submitOnce(
    client,
    "verify an e-mail",
    VERIFICATION,
    { email },
    (value, answered) => {
      const verifiedAt = new Date(answered).toISOString();
      const lines = toLines([{ email, verified_at: verifiedAt, response: value }]);
      const cursor = toCursor([verifiedAt]);
      return { kind: "answered", answer: { lines, cursor, credits: 0, again: false, spent: false } };
    },
  );
  if ("error" in submission) inExternalWords(submission.error);
  return submission;
}
