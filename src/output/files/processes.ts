import { readFileSync, readlinkSync } from "node:fs";

/** The state of a named process; `unknown`: this machine cannot see the process. */
type ProcessState = "running" | "ended" | "unknown";

/** Names processes, so that other processes of one machine know whether they still run. */
export type Processes = {
  /** The name of this process; undefined: the system has no unique names. */
  readonly ownName: string | undefined;
  stateOf(name: string): ProcessState;
};

/** Unique names under Linux: boot, namespace, process id and start. Processes of another boot or container are `unknown`. */
export function systemProcesses(pid: number): Processes {
  const place = placeOf(pid);
  const start = place === undefined ? undefined : startTimeOf(pid);
  if (place === undefined || start === undefined) return { ownName: undefined, stateOf: () => "unknown" };
  return { ownName: `${place} ${pid} ${start}`, stateOf: (name) => processState(name, place) };
}

function processState(name: string, place: string): ProcessState {
  const [, otherPlace, pid, start] = PROCESS_NAME.exec(name) ?? [];
  // A system that hides the first process may hide more processes.
  if (otherPlace !== place || startTimeOf(1) === undefined) return "unknown";
  return startTimeOf(Number(pid)) === start ? "running" : "ended";
}

const PROCESS_NAME = /^([0-9a-f-]{36} pid:\[\d+\]) (\d+) (\d+)$/;

/** The boot and the process namespace; undefined: /proc is absent, or shows another namespace. */
function placeOf(pid: number): string | undefined {
  try {
    if (readlinkSync("/proc/self") !== String(pid)) return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return undefined;
  }
}

/** The start of a process in ticks since the boot; undefined: the process has ended, or is a zombie. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name, which may contain anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
