import { main } from "./main.ts";

// The work is done while this module loads, because the commands import what they need when they need it.
const print = (text: string): void => void process.stdout.write(`${text}\n`);
process.exitCode = await main(process.argv.slice(2), print, (target, seed, figures) => {
  process.send?.({ target, seed, figures });
});
if (process.connected) process.disconnect();
