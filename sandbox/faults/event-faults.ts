import type { Account } from "../data/account.ts";
import type { Row } from "../data/dataset.ts";
import { invalidParameter } from "../data/service-error.ts";
import type { UsageSlot } from "../data/sources.ts";
import type { Scope } from "./answer.ts";
import type { Fault, FaultTable } from "./fault.ts";

const COUNT = { label: "K", type: "number", fallback: "1" } as const;

/** Things that happen at the service while a stream runs. */
export const EVENT_FAULTS: FaultTable = {
  recheck: {
    kind: "event",
    description: "K of the stream's members are checked again, some already sent and some not",
    argument: COUNT,
    happen: (fault, account, scope) => recheck(fault, account, scope, ({ usageSlot }) => usageSlot),
  },
  flip: {
    kind: "event",
    description: "as recheck, and their answer to is_user turns round",
    argument: COUNT,
    happen: (fault, account, scope) => recheck(fault, account, scope, flipped(account.membership)),
  },
  arrive: {
    kind: "event",
    description: "K new members arrive",
    argument: COUNT,
    happen: ({ value }, { clock }, { collection }) => collection.dataset.arrive(value, clock.now()),
  },
  midnight: {
    kind: "event",
    description: "the next UTC day begins",
    happen: (_, { clock }) => clock.passMidnight(),
  },
  drain: {
    kind: "event",
    when: "repeatedly",
    lasts: true,
    description:
      "after every= (10) rows of a stream K members are checked again: the oldest, or by order=random",
    argument: COUNT,
    options: ["every", "order"],
    happen: drain,
  },
  "arrive-undated": {
    kind: "event",
    when: "before",
    on: ["list", "stream"],
    description: "K people arrive who have no date, before a request is answered",
    argument: COUNT,
    happen: ({ value }, _, { collection }) => collection.dataset.arrive(value, null),
  },
  "date-undated": {
    kind: "event",
    when: "before",
    on: ["list", "stream"],
    description: "K people without a date are checked, before a request is answered",
    argument: COUNT,
    happen: ({ value }, { clock }, { collection: { dataset } }) => {
      for (const { index, usageSlot } of dataset.undated(value)) dataset.check(index, clock.now(), usageSlot);
    },
  },
  undate: {
    kind: "event",
    when: "before",
    on: ["list", "stream"],
    description: "K people lose their date, before a request is answered",
    argument: COUNT,
    happen: ({ value, nth }, _, { collection: { dataset } }) => {
      const chosen = dataset.choose({}, value, (0.3 + 0.618 * nth) % 1);
      for (const { index, usageSlot } of chosen) dataset.check(index, null, usageSlot);
    },
  },
  move: {
    kind: "event",
    when: "before",
    on: ["list", "stream"],
    description: "K people of any days are checked again, before a request is answered",
    argument: COUNT,
    happen: (fault, account, scope) => drain({ ...fault, options: RANDOM }, account, scope, 0),
  },
  redate: {
    kind: "event",
    when: "before",
    on: ["list", "stream"],
    description:
      "the dates of people=K (1) people become this one, before a request is answered: 0001-01-01, 2999-01-01",
    argument: { label: "DATE", type: "text" },
    options: ["people"],
    happen: redate,
  },
};

const RANDOM = new Map([["order", "random"]]);

function drain(
  { value, nth: request, options }: Fault,
  { clock }: Account,
  { collection }: Scope,
  nth: number,
): void {
  const { dataset } = collection;
  const phase = (0.5 + 0.618 * (nth + 7 * request)) % 1;
  const moving =
    options.get("order") === "random" ? dataset.choose({}, value, phase) : dataset.oldest({}, value);
  for (const { index, usageSlot } of moving) dataset.check(index, clock.now(), usageSlot);
}

function redate({ text, options }: Fault, _: Account, { collection: { dataset } }: Scope): void {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw invalidParameter(`"${text}" is not a date`);
  for (const { index, usageSlot } of dataset.choose({}, Number(options.get("people") ?? 1), 0.3))
    dataset.check(index, time, usageSlot);
}

function recheck(
  { value }: Fault,
  { clock }: Account,
  { collection, filter }: Scope,
  change: (row: Row) => UsageSlot,
): void {
  const { dataset } = collection;
  for (const row of dataset.choose(filter, value, 0.5)) dataset.check(row.index, clock.now(), change(row));
}

function flipped(membership: Account["membership"]): (row: Row) => UsageSlot {
  return ({ usageSlot }) => membership.slotFor(membership.sources(usageSlot).length === 0);
}
