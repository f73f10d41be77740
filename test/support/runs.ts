/** Whether the tests run in the lab or at night, which repeat more than `npm test` has time for. */
export const IS_LONG = process.env["TEST_LONG"] !== undefined;

/** How often a test repeats what it tries at random: `long` times in the lab and at night. */
export const runs = (short: number, long: number): number => (IS_LONG ? long : short);
