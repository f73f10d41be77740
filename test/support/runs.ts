/** Whether `npm run test:long` runs the tests, which repeats more than `npm test` has time for. */
export const IS_LONG = process.env["TEST_LONG"] !== undefined;

/** How often a test repeats what it tries at random: `long` times in `npm run test:long`. */
export const runs = (short: number, long: number): number => (IS_LONG ? long : short);
