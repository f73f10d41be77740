import { labConfig, readOnce, withSandbox } from "./read-once.ts";
import { LAB_SANDBOX, type Scenario } from "./run-scenario.ts";

/** The eight ways in which a body is cut, as field reports know them. */
const CUTS = "close close-gzip end gzip-cut fin length length-gzip length-reset".split(" ");
/** The spellings of dates that a reader can know. */
const SPELLINGS = "short-offset offset comma space lower-case utc utc-brackets epoch-ms epoch-seconds".split(
  " ",
);

const MOVING = "recheck=2:times=always arrive=1:times=always";
/** No export of this day ever closes it, which is why its pages are read. */
const DAY = ":from=2026-02-10:to=2026-02-10";
const PAGED = `end${DAY}:times=always:after=1`;
const CUT_SHORT = "end:times=always";

type More = Partial<Omit<Scenario, "name" | "faults" | "expect">>;
type Expect = Scenario["expect"];

/** A scenario a line: its name, a bar, and its faults; where they are the name, the name alone. */
function scenarios(expect: Expect, lines: string, more: More = {}): readonly Scenario[] {
  return lines
    .trim()
    .split("\n")
    .map((line) => {
      const [name = "", faults = name] = line.trim().split(" | ");
      return { name, faults: faults.split(" "), expect, ...more };
    });
}

const whole = (lines: string, more?: More) => scenarios("whole", lines, more);
const complete = (lines: string, more?: More) => scenarios("complete", lines, more);
const refused = (lines: string, more?: More) => scenarios("refused", lines, more);
const residual = (lines: string, more?: More) => scenarios("residual", lines, more);
/** A line for each of the words, which stand for `$`. */
const each = (words: readonly (string | number)[], line: string): string =>
  words.map((word) => line.replaceAll("$", String(word))).join("\n");

const DAILY: More = { config: { maxWindowRows: 1 } };
const SMALL: More = { sandbox: { people: 40, days: 6 } };
const ONE_WINDOW: More = { config: { maxWindowRows: 250_000 } };

/** What no rule removes: totals that are wrong by exactly what is lost, and a list that is not there to count by. */
const RESIDUAL: ReadonlySet<string> = new Set([
  "companies as one body, cap=100, and every export ends early",
  "companies by windows, no-company-list, and every export ends early",
  "companies as one body, no-company-list, and every export ends early",
  // The first day has 3 rows: one is counted, and one is shown.
  "count=-2, and every export where each day is a window ends early",
  "count=-100, and every export ends early",
]);

export async function allScenarios(): Promise<readonly Scenario[]> {
  const all = [...SCENARIOS, ...(await cuts())];
  return all.map((one) => (RESIDUAL.has(one.name) ? { ...one, expect: "residual" } : one));
}

/** Each cut × the window that it strikes × how often × whether people move meanwhile. */
async function cuts(): Promise<readonly Scenario[]> {
  const windows = await windowsOf();
  const middle = windows[Math.floor(windows.length / 2)] ?? "";
  // Nothing less than a day can be halved, so that its pages are walked.
  const paged = `${PAGED} end${middle}:times=2 $:path=/people$$${DAY}:skip=5`;
  const targets: readonly (readonly [string, string, More])[] = [
    ["first", `$${windows[0]}`, {}],
    ["middle", `$${middle}`, {}],
    ["open", `$${windows.at(-1)}`, {}],
    ["undated", "$:from=none:to=none", { config: { maxWindowRows: 1_000 } }],
    ["paged", paged.replace("$$", "\0"), DAILY],
  ];
  const times = { once: "1", twice: "2", "for ever": "always" };
  return CUTS.flatMap((cut) =>
    targets.flatMap(([target, fault, more]) =>
      Object.entries(times).flatMap(([often, count]) => {
        const name = `${cut}, ${target} window, ${often}`;
        const faults = `${fault.replaceAll("$", cut).replace("\0", "$")}:times=${count}`;
        return whole(`${name}, still | ${faults}\n${name}, moving | ${faults} ${MOVING}`, more);
      }),
    ),
  );
}

/** The windows that a first sync of the lab's sandbox reads from exports, oldest first, as options of a fault. */
function windowsOf(): Promise<readonly string[]> {
  return withSandbox(LAB_SANDBOX, async (sandbox) => {
    await readOnce({ config: labConfig(sandbox), state: null });
    return sandbox.requests
      .filter(({ path }) => path.endsWith("/stream"))
      .map(
        ({ query: { discovered_from: from, discovered_to: to } }) =>
          `:from=${from ?? "none"}:to=${to ?? "none"}`,
      )
      .sort();
  });
}

const LINES = "stream-failed garbage not-object=null not-object=[1] no-key bad-utf8".split(" ");
const OTHER_CUTS = "reset midline gzip-trailer stall".split(" ");
const WALKING = "recheck=3:times=always arrive=2:times=always";
const LATE = "hide=100, a source is granted, or an index catches up";
const HARMLESS = "surrogate nul big-int wrong-type new-field blank-lines crlf bom".split(" ");

const single = (): readonly Scenario[] => [
  ...[...LINES, ...OTHER_CUTS].flatMap((fault) => [
    ...whole(`${fault}, once | ${fault}\n${fault} before the first row | ${fault}:after=0:times=3`),
    // Each silence lasts its time, so fewer days fall silent.
    ...whole(`${fault}, every export, for ever | ${fault}:times=always`, fault === "stall" ? SMALL : {}),
  ]),
  ...whole(each(LINES, "$ after the last row | $:after=all")),
  ...whole(each(HARMLESS, "$, every export | $:times=always")),
  ...whole(`
    drip=500 | drip=500:times=always
    gateway=4000, every export | gateway=4000:times=always
    long-line of 17 MB | long-line=17000000
    no-key=4, every export | no-key=4:times=always
    escaped, and a day that no export closes | escaped:times=always ${PAGED}`),
  ...complete(`escaped, moving | escaped:times=always ${MOVING}`),

  ...whole(each(["omit=3", "duplicate=20", "duplicate-omit=5", "count=3", "cap=20"], "$")),
  ...whole(`
    page-repeats, and a day that no export closes | page-repeats end${DAY}:times=always
    short-page, and a day that no export closes | short-page end${DAY}:times=always`),
  ...whole("omit=3 where each day is a window | omit=3", DAILY),
  ...whole("null-total, verify_counts off | null-total", { config: { verifyCounts: false } }),
  ...residual("omit=3, lists too | omit=3:lists=too"),
  ...refused("count=-3\nnull-total\nfilters-ignored\nkeyless=3"),

  ...whole(each([500, 502, 503, 423, 408], "status=$, twice | status=$:times=2")),
  ...refused(each([500, 502, 503, 423, 408, 400, 401, 403, 404], "status=$:times=always")),
  ...refused(each(["QUOTA_EXCEEDED", "ENDPOINT_NOT_ON_PLAN"], "status=403:code=$:skip=5:times=always")),
  ...whole(each(["429=2", "429=2:date=1", "429:header=none"], "$:times=5")),
  ...whole("html, an export | html:path=stream"),
  ...whole(each(["wrong-content", "leak", "stall-headers", "count-fails"], "$, twice | $:times=2")),
  ...refused(each(["html", "wrong-content", "leak", "count-fails", "429=300"], "$:times=always")),
  ...refused("status=500:skip=9:times=always\nredirect=https://elsewhere.example/:times=always"),

  ...whole(each(["recheck", "arrive"], "$=5, during every export | $=5:times=always")),
  ...whole(`
    recheck, arrive and flip, during every export | ${WALKING} flip=3:times=always
    midnight during the first export | midnight recheck=2:times=always
    midnight during the fourth export | midnight:skip=3 recheck=2:times=always
    midnight during the open window | midnight:from=2026-03-19:to=none arrive=2:times=always`),
  ...whole("flip=5, of users only | flip=5:times=always", { config: { isUser: "true" } }),
  ...whole(`a local clock an hour ahead, moving | ${WALKING}`, { skew: 3_600_000 }),
  ...whole(`a local clock an hour behind, moving | ${WALKING}`, { skew: -3_600_000 }),
  ...whole(`eight workers, moving | ${WALKING}`, { config: { numWorkers: 8, maxWindowRows: 10 } }),
  ...whole(
    `eight workers, moving, every export broken off after three | ${WALKING} end:skip=3:times=always`,
    {
      config: { numWorkers: 8, maxWindowRows: 40 },
    },
  ),

  // Bytes that attack their reader.
  ...whole(`
    gzip-bomb=64, a list | gzip-bomb=64:path=/people$
    gzip-bomb=64, an export | gzip-bomb=64:path=stream
    early-hints, a list | early-hints:path=/people$
    endless=blank, an export | endless=blank:every=20
    endless=row, an export | endless=row:every=1
    drip=1 of a page | drip=1:every=2:path=/people$
    deep, every export | deep:times=always:after=2
    terminal, every export | terminal:times=always:after=2
    deep, every page | deep:path=/people$:times=always ${PAGED}`),
  ...complete(
    each(["blank", "row"], "endless=$ behind the last row | endless=$:after=all:every=1:times=always"),
    ONE_WINDOW,
  ),

  // Reasonable services that are odd: exports with a limit, lists with a depth, rows that share a key.
  ...complete(
    each(["504", "500", "silence"], "export-limit=100:how=$, in one window | export-limit=100:how=$"),
    ONE_WINDOW,
  ),
  ...complete(each(["list-depth=100", "beginning=ignored", "beginning=refused", "export-limit=0"], "$")),
  ...whole(`
    list-depth=100, and people without a date arrive | list-depth=100 arrive-undated=2:skip=3
    undate=2, two people lose their date | undate=2:skip=6
    three people get a date, and three others come | date-undated=3:skip=6 arrive-undated=3:skip=6`),
  ...whole("one of 2,000 people without a date gets one | date-undated=1:skip=6", {
    ...ONE_WINDOW,
    sandbox: { ...SMALL.sandbox, undated: 2_000 },
  }),
  ...residual("omit=20:lists=too, erased people | omit=20:lists=too"),
  ...whole(each([1, 3, 6], "lag=$, while people move | lag=$ move=1:times=always"), {
    sandbox: { people: 200, days: 20 },
    waits: true,
  }),
  ...refused("count=5000000000"),
  // What the first sync cannot see, and the next ones must find.
  ...complete(`hide=300, nothing is there yet | hide=300\n${LATE} | hide=100`, { isLate: true }),
  ...complete(`${LATE}, in one window | hide=100`, { ...ONE_WINDOW, isLate: true }),
];

/** Lists that lie, beside exports that end early: no page may count for more than it shows. */
function lists(): readonly Scenario[] {
  const lying = [
    ..."random-order list-end=20 list-end=150 keyless=3 cap=150".split(" "),
    ...[1, 2, 10, 100, 290].map((less) => `count=-${less}`),
    "random-order of a second | random-order=1",
    "broken-page, twice | broken-page:times=2",
    "broken-page, always | broken-page:times=always",
    "keyless=3 and random-order | keyless=3 random-order",
  ];
  return [
    ...lying.flatMap((line) => {
      const [name, faults = name] = line.split(" | ");
      const ending = (when: string, more?: More) =>
        whole(`${name}, and every export${when} ends early | ${faults} ${CUT_SHORT}`, more);
      return [
        ...whole(`${name}, and a day that no export closes | ${faults} ${PAGED}`),
        ...ending(""),
        ...ending(" of one day", { sandbox: { people: 200, days: 1 } }),
        ...ending(" where each day is a window", DAILY),
      ];
    }),
    ...complete("random-order\nlist-end=20\narrive-undated=2, before the first request | arrive-undated=2"),
    ...refused(`broken-page and no export that is whole | broken-page:times=always ${CUT_SHORT}`),
    ...["arrive-undated=2", "date-undated=2"].flatMap((fault) =>
      whole(each([1, 2, 3, 4, 6], `${fault} after $ requests | ${fault}:skip=$`)),
    ),
    ...whole(`
      arrive-undated=1, before every request | arrive-undated=1:times=12
      arrive=1 and date-undated=1, before exports and requests | arrive=1:times=always date-undated=1:times=3`),
  ];
}

/** Dates of other times, in other spellings, on another clock. A run that has little to read asks little. */
function dates(): readonly Scenario[] {
  const quiet: More = { mostRequestsHealed: 8 };
  const days = ["0001-01-01", "1969-12-31", "1970-01-01", "2026-03-21", "2999-01-01"];
  return [
    ...complete(each(SPELLINGS, "dates=$")),
    ...residual("dates=unreadable"),
    ...complete(each(days, "redate=$:people=3"), quiet),
    ...complete(each(days, "redate=$:people=2 in a small account | redate=$:people=2"), {
      ...quiet,
      config: { maxWindowRows: 1_000 },
    }),
    ...complete(each([5, 3600, -5, -3600], "clock-behind=$"), quiet),
    ...whole(each([5, -5], `clock-behind=$, moving | clock-behind=$ ${MOVING}`)),
    ...whole(
      `clock-behind=-259200, days ahead, and every export ends early | clock-behind=-259200 ${CUT_SHORT}`,
    ),
    ...complete("clock-behind=-3888000, 45 days ahead | clock-behind=-3888000"),
  ];
}

/** People leave the days that are read for today, all the time and faster and faster. Nothing fails for that. */
function draining(): readonly Scenario[] {
  const more: More = { sandbox: { people: 1200, days: 60 }, config: { maxWindowRows: 150 } };
  return ["oldest", "random"].flatMap((order) =>
    Object.entries({ slowly: 200, steadily: 40, fast: 8 }).flatMap(([speed, every]) => {
      const [name, drain] = [`draining ${speed}, ${order} first`, `drain=1:every=${every}:order=${order}`];
      const others = `${name}, and every third export ends early | ${drain} end:skip=2:times=4`;
      return [
        ...complete(`${name} | ${drain}`, more),
        ...whole(`${name}, and omit=3 | ${drain} omit=3\n${others}`, more),
      ];
    }),
  );
}

/** Companies come by windows where the service dates them, and otherwise as one body. */
function companies(): readonly Scenario[] {
  const broken = [...CUTS, "stream-failed", "garbage", "bad-utf8"];
  const faults = [
    ...broken.flatMap((fault) => [`${fault}:times=1`, `${fault}:times=always`]),
    ..."omit=3 duplicate-omit=5 count=3 cap=20 count=-3 list-end=50 random-order".split(" "),
    ..."no-company-list dates=epoch-ms escaped:times=always".split(" "),
  ];
  const beside = "cap=80 cap=100 count=-60 list-end=100 random-order null-total no-company-list".split(" ");
  return [true, false].flatMap((companiesDated) => {
    const name = companiesDated ? "by windows" : "as one body";
    const more = (count: number): More => ({
      stream: "companies",
      sandbox: { people: 3, companies: count, companiesDated },
    });
    return [
      ...whole(each(faults, `companies ${name}, $ | $`), more(200)),
      ...whole(each(beside, `companies ${name}, $, and every export ends early | $ ${CUT_SHORT}`), more(200)),
      // Their keys are others once the fault is gone.
      ...residual(`twins=2, companies ${name} | twins=2`, more(60)),
    ];
  });
}

/** All scenarios but those of cuts. */
const SCENARIOS: readonly Scenario[] = [
  ...[...single(), ...lists(), ...dates(), ...draining(), ...companies()],
];
export const FAULTS_TRIED: readonly string[] = [...CUTS, ...SCENARIOS.flatMap(({ faults }) => faults)];
