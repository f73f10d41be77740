import type { FaultSpec } from "../../../sandbox/faults/fault.ts";
import { FAULTS } from "../../../sandbox/faults/faults.ts";
import type { Day } from "../../../src/time.ts";
import { labConfig, readOnce, withSandbox } from "./read-once.ts";
import { LAB_SANDBOX, type Scenario } from "./run-scenario.ts";

/** The eight ways in which a body is cut, as field reports know them. */
export const CUTS = "close close-gzip end gzip-cut fin length length-gzip length-reset".split(" ");

const TIMES = [
  ["once", "1"],
  ["twice", "2"],
  ["for ever", "always"],
] as const;

const MOVING = ["recheck=2:times=always", "arrive=1:times=always"] as const;
const PACES = [
  ["still", []],
  ["moving", MOVING],
] as const;

type Span = { readonly from: string; readonly to: string };

/** The windows that a first sync of the lab's sandbox reads from exports, oldest first. */
function windowsOf(): Promise<readonly Span[]> {
  return withSandbox(LAB_SANDBOX, async (sandbox) => {
    await readOnce({ config: labConfig(sandbox), state: null });
    return sandbox.requests
      .filter(({ path }) => path.endsWith("/stream"))
      .map(({ query: { discovered_from: from = "none", discovered_to: to = "none" } }) => ({ from, to }))
      .sort((a, b) => (a.from < b.from ? -1 : 1));
  });
}

const at = ({ from, to }: Span): string => `:from=${from}:to=${to}`;

/** What no rule removes: totals that are wrong by exactly what is lost, and a list that is not there to count by. */
const RESIDUAL: ReadonlySet<string> = new Set([
  "companies as one body, cap=100, and every export ends early",
  "companies by windows, no-company-list, and every export ends early",
  "companies as one body, no-company-list, and every export ends early",
  // The first day has 3 rows: one is counted, and one is shown.
  "count=-2, and every export where each day is a window ends early",
]);

export async function allScenarios(): Promise<readonly Scenario[]> {
  const all = [
    ...faultScenarios(),
    ...listScenarios(),
    ...dateScenarios(),
    ...drainScenarios(),
    ...hostileScenarios(),
    ...companyScenarios(),
    ...oddScenarios(),
    ...(await cutScenarios()),
  ];
  return all.map((scenario) =>
    RESIDUAL.has(scenario.name) ? { ...scenario, expect: "residual" } : scenario,
  );
}

/** Each cut × the window that it strikes × how often × whether people move meanwhile. */
async function cutScenarios(): Promise<readonly Scenario[]> {
  const windows = await windowsOf();
  const first = windows[0];
  const middle = windows[Math.floor(windows.length / 2)];
  const open = windows.at(-1);
  if (first === undefined || middle === undefined || open === undefined) throw new Error("No windows to cut");
  const day: Span = { from: "2026-02-10", to: "2026-02-10" };
  // Nothing less than a day can be halved, so that its pages are walked.
  const paged = (cut: string, times: string): readonly string[] => [
    `end${at(day)}:times=always:after=1`,
    `end${at(middle)}:times=2`,
    `${cut}:path=/people$${at(day)}:skip=5:times=${times}`,
  ];
  const within = (span: Span) => (cut: string, times: string) => [`${cut}${at(span)}:times=${times}`];
  const undated = (cut: string, times: string) => [`${cut}:from=none:to=none:times=${times}`];
  const targets = [
    ["first", within(first), {}],
    ["middle", within(middle), {}],
    ["open", within(open), {}],
    ["undated", undated, { maxWindowRows: 1_000 }],
    ["paged", paged, { maxWindowRows: 1 }],
  ] as const;
  return CUTS.flatMap((cut) =>
    targets.flatMap(([target, faults, config]) =>
      TIMES.flatMap(([often, times]) =>
        PACES.map(
          ([pace, movement]): Scenario => ({
            name: `${cut}, ${target} window, ${often}, ${pace}`,
            faults: [...faults(cut, times), ...movement],
            config,
            expect: "whole",
          }),
        ),
      ),
    ),
  );
}

const whole = (name: string, ...faults: readonly string[]): Scenario => ({
  name,
  faults: faults.length === 0 ? [name] : faults,
  expect: "whole",
});

const complete = (...words: Parameters<typeof whole>): Scenario => ({
  ...whole(...words),
  expect: "complete",
});

const refused = (name: string): Scenario => ({ ...whole(name), expect: "refused" });

const LINES = ["stream-failed", "garbage", "not-object=null", "not-object=[1]", "no-key", "bad-utf8"];
const HARMLESS = ["surrogate", "nul", "big-int", "wrong-type", "new-field", "blank-lines", "crlf", "bom"];
const OTHER_CUTS = ["reset", "midline", "gzip-trailer", "stall"];

const DAY = ":from=2026-02-10:to=2026-02-10";
const FEW_DAYS = (fault: string) => (fault === "stall" ? { sandbox: { people: 40, days: 6 } } : {});

/** Every other fault of the sandbox, and totals that are not what they say. */
function faultScenarios(): readonly Scenario[] {
  return [
    ...[...LINES, ...OTHER_CUTS].flatMap((fault) => [
      whole(`${fault}, once`, fault),
      // Each silence lasts its time, so fewer days fall silent.
      { ...whole(`${fault}, every export, for ever`, `${fault}:times=always`), ...FEW_DAYS(fault) },
      whole(`${fault} before the first row`, `${fault}:after=0:times=3`),
    ]),
    ...LINES.map((fault) => whole(`${fault} after the last row`, `${fault}:after=all`)),
    ...HARMLESS.map((fault) => whole(`${fault}, every export`, `${fault}:times=always`)),
    whole("drip=500", "drip=500:times=always"),
    whole("gateway=4000, every export", "gateway=4000:times=always"),
    whole("long-line of 17 MB", "long-line=17000000"),
    whole("omit=3"),
    { ...whole("omit=3, lists too", "omit=3:lists=too"), expect: "residual" },
    whole("duplicate=20"),
    whole("duplicate-omit=5"),
    whole("count=3"),
    refused("count=-3"),
    whole("cap=20"),
    refused("null-total"),
    { ...whole("null-total, verify_counts off", "null-total"), config: { verifyCounts: false } },
    whole("page-repeats, and a day that no export closes", "page-repeats", `end${DAY}:times=always`),
    whole("short-page, and a day that no export closes", "short-page", `end${DAY}:times=always`),
    { ...whole("omit=3 where each day is a window", "omit=3"), config: { maxWindowRows: 1 } },
    refused("filters-ignored"),
    ...[500, 502, 503, 423, 408].flatMap((status) => [
      whole(`status=${status}, twice`, `status=${status}:times=2`),
      refused(`status=${status}:times=always`),
    ]),
    ...[400, 401, 403, 404].map((status) => refused(`status=${status}:times=always`)),
    ...["QUOTA_EXCEEDED", "ENDPOINT_NOT_ON_PLAN", "SUBSCRIPTION_INACTIVE"].map((code) =>
      refused(`status=403:code=${code}:skip=5:times=always`),
    ),
    refused("status=500:skip=9:times=always"),
    whole("429=2:times=5"),
    whole("429=2:date=1:times=5"),
    whole("429:header=none:times=5"),
    refused("429=300:times=always"),
    refused("redirect=https://elsewhere.example/:times=always"),
    whole("html, an export", "html:path=stream"),
    refused("html:times=always"),
    whole("wrong-content, twice", "wrong-content:times=2"),
    refused("wrong-content:times=always"),
    whole("leak, twice", "leak:times=2"),
    refused("leak:times=always"),
    whole("stall-headers, twice", "stall-headers:times=2"),
    whole("count-fails, twice", "count-fails:times=2"),
    refused("count-fails:times=always"),
    ...movements(),
  ];
}

/** No export of this day ever closes it, which is why its pages are read. */
const PAGED = `end${DAY}:times=always:after=1`;
const CUT_SHORT = "end:times=always";
const NOTHING_WHOLE = "broken-page and no export that is whole";

/** Lists that lie, beside exports that end early: no page may count for more than it shows. */
function listScenarios(): readonly Scenario[] {
  const oneDay = { people: 200, days: 1 };
  const ignored = ["2026-02-10", "2026-02-11", "2026-02-12"].map((day) => day as Day);
  const alone = (...faults: readonly string[]) => faults.map((fault) => [fault, [fault]] as const);
  const lying: readonly (readonly [string, readonly string[]])[] = [
    ...alone("random-order"),
    ["random-order of a second", ["random-order=1"]],
    ...alone("list-end=20", "list-end=150"),
    ["broken-page, twice", ["broken-page:times=2"]],
    ["broken-page, always", ["broken-page:times=always"]],
    ...alone("keyless=3"),
    ["keyless=3 and random-order", ["keyless=3", "random-order"]],
    ...alone("count=-1", "count=-2", "count=-10", "count=-100", "count=-290", "cap=150"),
  ];
  return [
    ...lying.flatMap(([name, faults]): readonly Scenario[] => [
      whole(`${name}, and a day that no export closes`, ...faults, PAGED),
      whole(`${name}, and every export ends early`, ...faults, CUT_SHORT),
      { ...whole(`${name}, and every export of one day ends early`, ...faults, CUT_SHORT), sandbox: oneDay },
      {
        ...whole(`${name}, and every export where each day is a window ends early`, ...faults, CUT_SHORT),
        config: { maxWindowRows: 1 },
      },
    ]),
    complete("random-order"),
    complete("list-end=20"),
    { ...whole(NOTHING_WHOLE, "broken-page:times=always", CUT_SHORT), expect: "refused" },
    refused("keyless=3"),
    whole("no-key=4, every export", "no-key=4:times=always"),
    complete("escaped, every export", "escaped:times=always"),
    complete("escaped, moving", "escaped:times=always", ...MOVING),
    whole("escaped, and a day that no export closes", "escaped:times=always", PAGED),
    {
      ...complete(
        "three days in a row that are ignored",
        ...ignored.flatMap((day) => [
          `garbage:from=${day}:to=${day}:times=always`,
          `broken-page:from=${day}:to=${day}:times=always`,
        ]),
      ),
      config: { maxWindowRows: 1, ignoreMissingDays: ignored },
      givenUp: ignored,
    },
    complete("arrive-undated=2, before the first request", "arrive-undated=2"),
    ...["arrive-undated=2", "date-undated=2"].flatMap((fault) =>
      [1, 2, 3, 4, 6].map((skip) => whole(`${fault} after ${skip} requests`, `${fault}:skip=${skip}`)),
    ),
    whole("arrive-undated=1, before every request", "arrive-undated=1:times=12"),
    whole("arrive=1 and date-undated=1, before exports and requests", MOVING[1], "date-undated=1:times=3"),
  ];
}

/** The spellings of dates that a reader can know. */
export const SPELLINGS = "short-offset offset comma space lower-case epoch-ms epoch-seconds".split(" ");

/** Dates of other times, in other spellings, on another clock. A run that has little to read asks little. */
function dateScenarios(): readonly Scenario[] {
  const quiet = (scenario: Scenario): Scenario => ({ ...scenario, mostRequestsHealed: 8 });
  return [
    ...SPELLINGS.map((spelling) => complete(`dates=${spelling}`)),
    { ...whole("dates=unreadable"), expect: "residual" },
    ...["0001-01-01", "1969-12-31", "1970-01-01"].map((date) => quiet(complete(`redate=${date}:people=3`))),
    ...["2026-03-21", "2999-01-01"].map((date) => quiet(complete(`redate=${date}:people=2`))),
    ...["0001-01-01", "2999-01-01"].map((date) => ({
      ...quiet(complete(`redate=${date}:people=2 in a small account`, `redate=${date}:people=2`)),
      config: { maxWindowRows: 1_000 },
    })),
    ...[5, 3600, -5, -3600].map((seconds) => quiet(complete(`clock-behind=${seconds}`))),
    ...[5, -5].map((seconds) =>
      whole(`clock-behind=${seconds}, moving`, `clock-behind=${seconds}`, ...MOVING),
    ),
    whole("clock-behind=-259200, days ahead, and every export ends early", "clock-behind=-259200", CUT_SHORT),
  ];
}

/** People leave the days that are read for today, all the time and faster and faster. Nothing fails for that. */
function drainScenarios(): readonly Scenario[] {
  const sandbox = { people: 1200, days: 60 };
  const config = { maxWindowRows: 150 };
  const speeds = [
    ["slowly", 200],
    ["steadily", 40],
    ["fast", 8],
  ] as const;
  return ["oldest", "random"].flatMap((order) =>
    speeds.flatMap(([speed, every]): readonly Scenario[] => {
      const drain = `drain=1:every=${every}:order=${order}`;
      const name = `draining ${speed}, ${order} first`;
      return [
        complete(name, drain),
        whole(`${name}, and omit=3`, drain, "omit=3"),
        whole(`${name}, and every third export ends early`, drain, "end:skip=2:times=4"),
      ].map((scenario) => ({ ...scenario, sandbox, config }));
    }),
  );
}

/** Bytes that attack their reader. */
function hostileScenarios(): readonly Scenario[] {
  return [
    whole("gzip-bomb=64, a list", "gzip-bomb=64:path=/people$"),
    whole("gzip-bomb=64, an export", "gzip-bomb=64:path=stream"),
    whole("early-hints, a list", "early-hints:path=/people$"),
    whole("endless=blank, an export", "endless=blank:every=20"),
    whole("endless=row, an export", "endless=row:every=20"),
    whole("drip=1 of a page", "drip=1:every=2:path=/people$"),
    ...["deep", "terminal"].map((fault) => whole(`${fault}, every export`, `${fault}:times=always:after=2`)),
    whole("deep, every page", "deep:path=/people$:times=always", PAGED),
  ];
}

/** Companies come by windows where the service dates them, and otherwise as one body. */
function companyScenarios(): readonly Scenario[] {
  const kinds = [
    ["by windows", { people: 3, companies: 200 }],
    ["as one body", { people: 3, companies: 200, companiesDated: false }],
  ] as const;
  const broken = [...CUTS, "stream-failed", "garbage", "bad-utf8"];
  const faults = [
    ...broken.flatMap((fault) => [`${fault}:times=1`, `${fault}:times=always`]),
    ...["omit=3", "duplicate-omit=5", "count=3", "cap=20", "count=-3", "list-end=50", "random-order"],
    ...["no-company-list", "dates=epoch-ms", "escaped:times=always"],
  ];
  const lists = ["cap=80", "cap=100", "count=-60", "list-end=100", "random-order", "null-total"];
  const beside = [...lists, "no-company-list"];
  return kinds.flatMap(([kind, sandbox]) => {
    const named = (name: string, ...all: string[]): Scenario => ({
      ...whole(`companies ${kind}, ${name}`, ...all),
      stream: "companies",
      sandbox,
    });
    return [
      ...faults.map((fault) => named(fault, fault)),
      ...beside.map((fault) => named(`${fault}, and every export ends early`, fault, CUT_SHORT)),
    ];
  });
}

/** Reasonable services that are odd: exports with a limit, lists with a depth, rows that share a key, counts of another moment. */
function oddScenarios(): readonly Scenario[] {
  const companies = ["by windows", "as one body"].map((kind) => ({
    // Their keys are others once the fault is gone.
    ...{ ...complete(`twins=2, companies ${kind}`, "twins=2"), expect: "residual" as const },
    stream: "companies" as const,
    sandbox: { people: 3, companies: 60, companiesDated: kind === "by windows" },
  }));
  const lagging = { people: 200, days: 20 };
  const oneWindow = { maxWindowRows: 250_000 };
  return [
    ...["504", "500", "silence"].map((how) => ({
      ...complete(`export-limit=100:how=${how}, in one window`, `export-limit=100:how=${how}`),
      config: oneWindow,
    })),
    complete("export-limit=0, no export at all", "export-limit=0"),
    complete("list-depth=100"),
    whole("list-depth=100, and people without a date arrive", "list-depth=100", "arrive-undated=2:skip=3"),
    ...companies,
    { ...whole("omit=20:lists=too, erased people"), faults: ["omit=20:lists=too"], expect: "residual" },
    ...[1, 3, 6].map((seconds) => ({
      ...whole(`lag=${seconds}, while people move`, `lag=${seconds}`, "move=1:times=always"),
      sandbox: lagging,
      waits: true,
    })),
    refused("count=5000000000"),
    ...lateScenarios(),
    ...["blank", "row"].map((line) => ({
      ...complete(`endless=${line} behind the last row`, `endless=${line}:after=all:every=20:times=always`),
      config: oneWindow,
    })),
  ];
}

/** What the first sync cannot see, and the next ones must find. */
function lateScenarios(): readonly Scenario[] {
  const oneWindow = { maxWindowRows: 250_000 };
  return [
    ...[
      ["nothing is there yet", 300],
      ["a source is granted, or an index catches up", 100],
    ].flatMap(([what, many]) => [
      { ...complete(`hide=${many}, ${what}`, `hide=${many}`), isLate: true },
      {
        ...complete(`hide=${many}, ${what}, in one window`, `hide=${many}`),
        isLate: true,
        config: oneWindow,
      },
    ]),
    complete("clock-behind=-3888000, 45 days ahead", "clock-behind=-3888000"),
    ...["ignored", "refused"].map((how) => complete(`beginning=${how}`)),
    whole("undate=2, two people lose their date", "undate=2:skip=6"),
    whole(
      "three people get a date, and three others come",
      "date-undated=3:skip=6",
      "arrive-undated=3:skip=6",
    ),
    {
      ...whole("one of 2,000 people without a date gets one", "date-undated=1:skip=6"),
      sandbox: { people: 40, days: 6, undated: 2_000 },
      config: oneWindow,
    },
  ];
}

function movements(): readonly Scenario[] {
  const all = (fault: string): string => `${fault}:times=always`;
  const walking = [all("recheck=3"), all("arrive=2")];
  return [
    whole("recheck=5, during every export", all("recheck=5")),
    whole("arrive=5, during every export", all("arrive=5")),
    whole("recheck, arrive and flip, during every export", all("recheck=3"), all("arrive=2"), all("flip=3")),
    { ...whole("flip=5, of users only", all("flip=5")), config: { isUser: "true" } },
    whole("midnight during the first export", "midnight", all("recheck=2")),
    whole("midnight during the fourth export", "midnight:skip=3", all("recheck=2")),
    whole("midnight during the open window", "midnight:from=2026-03-19:to=none", all("arrive=2")),
    { ...whole("a local clock an hour ahead, moving", ...walking), skew: 3_600_000 },
    { ...whole("a local clock an hour behind, moving", ...walking), skew: -3_600_000 },
    { ...whole("eight workers, moving", ...walking), config: { numWorkers: 8, maxWindowRows: 10 } },
    {
      ...whole("eight workers, moving, every fourth export broken off", all("recheck=3"), all("end:skip=3")),
      config: { numWorkers: 8, maxWindowRows: 40 },
    },
  ];
}

/** Faults of the sandbox that could strike a sync of people or companies and that no scenario has. */
export function uncovered(scenarios: readonly Scenario[]): readonly string[] {
  const used = new Set(scenarios.flatMap(({ faults }) => faults.map((fault) => fault.split(/[=:]/)[0])));
  return [...FAULTS].flatMap(([name, spec]) => (isOfJobs(spec) || used.has(name) ? [] : [name]));
}

/** Whether a fault strikes submissions and results alone. */
export const isOfJobs = ({ kind, on = [] }: FaultSpec): boolean =>
  kind === "submission" || (on.length > 0 && on.every((request) => request === "job" || request === "poll"));
