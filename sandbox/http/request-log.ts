/** One request as the sandbox saw it. `at` is epoch ms by the sandbox's clock; `status` is 0 while nothing was answered. */
export type SandboxRequest = {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly status: number;
  /** Whether the request carried a key in a header. */
  readonly headersKey: boolean;
};

export type LogEntry = { -readonly [Field in keyof SandboxRequest]: SandboxRequest[Field] };

const KEPT = 10_000;

/** The latest requests. The accepted key is never in it, in any place. */
export class RequestLog {
  readonly #key: string;
  readonly #entries: LogEntry[] = [];

  constructor(key: string) {
    this.#key = key;
  }

  get entries(): readonly SandboxRequest[] {
    return this.#entries;
  }

  open(entry: Omit<LogEntry, "status" | "query">, query: URLSearchParams): LogEntry {
    if (this.#entries.length >= 2 * KEPT) this.#entries.splice(0, KEPT);
    const shown = Object.fromEntries(
      [...query].map(([name, value]) => [this.#hide(name), this.#hide(value)]),
    );
    const opened: LogEntry = { ...entry, path: this.#hide(entry.path), query: shown, status: 0 };
    this.#entries.push(opened);
    return opened;
  }

  #hide(text: string): string {
    return text.replaceAll(this.#key, "***");
  }
}
