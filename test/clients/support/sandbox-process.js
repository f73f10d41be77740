// The sandbox in a process of its own, for suites that are not written in TypeScript. Options: JSON as the first
// argument. Each line on stdin names a control and its arguments, such as ["arrive", 3]; each gets one line as an answer.
import { createInterface } from "node:readline";
import { startSandbox } from "../../../dist/sandbox/server.js";

const answer = (value) => process.stdout.write(`${JSON.stringify(value ?? null)}\n`);
const sandbox = await startSandbox(JSON.parse(process.argv[2] ?? "{}"));
answer({ url: sandbox.url, key: sandbox.key, port: sandbox.port });
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...words] = JSON.parse(line);
  const control = sandbox[name];
  answer(typeof control === "function" ? await control(...words) : control);
}
await sandbox.close();
