/** The UTF-8 bytes of a text, one byte a character. */
export const toLatin1 = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

/** The text whose UTF-8 bytes stand one a character. */
export const fromLatin1 = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8");
