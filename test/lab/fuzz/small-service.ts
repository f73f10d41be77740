import type { ServerResponse } from "node:http";
import { CANARY, CANARY_NUMBER } from "./canary.ts";
import type { Dice } from "./dice.ts";
import { judgeLine } from "./judge.ts";
import {
  Account,
  COLLECTIONS,
  type Collection,
  daysOf,
  HEADERS,
  KEY_NAMES,
  listText,
  type Request,
} from "./service.ts";

const DAYS = ["2026-03-06", "2026-03-05", "2026-02-10", null];

function accountOf(collection: Collection): Account {
  const held = DAYS.map((day, nth) => {
    const text = JSON.stringify({
      [KEY_NAMES[collection]]: `${CANARY}-${nth}`,
      email: `${CANARY}@example.com`,
      companySize: Number(`${CANARY_NUMBER}${nth}`),
      discoveredAt: day === null ? null : `${day}T03:04:05.000Z`,
    });
    return { text, day, judged: judgeLine(text, KEY_NAMES[collection]) };
  });
  return new Account(collection, held);
}

/** How many rows each collection of the small service has, and how many of them lie on its last two days. */
export const ROWS = DAYS.length;
export const RECENT_ROWS = 2;

const ACCOUNTS: ReadonlyMap<string, Account> = new Map(
  COLLECTIONS.map((name) => [`/api/v1/public/${name}`, accountOf(name)]),
);

/** What a service says to a request. */
export type Answer = { readonly status: number; readonly text: string };

const refusal = (status: number, code: string): Answer => ({
  status,
  text: JSON.stringify({ success: false, error: { code, message: CANARY } }),
});

const JOB = "job_1_a";
const CONTACT = {
  first_name: CANARY,
  email: `${CANARY}@example.com`,
  verifications: [{ source: "acme", isVerified: true, verifiedAt: "2026-03-05T00:00:00Z", status: CANARY }],
};
/** The jobs of both APIs, which are done as soon as they are asked for. */
const JOBS: readonly (readonly [method: string, path: RegExp, value: object])[] = [
  [
    "POST",
    /\/company-lookup$/,
    { success: true, data: { job_id: JOB, domain: "example.com", sources: ["acme"] } },
  ],
  [
    "GET",
    /\/company-lookup\/[^/]+\/result$/,
    {
      ...{ job_id: JOB, domain: "example.com", source: "acme", status: "success", credits_used: 2 },
      ...{ created_at: "2026-03-05T00:00:00Z", contacts: [CONTACT, CONTACT] },
    },
  ],
  ["POST", /\/verify-email$/, { success: true, data: { email: `${CANARY}@example.com`, status: CANARY } }],
  ["POST", /\/verify$/, { success: true, job_id: JOB, poll_after: null }],
  [
    "GET",
    /\/verify\/[^/]+$/,
    {
      ...{ success: true, job_id: JOB, email: "a@example.com", status: "completed" },
      sources: { acme: { status: "done", is_user: true, checked_at: "2026-03-05T00:00:00Z", cached: false } },
    },
  ],
];

/** What a faithful service with a few rows in each collection answers. */
export function faithful({ method, path, query }: Request): Answer {
  const job = JOBS.find(([verb, pattern]) => verb === method && pattern.test(path));
  if (job !== undefined && !path.includes("job_0_check"))
    return { status: 200, text: JSON.stringify(job[2]) };
  const account = ACCOUNTS.get(path.replace(/\/stream$/, ""));
  if (account === undefined) return refusal(404, "JOB_NOT_FOUND");
  if (!path.endsWith("/stream")) return { status: 200, text: listText(account, query) };
  const lines = account.within(daysOf(query)).map(({ text }) => `${text}\n`);
  return { status: 200, text: lines.join("") };
}

type Answering = (request: Request, response: ServerResponse) => void;

const answering =
  (answerTo: (request: Request) => Answer): Answering =>
  (request, response) => {
    const { status, text } = answerTo(request);
    response.writeHead(status, HEADERS).end(text);
  };

const UNKNOWN_KEY = refusal(401, "INVALID_API_KEY");

/** Answers as a healthy service does. */
export const faithfully = answering(faithful);

/** Answers as a service that does not know the key. */
export const refusing = answering(() => UNKNOWN_KEY);

/** Answers faithfully, or refuses every request of a case. */
export function answerer(dice: Dice): Answering {
  if (dice.chance(0.4)) return faithfully;
  const refused = dice.pick([UNKNOWN_KEY, refusal(403, "ENDPOINT_NOT_ON_PLAN"), refusal(404, "X")]);
  return answering(() => refused);
}
