import type { Account } from "./account.ts";
import type { Scope } from "./answer.ts";
import type { Fault, FaultSpec } from "./fault.ts";
import type { Residue } from "./membership.ts";
import type { Row } from "./roster.ts";

const COUNT = { label: "K", type: "number", fallback: "1" } as const;

/** Things that happen at the service while a stream runs. */
export const EVENT_FAULTS: readonly (readonly [string, FaultSpec])[] = [
  [
    "recheck",
    {
      kind: "event",
      description: "so many of the stream's members are checked again, some already sent and some not",
      argument: COUNT,
      happen: (fault, account, scope) => recheck(fault, account, scope, ({ residue }) => residue),
    },
  ],
  [
    "flip",
    {
      kind: "event",
      description: "as recheck, and their answer to is_user turns round",
      argument: COUNT,
      happen: (fault, account, scope) => recheck(fault, account, scope, flipped(account)),
    },
  ],
  [
    "arrive",
    {
      kind: "event",
      description: "so many new members arrive",
      argument: COUNT,
      happen: ({ value }, { clock }, { collection }) => collection.roster.arrive(value, clock.now()),
    },
  ],
  [
    "midnight",
    { kind: "event", description: "the next UTC day begins", happen: (_, { clock }) => clock.passMidnight() },
  ],
];

function recheck(
  { value }: Fault,
  { clock }: Account,
  { collection, filter }: Scope,
  change: (row: Row) => Residue,
): void {
  const { roster } = collection;
  for (const row of roster.choose(filter, value, 0.5)) roster.check(row.index, clock.now(), change(row));
}

function flipped({ membership }: Account): (row: Row) => Residue {
  return ({ residue }) => membership.residueFor(membership.sources(residue).length === 0);
}
