// Writes the part of the market's ABI that the page uses as TypeScript, so that calls are checked.
import { readFileSync, writeFileSync } from "node:fs";

const CALLS = [
  "account",
  "bondOf",
  "cancel",
  "challenge",
  "challengeUnserved",
  "deposit",
  "draw",
  "drawReferees",
  "evict",
  "expire",
  "params",
  "paramsCount",
  "ping",
  "post",
  "resolve",
  "settle",
  "settleShares",
  "slot",
  "task",
  "withdraw",
  "worker",
];
const EVENTS = ["TaskPosted"];

export const SOURCE = new URL("../../../trainyard/chain/abi/ITrainingMarket.json", import.meta.url);
const ERRORS_SOURCE = new URL("../../../trainyard/chain/abi/TrainingMarket.json", import.meta.url);
export const TARGET = new URL("../src/protocol/abi.ts", import.meta.url);

function plain(input) {
  const { name, type, components, indexed } = input;
  return {
    name,
    type,
    ...(components ? { components: components.map(plain) } : {}),
    ...(indexed === undefined ? {} : { indexed }),
  };
}

function trimmed(entry) {
  const { name, type, inputs, outputs, stateMutability, anonymous } = entry;
  return {
    type,
    name,
    inputs: inputs.map(plain),
    ...(outputs ? { outputs: outputs.map(plain) } : {}),
    ...(stateMutability ? { stateMutability } : {}),
    ...(anonymous === undefined ? {} : { anonymous }),
  };
}

export function text() {
  const { abi } = JSON.parse(readFileSync(SOURCE, "utf8"));
  const whole = [...abi, ...JSON.parse(readFileSync(ERRORS_SOURCE, "utf8")).abi];
  const wanted = abi.filter(
    (entry) =>
      (entry.type === "function" && CALLS.includes(entry.name)) ||
      (entry.type === "event" && EVENTS.includes(entry.name)),
  );
  const errors = new Map();
  for (const entry of whole) if (entry.type === "error") errors.set(entry.name, entry);
  const missing = CALLS.filter((name) => !wanted.some((entry) => entry.name === name));
  if (missing.length) throw new Error(`the market has no ${missing.join(", ")}`);
  const ordered = [...wanted, ...[...errors.values()].sort((a, b) => (a.name < b.name ? -1 : 1))];
  const lines = ordered.map((entry) => `  ${JSON.stringify(trimmed(entry))},`);
  return `// Written by scripts/write_abi.mjs from the compiled contracts; a test compares both.\nexport const marketAbi = [\n${lines.join("\n")}\n] as const;\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(TARGET, text());
