/**
 * Text as it travels: a string whose characters are the bytes of its UTF-8 form.
 * Such strings stay one byte a character in memory and are written as latin1, which is what makes streams fast.
 */
export const toWire = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

export const fromWire = (text: string): string => Buffer.from(text, "latin1").toString("utf8");

export const wireJson = (value: unknown): string => toWire(JSON.stringify(value));
