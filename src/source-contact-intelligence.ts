#!/usr/bin/env node
import { main } from "./main.ts";

await main(async () => (await import("./cli.ts")).parseCommand);
