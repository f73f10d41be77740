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
    wishes: settings,
    polling: null,
    maxWait: 0,
    postsAtOnce: 10,
    submit: (email) =>
      submitOnce(usable(client), "verify an e-mail", VERIFICATION, { email }, (response, answered) => ({
        kind: "answered",
        answer: verified(email, answered, response),
      })),
    ask: () => Promise.reject(new Error("Cannot ask for a verification: it is answered at once")),
    records: (_stream, _job, { value }) => [value],
  };
}

/** The answer's form is not documented, so it is kept whole, whatever it is. `answered`: epoch ms. */
export function verified(email: string, answered: number, response: JsonObject): Answer {
  const verifiedAt = new Date(answered).toISOString();
  return plainAnswer({ email, verified_at: verifiedAt, response }, verifiedAt);
}
