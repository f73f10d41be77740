import { readFileSync, readlinkSync } from "node:fs";

/** Whether the process that wrote a name still runs; `unknown` where this machine cannot tell. */
type ProcessState = "running" | "ended" | "unknown";

/** Names processes so that another process of the same machine can tell whether they still run. */
export type Processes = {
  /** The name of this process; undefined where the system gives no name that is never used again. */
  readonly ownName: string | undefined;
  stateOf(name: string): ProcessState;
};

/** A name that Linux never uses again: boot, namespace, process id and start. Another boot or container is `unknown`. */
export function systemProcesses(pid: number): Processes {
  const place = placeOf(pid);
  const start = place === undefined ? undefined : startTimeOf(pid);
  if (place === undefined || start === undefined) return { ownName: undefined, stateOf: () => "unknown" };
  return { ownName: `${place} ${pid} ${start}`, stateOf: (name) => processState(name, place) };
}

function processState(name: string, place: string): ProcessState {
  const [, otherPlace, pid, start] = PROCESS_NAME.exec(name) ?? [];
  // Where the first process is hidden, others may be hidden too.
  if (otherPlace !== place || startTimeOf(1) === undefined) return "unknown";
  return startTimeOf(Number(pid)) === start ? "running" : "ended";
}

const PROCESS_NAME = /^([0-9a-f-]{36} pid:\[\d+\]) (\d+) (\d+)$/;

/** The boot and the process namespace; undefined if /proc is not there, or shows another namespace than ours. */
function placeOf(pid: number): string | undefined {
  try {
    if (readlinkSync("/proc/self") !== String(pid)) return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return undefined;
  }
}

/** When a process started, in ticks since the boot; undefined for one that has ended. A zombie has ended. */
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
