import { FAULTS } from "../../src/sandbox/faults.ts";
import { labConfig, readOnce, withSandbox } from "./lab.ts";
import { LAB_SANDBOX, type Scenario } from "./scenario.ts";

/** The eight ways in which a body is cut, as field reports know them. */
export const CUTS = [
  "close",
  "close-gzip",
  "end",
  "gzip-cut",
  "fin",
  "length",
  "length-gzip",
  "length-reset",
];

const TIMES = [
  ["once", "1"],
  ["twice", "2"],
  ["for ever", "always"],
] as const;

const MOVING = ["recheck=2:times=always", "arrive=1:times=always"];
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
      .map(({ query }) => ({
        from: query["discovered_from"] ?? "none",
        to: query["discovered_to"] ?? "none",
      }))
      .sort((a, b) => (a.from < b.from ? -1 : 1));
  });
}

const at = ({ from, to }: Span): string => `:from=${from}:to=${to}`;

export async function allScenarios(): Promise<readonly Scenario[]> {
  return [...faultScenarios(), ...companyScenarios(), ...(await cutScenarios())];
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
  const targets: readonly (readonly [
    string,
    (cut: string, times: string) => readonly string[],
    Scenario["config"],
  ])[] = [
    ["first", (cut, times) => [`${cut}${at(first)}:times=${times}`], {}],
    ["middle", (cut, times) => [`${cut}${at(middle)}:times=${times}`], {}],
    ["open", (cut, times) => [`${cut}${at(open)}:times=${times}`], {}],
    ["undated", (cut, times) => [`${cut}:from=none:to=none:times=${times}`], { maxWindowRows: 1_000 }],
    ["paged", paged, { maxWindowRows: 1 }],
  ];
  return CUTS.flatMap((cut) =>
    targets.flatMap(([target, faults, config]) =>
      TIMES.flatMap(([often, times]) =>
        PACES.map(
          ([pace, movement]): Scenario => ({
            name: `${cut}, ${target} window, ${often}, ${pace}`,
            faults: [...faults(cut, times), ...movement],
            ...(config !== undefined && { config }),
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

const refused = (name: string, config?: Scenario["config"]): Scenario => ({
  name,
  faults: [name],
  expect: "refused",
  ...(config !== undefined && { config }),
});

const LINES = ["stream-failed", "garbage", "not-object=null", "not-object=[1]", "no-key", "bad-utf8"];
const HARMLESS = ["surrogate", "nul", "big-int", "wrong-type", "new-field", "blank-lines", "crlf", "bom"];
const OTHER_CUTS = ["reset", "midline", "gzip-trailer", "stall"];

const FEW_DAYS = { sandbox: { people: 40, days: 6 } };

/** Every other fault of the sandbox, and totals that are not what they say. */
function faultScenarios(): readonly Scenario[] {
  const day = ":from=2026-02-10:to=2026-02-10";
  return [
    ...[...LINES, ...OTHER_CUTS].flatMap((fault) => [
      whole(`${fault}, once`, fault),
      // Each silence lasts its time, so fewer days fall silent.
      {
        ...whole(`${fault}, every export, for ever`, `${fault}:times=always`),
        ...(fault === "stall" && FEW_DAYS),
      },
      whole(`${fault} before the first row`, `${fault}:after=0:times=3`),
    ]),
    ...LINES.map((fault) => whole(`${fault} after the last row`, `${fault}:after=all`)),
    ...HARMLESS.map((fault) => whole(`${fault}, every export`, `${fault}:times=always`)),
    whole("drip=500", "drip=500:times=always"),
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
    whole("page-repeats, and a day that no export closes", "page-repeats", `end${day}:times=always`),
    whole("short-page, and a day that no export closes", "short-page", `end${day}:times=always`),
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

/** Companies come by windows where the service dates them, and otherwise as one body. */
function companyScenarios(): readonly Scenario[] {
  const kinds = [
    ["by windows", { people: 3, companies: 200 }],
    ["as one body", { people: 3, companies: 200, companiesDated: false }],
  ] as const;
  const broken = [...CUTS, "stream-failed", "garbage", "bad-utf8"];
  const faults = [
    ...broken.flatMap((fault) => [`${fault}:times=1`, `${fault}:times=always`]),
    ...["omit=3", "duplicate-omit=5", "count=3", "cap=20"],
  ];
  return kinds.flatMap(([kind, sandbox]) =>
    faults.map(
      (fault): Scenario => ({ ...whole(`companies ${kind}, ${fault}`, fault), stream: "companies", sandbox }),
    ),
  );
}

function movements(): readonly Scenario[] {
  const all = (fault: string): string => `${fault}:times=always`;
  return [
    whole("recheck=5, during every export", all("recheck=5")),
    whole("arrive=5, during every export", all("arrive=5")),
    whole("recheck, arrive and flip, during every export", all("recheck=3"), all("arrive=2"), all("flip=3")),
    { ...whole("flip=5, of users only", all("flip=5")), config: { isUser: "true" } },
    whole("midnight during the first export", "midnight", all("recheck=2")),
    whole("midnight during the fourth export", "midnight:skip=3", all("recheck=2")),
    { ...whole("midnight during the open window", "midnight:from=2026-03-19:to=none", all("arrive=2")) },
    { ...whole("a local clock an hour ahead, moving", all("recheck=3"), all("arrive=2")), skew: 3_600_000 },
    { ...whole("a local clock an hour behind, moving", all("recheck=3"), all("arrive=2")), skew: -3_600_000 },
    {
      ...whole("eight workers, moving", all("recheck=3"), all("arrive=2")),
      config: { numWorkers: 8, maxWindowRows: 10 },
    },
    {
      ...whole("eight workers, moving, every fourth export broken off", all("recheck=3"), all("end:skip=3")),
      config: { numWorkers: 8, maxWindowRows: 40 },
    },
  ];
}

/** Faults of the sandbox that could strike a sync of people and that no scenario has. */
export function uncovered(scenarios: readonly Scenario[]): readonly string[] {
  const used = new Set(scenarios.flatMap(({ faults }) => faults.map((fault) => fault.split(/[=:]/)[0])));
  return [...FAULTS].flatMap(([name, { kind }]) => (kind === "submission" || used.has(name) ? [] : [name]));
}
