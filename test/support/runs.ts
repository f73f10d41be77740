/** Whether `npm run test:lab` runs the tests, which repeats more than `npm test` has time for. */
export const IS_LONG = process.env["TEST_LONG"] !== undefined;

/** How often a test repeats what it tries at random: `long` times in `npm run test:lab`. */
export const runs = (short: number, long: number): number => (IS_LONG ? long : short);
