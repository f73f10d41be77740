/** Entries that change together, as those of a rename in one folder do. */
type Change = readonly (readonly [name: string, inode: Inode | undefined])[];

/** A file or a folder: what programs see of it, and what of that would survive a power cut. */
type Inode = {
  readonly number: number;
  readonly isFolder: boolean;
  data: Buffer;
  synced: Buffer;
  /** Of a folder: each change of an entry, in order, and how many of them are on the disk. */
  readonly changes: Change[];
  syncedChanges: number;
};

/** What the program ran into: from here on its process does nothing any more. */
export class Crash extends Error {}

/** How a program ends: a killed process leaves all that it wrote, a power cut only what was synced and, perhaps, more. */
export type CrashKind = "kill" | "power";

/**
 * The part of `node:fs/promises` that this program writes files with, in memory. It crashes at a chosen operation.
 * After a power cut each file has its synced content or its last one, and each folder any of its entries' states since it
 * was synced: no order between them is kept, which is worse than what disks do.
 */
export class MemoryDisk {
  #numbers = 0;
  readonly #root: Inode = this.#inode(true);
  #operations = 0;
  #crashAt = Number.POSITIVE_INFINITY;
  #life = 0;
  /** Paths that cannot be opened, as on a disk that is full or broken. */
  refuses: (path: string) => boolean = () => false;

  /** Begins the life of a process. @param crashAt the operation (from 1) that does not come to its end */
  start(crashAt = Number.POSITIVE_INFINITY): void {
    this.#life += 1;
    this.#operations = 0;
    this.#crashAt = crashAt;
  }

  get operations(): number {
    return this.#operations;
  }

  /** Ends the life of a process. @param choose gives a whole number below its argument */
  crash(kind: CrashKind, choose: (below: number) => number): void {
    this.#life += 1;
    if (kind === "power") this.#lose(this.#root, choose);
  }

  /** The content of each visible file below a folder, by its path. */
  files(folder = ""): Map<string, string> {
    const found = new Map<string, string>();
    for (const [name, inode] of entriesOf(this.#find(folder) ?? this.#root)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      if (!inode.isFolder) found.set(path, inode.data.toString("latin1"));
      else for (const [below, text] of this.files(path)) found.set(below, text);
    }
    return found;
  }

  /** A reader takes a file away. */
  take(path: string): void {
    this.#set(path, undefined);
    const [folder] = this.#place(path);
    folder.syncedChanges = folder.changes.length;
  }

  /** Does what a function of the module would do. */
  perform(name: string, args: readonly string[]): Promise<unknown> {
    return this.#do(() => this.#functions[name]?.(...args));
  }

  readonly #functions: Readonly<Record<string, (...args: string[]) => unknown>> = {
    open: (path: string, flags: string) => this.#open(path, flags),
    readFile: (path: string, encoding?: string) => {
      const { data } = this.#existing(path);
      return encoding === undefined ? data : data.toString(encoding as BufferEncoding);
    },
    readdir: (path: string) => [...entriesOf(this.#existing(path)).keys()],
    lstat: (path: string) => statsOf(this.#existing(path)),
    stat: (path: string) => statsOf(this.#existing(path)),
    mkdir: (path: string) => void this.#add(path, this.#inode(true)),
    link: (from: string, to: string) => void this.#add(to, this.#existing(from)),
    rename: (from: string, to: string) => {
      const [[source, old], [target, name]] = [this.#place(from), this.#place(to)];
      const changes: Change = [
        [name, this.#existing(from)],
        [old, undefined],
      ];
      // Across folders nothing keeps the two together.
      if (source === target) source.changes.push(changes);
      else
        for (const [nth, folder] of [target, source].entries())
          folder.changes.push(changes.slice(nth, nth + 1));
    },
    rm: (path: string) => {
      if (this.#find(path) !== undefined) this.#set(path, undefined);
    },
    copyFile: () => {
      throw failure("ENOTSUP");
    },
  };

  async #do<Result>(operation: () => Result, life = this.#life): Promise<Result> {
    if (life !== this.#life || this.#operations >= this.#crashAt) throw new Crash();
    this.#operations += 1;
    if (this.#operations >= this.#crashAt) throw new Crash();
    return operation();
  }

  #open(path: string, flags: string): Handle {
    if (this.refuses(path)) throw failure("EIO");
    const inode = flags === "wx" ? this.#add(path, this.#inode(false)) : this.#existing(path);
    const life = this.#life;
    let end = 0;
    const write = (bytes: Buffer, position: number): Promise<void> =>
      this.#do(() => {
        const data = Buffer.alloc(Math.max(inode.data.length, position + bytes.length));
        inode.data.copy(data);
        bytes.copy(data, position);
        inode.data = data;
      }, life);
    const sync = (): Promise<void> =>
      this.#do(() => {
        inode.synced = inode.data;
        inode.syncedChanges = inode.changes.length;
      }, life);
    return {
      write: (text, position) => write(Buffer.from(text), position),
      appendFile: async (bytes) => {
        // In two steps, between which the process may end.
        const half = Math.ceil(bytes.length / 2);
        for (const piece of [bytes.subarray(0, half), bytes.subarray(half)]) {
          await write(piece, end);
          end += piece.length;
        }
      },
      createReadStream: () => [this.#do(() => inode.data, life)],
      ...{ sync, datasync: sync },
      ...{ chown: async () => {}, chmod: async () => {}, close: async () => {} },
    };
  }

  #inode(isFolder: boolean): Inode {
    this.#numbers += 1;
    return { number: this.#numbers, isFolder, data: EMPTY, synced: EMPTY, changes: [], syncedChanges: 0 };
  }

  #add(path: string, inode: Inode): Inode {
    if (this.#find(path) !== undefined) throw failure("EEXIST");
    this.#set(path, inode);
    return inode;
  }

  #set(path: string, inode: Inode | undefined): void {
    const [folder, name] = this.#place(path);
    folder.changes.push([[name, inode]]);
  }

  #place(path: string): [folder: Inode, name: string] {
    const names = path.split("/");
    const name = names.pop() ?? "";
    return [this.#existing(names.join("/")), name];
  }

  #existing(path: string): Inode {
    const inode = this.#find(path);
    if (inode === undefined) throw failure("ENOENT");
    return inode;
  }

  #find(path: string): Inode | undefined {
    const names = path.split("/").filter((part) => part !== "" && part !== ".");
    return names.reduce<Inode | undefined>((inode, name) => inode && entriesOf(inode).get(name), this.#root);
  }

  #lose(inode: Inode, choose: (below: number) => number): void {
    if (choose(2) === 0) inode.data = inode.synced;
    inode.synced = inode.data;
    if (!inode.isFolder) return;
    inode.changes.length = inode.syncedChanges + choose(inode.changes.length - inode.syncedChanges + 1);
    inode.syncedChanges = inode.changes.length;
    for (const below of entriesOf(inode).values()) this.#lose(below, choose);
  }
}

type Handle = {
  write(text: string, position: number): Promise<void>;
  appendFile(bytes: Buffer): Promise<void>;
  createReadStream(): readonly Promise<Buffer>[];
} & Readonly<Record<"sync" | "datasync" | "chown" | "chmod" | "close", () => Promise<void>>>;

const EMPTY = Buffer.alloc(0);

function entriesOf({ changes }: Inode): Map<string, Inode> {
  const entries = new Map<string, Inode>();
  for (const [name, inode] of changes.flat()) {
    if (inode === undefined) entries.delete(name);
    else entries.set(name, inode);
  }
  return entries;
}

const statsOf = ({ number, isFolder }: Inode): object => ({
  ...{ ino: number, dev: 1, mode: 0o600, uid: 0, gid: 0 },
  isFile: () => !isFolder,
  isDirectory: () => isFolder,
  isSymbolicLink: () => false,
});

const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** The disk that stands in for the machine's own in a file of tests that replaces node:fs/promises by `standIns()`. */
export const mounted: { disk?: MemoryDisk } = {};

export async function standIns(original: () => Promise<unknown>): Promise<object> {
  const names = ["open", "readFile", "readdir", "lstat", "stat", "mkdir", "link", "rename", "rm", "copyFile"];
  const made = names.map((name) => [name, (...args: string[]) => mounted.disk?.perform(name, args)]);
  const writeFile = (file: Handle, content: string): Promise<void> => file.write(content, 0);
  return { ...((await original()) as object), ...Object.fromEntries(made), writeFile };
}
