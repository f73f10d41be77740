/**
 * All states that one run writes take at most so many times the last one, and so many bytes besides: the states of jobs may
 * be large.
 */
export const TIMES = 20;
export const BESIDES: number = 8 * 1024 * 1024;

/** The part of that which streams of rows have, where one state holds them and the jobs. */
export const PART_OF_ROWS = 0.5;
