import { isObject } from "../../../src/base/json.ts";
import type { Dice } from "./dice.ts";

/** Names that somebody might stumble over. */
export const NAMES: readonly string[] = [
  ..."__proto__ constructor prototype toString hasOwnProperty valueOf toJSON then".split(" "),
  ..."id domain discoveredAt success error code data type items $ref properties 0 -1 a.b é 𝄞".split(" "),
  ...["", "\u0000", "\u001b[2J", "\u202e", "\u2028", "\ud800", "a\nb", "x".repeat(70_000)],
];

const LEAVES: readonly unknown[] = [
  ...[null, true, false, 0, -0, 1, -1, 1.5, 1e308, 2 ** 53, 2 ** 53 + 2, -(2 ** 63), 4_294_967_296, 5e-324],
  ...["", " ", "\u0000", "\ud800", "\udc00x", "\u001b]0;x\u0007", "\u202eabc", "a\r\nb"],
  ..."0 true null .. ../../x NaN 1e999 [] {} // http://[ http://127.0.0.1:9 https://a:b@c file:///etc".split(
    " ",
  ),
  ..."2026-02-30 2026-01-02 2026-01-02T03:04:05Z 0000-00-00 9999-12-31T23:59:60+99:99".split(" "),
  "+275760-09-14",
  ...["(", "[", "*", "(a+)+$", "x".repeat(70_000), "𝄞".repeat(300), "%00", "%", "people", "string"],
];

/** Any JSON value, of hostile parts. */
export function anyValue(dice: Dice, depth = 3): unknown {
  if (depth === 0 || dice.chance(0.4)) return dice.pick(LEAVES);
  if (dice.chance(0.03)) return deep(dice);
  const size = dice.below(4);
  if (dice.chance(0.4)) return Array.from({ length: size }, () => anyValue(dice, depth - 1));
  return Object.fromEntries(
    Array.from({ length: size }, () => [dice.pick(NAMES), anyValue(dice, depth - 1)] as const),
  );
}

/** The value with some of its parts replaced, renamed, doubled, nested or left out. */
export function mutated(value: unknown, dice: Dice, rate = 0.12): unknown {
  if (dice.chance(rate)) return anyValue(dice);
  if (dice.chance(rate / 10)) return deep(dice, value);
  if (Array.isArray(value)) {
    const kept = value.filter(() => !dice.chance(rate / 2)).map((inner) => mutated(inner, dice, rate));
    return dice.chance(rate) ? [...kept, ...kept, anyValue(dice)] : kept;
  }
  if (!isObject(value)) return value;
  const entries = Object.entries(value)
    .filter(() => !dice.chance(rate / 2))
    .map(
      ([name, inner]) =>
        [dice.chance(rate / 3) ? dice.pick(NAMES) : name, mutated(inner, dice, rate)] as const,
    );
  return Object.fromEntries(dice.chance(rate) ? [...entries, [dice.pick(NAMES), anyValue(dice)]] : entries);
}

function deep(dice: Dice, inside: unknown = 1): unknown {
  let value = inside;
  const isList = dice.chance(0.5);
  for (let levels = dice.pick([50, 999, 1_100, 2_000]); levels > 0; levels--)
    value = isList ? [value] : { a: value };
  return value;
}

const ODD_BYTES = [0, 10, 13, 34, 44, 92, 123, 125, 0x80, 0xc3, 0xff];

/** Bytes with some of them changed, cut out or doubled. */
export function bent(bytes: Buffer, dice: Dice): Buffer {
  const copy = Buffer.from(bytes);
  for (let times = dice.below(4); times > 0 && copy.length > 0; times--) {
    copy[dice.below(copy.length)] = dice.pick([...ODD_BYTES, dice.below(256)]);
  }
  const at = dice.below(copy.length + 1);
  if (dice.chance(0.1)) return copy.subarray(0, at);
  if (dice.chance(0.1)) return Buffer.concat([copy.subarray(0, at), copy]);
  return copy;
}
