// Weighs what a first visit loads: the entry with all that it imports at once, gzipped.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_KB = 250;
const root = new URL("../../static/", import.meta.url);
const html = readFileSync(new URL("index.html", root), "utf8");
const first = [...html.matchAll(/(?:src|href)="\/?([^"]+\.(?:js|css))"/g)].map((found) => found[1]);
const kb = (name) => gzipSync(readFileSync(new URL(name, root)), { level: 9 }).length / 1000;
const assets = readdirSync(new URL("assets/", root)).map((name) => `assets/${name}`);
let script = 0;
for (const name of [...new Set([...first, ...assets])].filter((name) => /\.(js|css)$/.test(name))) {
  const weight = kb(name);
  const isFirst = first.includes(name);
  if (isFirst && name.endsWith(".js")) script += weight;
  console.log(`${weight.toFixed(1).padStart(8)} kB  ${isFirst ? "first" : "later"}  ${name}`);
}
console.log(JSON.stringify({ page_js_gzip_kb: Number(script.toFixed(1)) }));
if (script > LIMIT_KB) {
  console.error(`A first visit loads ${script.toFixed(1)} kB of scripts; ${LIMIT_KB} are allowed.`);
  process.exit(1);
}
