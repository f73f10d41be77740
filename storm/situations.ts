import type { SandboxOptions } from "../sandbox/server.ts";

/** One thing that goes wrong, the same for everyone. */
export type Situation = {
  readonly name: string;
  /** What happens, and why that is fair to everyone. */
  readonly why: string;
  /** During the run that is judged; the run after it has none. `{elsewhere}`: the address of another server. */
  readonly faults: readonly string[];
  readonly sandbox?: SandboxOptions;
  /** `killed`: the run dies when the fault has struck, and is started again. `other account`: the run reads another service. */
  readonly plot?: "killed" | "other account";
};

export const PEOPLE = 5_000;
export const DAYS = 20;
/** What a gateway lets through of a body, and how fast it comes: 60 s at the speed of the service, played in 12. */
const GATEWAY_BYTES = 1_600_000;
const GATEWAY_SECONDS = 12;

/** Strikes whatever brings people: exports for those who read exports, pages for those who read pages. */
const rows = (fault: string): string => `${fault}:path=/people:of=rows`;
const exports = (fault: string): string => `${fault}:path=/people/stream`;
const pages = (fault: string): string => `${fault}:path=/people$:of=rows`;
const all = (fault: string): string => `${fault}:times=always`;

const EACH = "It strikes the first body of people that a contestant asks for, an export or a page.";

export const SITUATIONS: readonly Situation[] = [
  { name: "calm", why: "Nothing goes wrong. What is said here is nobody's alarm later.", faults: [] },
  {
    name: "cut at the end of a line",
    why: `A body ends properly after half of its rows, as a proxy that buffers makes it. ${EACH}`,
    faults: [rows("end")],
  },
  {
    name: "cut in a line",
    why: `A body ends properly in the middle of a row. ${EACH}`,
    faults: [rows("midline")],
  },
  {
    name: "cut, only the connection says where",
    why: `A body has neither length nor chunks and its connection closes early, as HTTP/1.0 proxies do. ${EACH}`,
    faults: [rows("close")],
  },
  {
    name: "cut without a proper end",
    why: `A chunked body lacks its last chunk, which every HTTP library can see. ${EACH}`,
    faults: [rows("fin")],
  },
  {
    name: "connection reset",
    why: `The connection is reset in the middle. ${EACH}`,
    faults: [rows("reset")],
  },
  {
    name: "shorter than announced",
    why: `A body has fewer bytes than its Content-Length. ${EACH}`,
    faults: [rows("length")],
  },
  {
    name: "compressed data cut",
    why: `A gzip body ends early inside properly ended chunks. Everybody here accepts gzip. ${EACH}`,
    faults: [rows("gzip-cut")],
  },
  {
    name: "the second body cut",
    why: "As the second line, but the second body: who needs one request only never meets it.",
    faults: [rows("end:skip=1")],
  },
  {
    name: "every export cut",
    why: "For the whole run every export ends properly after half of its rows; pages are well. Who reads pages never meets it.",
    faults: [exports(all("end"))],
  },
  {
    name: "every export and page cut",
    why: "As above, and pages too, so that nobody can read everything: what counts is whether they say so.",
    faults: [rows(all("end"))],
  },
  {
    name: "STREAM_FAILED",
    why: "The export ends with the error line that the service documents. Pages have no such line.",
    faults: [exports("stream-failed")],
  },
  {
    name: "a proxy's words in the export",
    why: "One line of an export is a proxy's error message; all rows are there. Pages have no lines.",
    faults: [exports("garbage")],
  },
  {
    name: "bytes that are no UTF-8",
    why: `One row has bytes that are no UTF-8; nothing is missing. ${EACH}`,
    faults: [rows("bad-utf8")],
  },
  {
    name: "429 three times",
    why: "The first three requests are refused, with Retry-After: 2.",
    faults: ["429=2:times=3"],
  },
  {
    name: "429 with a date",
    why: "The same, with Retry-After as a date, which HTTP allows.",
    faults: ["429=2:date=1:times=3"],
  },
  {
    name: "a storm of 429",
    why: "Twenty requests in a row are refused with Retry-After: 1: another program uses the key up.",
    faults: ["429=1:times=20"],
  },
  {
    name: "500 three times",
    why: "The first three requests fail; the service calls that safe to retry.",
    faults: ["status=500:times=3"],
  },
  {
    name: "503 for the whole run",
    why: "The service is down until the run is over: nobody can read, and everybody should say so.",
    faults: [all("status=503")],
  },
  {
    name: "423, maintenance",
    why: "Three answers are 423, which the service documents as: retry later.",
    faults: ["status=423:times=3"],
  },
  {
    name: "the key is revoked in the middle",
    why: "From the third request on every answer is 401. Who needs fewer never meets it.",
    faults: ["status=401:skip=2:times=always"],
  },
  {
    name: "silence in the middle",
    why: `A body stops for ever. Everybody's limit is 60 s. ${EACH}`,
    faults: [rows("stall")],
  },
  {
    name: "no answer at all",
    why: "The first request is never answered. Everybody's limit is 60 s.",
    faults: ["stall-headers"],
  },
  {
    name: "a gateway that cuts after 60 s",
    why:
      "The connection of every body closes after the bytes that take 60 s. It is played at five times the speed: " +
      "a complete export needs 18 s, the gateway allows 12 s, and nobody's limit is near. Smaller bodies pass.",
    faults: [rows(all(`gateway=${GATEWAY_BYTES}`))],
    sandbox: { bytesPerSecond: Math.floor(GATEWAY_BYTES / GATEWAY_SECONDS) },
  },
  {
    name: "a redirect to a login page",
    why: `A request is sent to another server, which answers 200 in HTML. ${EACH}`,
    faults: [rows("redirect={elsewhere}/login")],
  },
  {
    name: "a login page",
    why: `An answer is 200 with the HTML of a login form. ${EACH}`,
    faults: [rows("html")],
  },
  {
    name: "an empty object",
    why: `An answer is 200 with the JSON {}. ${EACH}`,
    faults: [rows("wrong-content")],
  },
  {
    name: "people who move",
    why: "After each 25 rows sent, somebody at random is checked again and is then of today. It goes by rows, not by time.",
    faults: [rows("drain=1:every=25:order=random")],
  },
  {
    name: "days that drain",
    why: "After each 10 rows sent, the person who was checked longest ago is checked again.",
    faults: [rows("drain=1:every=10")],
  },
  {
    name: "people who arrive",
    why: "During each body five new people are found. The next run may bring them.",
    faults: [rows(all("arrive=5"))],
  },
  {
    name: "pages in random order",
    why: "Lists order the rows of each day anew for each request, and pages end within days. Who reads no lists never meets it.",
    faults: [pages("random-order")],
    sandbox: { days: 18 },
  },
  {
    name: "a short page",
    why: "A page in the middle of a list lacks half of its rows, and its total is right.",
    faults: ["short-page:path=/people$"],
  },
  {
    name: "rows that exports leave out",
    why: "Exports leave out the same three people each time; lists and totals have them.",
    faults: [exports("omit=3")],
  },
  {
    name: "rows that exports repeat",
    why: "Exports send 20 people twice; nothing is missing.",
    faults: [exports("duplicate=20")],
  },
  {
    name: "totals that stop at 1,000",
    why: "Totals never exceed 1,000, as of search indexes. Rows are right, so who ignores totals is right.",
    faults: ["cap=1000:path=/people"],
  },
  {
    name: "totals too high by 3",
    why: "Every total is three too high, that of each day too. Rows are right, so who ignores totals is right.",
    faults: ["count=3:path=/people"],
  },
  {
    name: "totals too low by 3",
    why: "Every total is three too low. Rows are right, so who ignores totals is right.",
    faults: ["count=-3:path=/people"],
  },
  {
    name: "no totals",
    why: "Totals are null. Rows are right, so who ignores totals is right.",
    faults: ["null-total:path=/people"],
  },
  {
    name: "filters without effect",
    why: "The service ignores the filter by date and sends everything each time.",
    faults: ["filters-ignored:path=/people"],
  },
  {
    name: "people without a date",
    why: "40 more people have no date, which the service documents and no filter by date finds.",
    faults: [],
    sandbox: { undated: 40 },
  },
  {
    name: "killed, started again",
    why: "The first body stops half way, the process is killed with SIGKILL, and started again with the state that it left. The second start is judged.",
    faults: [rows("stall")],
    plot: "killed",
  },
  {
    name: "killed later, started again",
    why: "The same with the second body: who needs one request only comes to its end unhurt.",
    faults: [rows("stall:skip=1")],
    plot: "killed",
  },
  {
    name: "another account by mistake",
    why:
      "Five days after a complete run somebody sets the address of another account, for one run, which is judged. The next run " +
      "has the right address again; 50 people of it were found two days after the first run. Clocks of machines cannot be " +
      "turned here, so the first run sees a service whose newest row is five days old.",
    faults: [],
    plot: "other account",
  },
];
