#!/usr/bin/env node
import { main } from "./main.ts";

void main(async () => (await import("./tap-cli.ts")).parseTapCommand);
