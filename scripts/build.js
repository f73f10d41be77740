// Bundles src/ into dist/, and sandbox/ into dist/sandbox/. Images need no sandbox: they are built with `--without-sandbox`.
// A bundle starts faster than 200 files, and needs nothing from node_modules. `npm run lint` checks the types.
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "rolldown";

const root = join(import.meta.dirname, "..");
const { bin, files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Escapes characters beyond latin1: with one of them, V8 keeps the whole source in two bytes a character. */
const latin1 = {
  name: "latin1",
  renderChunk: (code) =>
    code.replace(/[^\0-\xff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`),
};

/** Bundles files into a folder, as CommonJS: loading ES modules took a tenth of the time of `spec`. */
const bundle = (input, dir, { output, ...options } = {}) =>
  build({
    ...{ cwd: root, platform: "node", tsconfig: "tsconfig.json", input, ...options },
    output: {
      ...{ dir, format: "cjs", chunkFileNames: "[name].js", comments: { annotation: false, jsdoc: false } },
      ...output,
    },
  });

const programs = {
  "source-contact-intelligence": "src/source-contact-intelligence.ts",
  "tap-contact-intelligence": "src/tap-contact-intelligence.ts",
};
const { output } = await bundle(programs, "dist", {
  checks: { ineffectiveDynamicImport: false },
  plugins: [latin1],
  resolve: { alias: { undici: join(root, "scripts/undici.cjs") } },
  output: {
    cleanDir: true,
    // `spec` loads two files. The rest is loaded when a command needs it.
    codeSplitting: {
      groups: [
        { name: "start", test: /src[\\/](main|cli|tap-cli|commands[\\/]spec)\.ts$/, priority: 2 },
        { name: "run", test: /src[\\/]commands[\\/](check|discover|read|tap)\.ts$/, priority: 1 },
      ],
    },
  },
});
const sandbox = ["sandbox/contact-intelligence-sandbox.ts", "sandbox/server.ts"];
if (!process.argv.includes("--without-sandbox")) await bundle(sandbox, "dist/sandbox");

writeFileSync(join(root, "dist/package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
writeFileSync(join(root, "dist/third-party-licenses.txt"), licensesOf(bundledPackages()));
// A package has the same bytes for every umask.
const commands = Object.values(bin).map((path) => join(root, path));
for (const name of ["package.json", "README.md", "LICENSE", ...files])
  for (const file of existsSync(join(root, name)) ? filesBelow(join(root, name)) : [])
    chmodSync(file, commands.includes(file) ? 0o755 : 0o644);

function filesBelow(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesBelow(join(path, name)));
}

/** The folders of the packages whose code is in the bundle. */
function bundledPackages() {
  const files = output.flatMap(({ moduleIds = [] }) => moduleIds);
  const folders = files.map((file) => /^.*[\\/]node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+/.exec(file)?.[0]);
  return [...new Set(folders)].filter((folder) => folder !== undefined).sort();
}

/** Name, version and license text of each package, because the licenses ask for them. */
function licensesOf(folders) {
  const texts = folders.map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry));
    if (file === undefined) throw new Error(`Cannot bundle ${name}: it has no license file`);
    return `${name}@${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return texts.join(`\n${"=".repeat(80)}\n\n`);
}
