#!/usr/bin/env node
import { main } from "./main.ts";

void main(async () => (await import("./cli.ts")).parseCommand);
