// Other ways to read the service, as their authors would write them, with their own retries and checks switched on.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
export const CACHE = fileURLToPath(new URL("../.cache/storm", import.meta.url));
const MESSAGES = ["read", "--config", "config.json", "--catalog", "catalog.json"];
const STATE = ["--state", "state.json"];

/**
 * `pip`: what a virtual environment is made of, `needs`: programs on the path. `speaks`: messages on stdout, or `files` of JSON
 * lines below `rows`, whose field `cursor` is the date. `complaint`: lines of stderr that are warnings. `command` runs in a
 * folder with config.json and catalog.json; `resume` is added once a state.json is there.
 */
export const PEERS = [
  {
    ...{ id: "this-connector", name: "this connector", speaks: "airbyte", resume: STATE },
    command: [process.execPath, join(HERE, "../dist/source-contact-intelligence.js"), ...MESSAGES],
    settings: ["base_url", "api_key"],
  },
  {
    ...{ id: "airbyte-cdk", name: "Airbyte's Python CDK", pip: "airbyte-cdk==7.39.1", speaks: "airbyte" },
    command: ["source-declarative-manifest", ...MESSAGES, "--manifest-path", join(HERE, "airbyte-cdk.yaml")],
    resume: STATE,
  },
  {
    ...{ id: "singer-sdk", name: "Meltano's Singer SDK", pip: "singer-sdk==0.54.9", speaks: "singer" },
    command: ["python", join(HERE, "singer_tap.py"), "--config", "config.json"],
    ...{ resume: STATE, complaint: /\| (WARNING|ERROR|CRITICAL)|^Traceback/ },
  },
  {
    ...{ id: "dlt", name: "dlt's rest_api", pip: "dlt[filesystem]==1.31.0", speaks: "files" },
    ...{
      command: ["python", join(HERE, "dlt_pipeline.py")],
      complaint: /\[(WARNING|ERROR|CRITICAL)\]|^Traceback/,
    },
    ...{ rows: "delivered/contacts/people", cursor: "discovered_at" },
  },
  {
    ...{ id: "curl-jq", name: "curl and jq", needs: ["curl", "jq"], speaks: "files", rows: "delivered" },
    ...{ command: ["bash", join(HERE, "export.sh")], complaint: /^curl: |^jq: |^Warning/ },
  },
];

const succeeds = (program, ...args) => spawnSync(program, args, { stdio: ["ignore", 2, 2] }).status === 0;
const has = (program) => spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;

/** Installs what a peer needs, once. Returns why it cannot take part, if so. */
export function install({ id, pip, needs = [] }) {
  const missing = needs.filter((program) => !has(program));
  if (missing.length > 0) return `there is no ${missing.join(" and no ")} on the path`;
  if (pip === undefined) return undefined;
  const [home, stamp] = [join(CACHE, id), join(CACHE, id, "installed")];
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === pip) return undefined;
  rmSync(home, { recursive: true, force: true });
  mkdirSync(CACHE, { recursive: true });
  const isMade = succeeds(process.env.PYTHON ?? "python3", "-m", "venv", home);
  if (!isMade || !succeeds(join(home, "bin/python"), "-m", "pip", "install", "-q", pip))
    return `${pip} cannot be installed`;
  writeFileSync(stamp, pip);
  return undefined;
}

/** The program and its arguments for one run. */
export function commandOf({ id, pip, command, resume = [] }, hasState) {
  const [program, ...args] = [...command, ...(hasState ? resume : [])];
  return [pip === undefined ? program : join(CACHE, id, "bin", program), ...args];
}
