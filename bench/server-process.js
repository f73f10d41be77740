// Starts a server in a process of its own and knows when to end it.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** @param module next to this file; sends its address once it listens, and may answer messages */
export async function startServer(module, ...args) {
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), args.map(String));
  const [url] = await once(child, "message");
  return {
    url,
    stop: () => child.connected && child.disconnect(),
    ask: async (message) => {
      child.send(message);
      const [answer] = await once(child, "message");
      return answer;
    },
  };
}
