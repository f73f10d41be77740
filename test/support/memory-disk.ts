/** Entries that change together, as those of a rename in one folder do. */
type Change = ReadonlyMap<string, Inode | undefined>;

/** A file or a folder: what programs see of it, and what of that would survive a power cut. */
type Inode = {
  readonly number: number;
  data: Buffer;
  synced: Buffer;
  /** Of a folder: each change of an entry, in order, and how many of them are on the disk. */
  readonly changes: Change[] | undefined;
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
      if (inode.changes === undefined) found.set(path, inode.data.toString("latin1"));
      else for (const [below, text] of this.files(path)) found.set(below, text);
    }
    return found;
  }

  /** A reader takes a file away. */
  take(path: string): void {
    const [folder, name] = this.#place(path);
    folder.changes?.push(new Map([[name, undefined]]));
    folder.syncedChanges = folder.changes?.length ?? 0;
  }

  /** The functions that stand in for the module's own. */
  readonly module = {
    open: (path: string, flags: string) => this.#do(() => this.#open(path, flags)),
    writeFile: (file: { writeFile(content: string): Promise<void> }, content: string) =>
      file.writeFile(content),
    readFile: (path: string, _encoding: string) =>
      this.#do(() => {
        const inode = this.#existing(path);
        if (inode.changes !== undefined) throw failure("EISDIR");
        return inode.data.toString("utf8");
      }),
    readdir: (path: string) => this.#do(() => [...entriesOf(this.#existing(path)).keys()]),
    lstat: (path: string) => this.#do(() => statsOf(this.#existing(path))),
    stat: (path: string) => this.#do(() => statsOf(this.#existing(path))),
    mkdir: (path: string) => this.#do(() => this.#add(path, this.#inode(true))),
    link: (from: string, to: string) =>
      this.#do(() => {
        const inode = this.#existing(from);
        if (inode.changes !== undefined) throw failure("EPERM");
        this.#add(to, inode);
      }),
    rename: (from: string, to: string) =>
      this.#do(() => {
        const inode = this.#existing(from);
        const [[source, old], [target, name]] = [this.#place(from), this.#place(to)];
        if (source === target) {
          source.changes?.push(
            new Map([
              [name, inode],
              [old, undefined],
            ]),
          );
        } else {
          this.#set(to, inode);
          this.#set(from, undefined);
        }
      }),
    rm: (path: string, _options: object) => this.#do(() => this.#find(path) && this.#set(path, undefined)),
    copyFile: () => Promise.reject(failure("ENOTSUP")),
  };

  async #do<Result>(operation: () => Result, life = this.#life): Promise<Result> {
    if (life !== this.#life || this.#operations >= this.#crashAt) throw new Crash();
    this.#operations += 1;
    if (this.#operations >= this.#crashAt) throw new Crash();
    return operation();
  }

  #open(path: string, flags: string): object {
    if (this.refuses(path)) throw failure("EIO");
    const inode = flags === "wx" ? this.#add(path, this.#inode(false)) : this.#existing(path);
    const life = this.#life;
    let end = 0;
    const write = (bytes: Buffer, position: number): void => {
      const size = Math.max(inode.data.length, position + bytes.length);
      const data = Buffer.concat([inode.data, Buffer.alloc(size - inode.data.length)]);
      bytes.copy(data, position);
      inode.data = data;
    };
    const sync = (): void => {
      inode.synced = inode.data;
      inode.syncedChanges = inode.changes?.length ?? 0;
    };
    return {
      write: (text: string, position: number) => this.#do(() => write(Buffer.from(text), position), life),
      appendFile: async (bytes: Buffer) => {
        // In two steps, between which the process may end.
        const half = Math.ceil(bytes.length / 2);
        for (const piece of [bytes.subarray(0, half), bytes.subarray(half)]) {
          await this.#do(() => write(piece, end), life);
          end += piece.length;
        }
      },
      writeFile: (content: string) => this.#do(() => write(Buffer.from(content), 0), life),
      sync: () => this.#do(sync, life),
      datasync: () => this.#do(sync, life),
      chown: async () => undefined,
      chmod: async () => undefined,
      close: async () => undefined,
    };
  }

  #inode(isFolder: boolean): Inode {
    this.#numbers += 1;
    return {
      number: this.#numbers,
      data: EMPTY,
      synced: EMPTY,
      changes: isFolder ? [] : undefined,
      syncedChanges: 0,
    };
  }

  #add(path: string, inode: Inode): Inode {
    if (this.#find(path) !== undefined) throw failure("EEXIST");
    this.#set(path, inode);
    return inode;
  }

  #set(path: string, inode: Inode | undefined): void {
    const [folder, name] = this.#place(path);
    folder.changes?.push(new Map([[name, inode]]));
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
    let inode: Inode | undefined = this.#root;
    for (const name of path.split("/").filter((part) => part !== "" && part !== "."))
      inode = inode === undefined ? undefined : entriesOf(inode).get(name);
    return inode;
  }

  #lose(inode: Inode, choose: (below: number) => number): void {
    if (choose(2) === 0) inode.data = inode.synced;
    inode.synced = inode.data;
    if (inode.changes === undefined) return;
    inode.changes.length = inode.syncedChanges + choose(inode.changes.length - inode.syncedChanges + 1);
    inode.syncedChanges = inode.changes.length;
    for (const below of entriesOf(inode).values()) this.#lose(below, choose);
  }
}

const EMPTY = Buffer.alloc(0);

function entriesOf({ changes = [] }: Inode): Map<string, Inode> {
  const entries = new Map<string, Inode>();
  for (const [name, inode] of changes.flatMap((change) => [...change])) {
    if (inode === undefined) entries.delete(name);
    else entries.set(name, inode);
  }
  return entries;
}

const statsOf = ({ number, changes }: Inode): object => ({
  ino: number,
  dev: 1,
  mode: 0o600,
  uid: 0,
  gid: 0,
  isFile: () => changes === undefined,
  isDirectory: () => changes !== undefined,
  isSymbolicLink: () => false,
});

const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** The disk that stands in for the machine's own in a file of tests that replaces node:fs/promises by `standIns()`. */
export const mounted: { disk?: MemoryDisk } = {};

export async function standIns(original: () => Promise<unknown>): Promise<object> {
  const disk = ["readdir", "lstat", "stat", "mkdir", "link", "rename", "rm", "copyFile"];
  const made = ["open", "readFile", "writeFile", ...disk].map((name) => [
    name,
    (...args: unknown[]) => Reflect.get(mounted.disk?.module ?? {}, name)(...args),
  ]);
  return { ...((await original()) as object), ...Object.fromEntries(made) };
}
