import type { Client } from "../api/client.ts";
import type { EmailVerification } from "../config/config.ts";
import type { JsonObject } from "../json.ts";
import { FREE } from "./email-checks.ts";
import type { Answer, JobType } from "./job-type.ts";
import { plainAnswer, submitOnce, usable, VERIFICATION } from "./requests.ts";

/** Verifications of e-mails: each is answered at once, may cost money, and cannot be asked for again. */
export function emailVerifications(settings: EmailVerification, client: Client | undefined): JobType {
  return {
    setting: "emailVerification",
    settingName: "email_verification",
    kind: "email",
    caps: {
      submissions: { sync: settings.maxPerSync, day: settings.maxPerDay ?? Number.POSITIVE_INFINITY },
      credits: FREE,
    },
    resubmitRules: settings,
    polling: null,
    maxWait: 0,
    postsAtOnce: 10,
    submit: (email) =>
      submitOnce(usable(client), "verify an e-mail", VERIFICATION, { email }, (response, answered) => ({
        kind: "answered",
        answer: verified(email, answered, response),
      })),
    ask: () => Promise.reject(new Error("Cannot ask for a verification: it is answered at once")),
    records: (_stream, _about, { value }) => [value],
  };
}

/** The answer's form is not documented, so it is kept whole, whatever it is. `answered`: epoch ms. */
function verified(email: string, answered: number, response: JsonObject): Answer {
  const verifiedAt = new Date(answered).toISOString();
  return plainAnswer({ email, verified_at: verifiedAt, response }, verifiedAt);
}

/** What the receipts keep of an answer: its moment and the response. */
export const sealedText = ({ value: { verified_at, response } }: Answer): string =>
  `${String(verified_at)} ${JSON.stringify(response)}`;

/** The answer that was kept. `at`: epoch ms of an answer that an older version kept without its moment. */
export function unsealedAnswer(email: string, at: number, text: string): Answer {
  const start = text.indexOf("{");
  return verified(
    email,
    start > 0 ? Date.parse(text.slice(0, start - 1)) : at,
    JSON.parse(text.slice(start)),
  );
}
