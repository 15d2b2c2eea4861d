import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Claim, Task } from "~/api/types";
import { cidText, rawCid } from "~/content/cid";
import { checkLastState, claimDigest, lastState, ProofError, traceRoot, walk } from "~/content/proof";

type Hex = `0x${string}`;
const vector = JSON.parse(readFileSync(new URL("./vectors/proof.json", import.meta.url), "utf8")) as {
  manifest: Hex;
  claim: Claim;
  digest: Hex;
  run: string;
  result: string;
  trace: string;
  last_state: string;
  roots: Record<string, Hex>;
};
const states = (JSON.parse(vector.trace) as { states: string[] }).states.map((one): Hex => `0x${one}`);
const bytesOf = (text: string) => new TextEncoder().encode(text);
const chain = { manifest: vector.manifest, segments: 4, digest: vector.digest };
const resultCid = cidText(rawCid(new Uint8Array(Buffer.from(vector.claim.result.slice(2), "hex"))));

function view(claim: Claim = vector.claim): Task {
  const slots = [{ is_lead: false }, { is_lead: true, claim }];
  return { task: { manifest: vector.manifest }, slots } as unknown as Task;
}

function files(changed: Record<string, string> = {}) {
  const all: Record<string, string> = {
    [resultCid]: vector.result,
    [`${vector.run}/trace.json`]: vector.trace,
    ...changed,
  };
  return async (path: string) => bytesOf(all[path] ?? "");
}

describe("a claim", () => {
  it("has the digest that the contract stores", () => {
    expect(claimDigest(vector.claim)).toBe(vector.digest);
  });

  it.each([2, 3, 4, 5])("of %i states has the root that the protocol gives it", (count) => {
    expect(traceRoot(states.slice(0, count))).toBe(vector.roots[String(count)]);
  });

  it("leads to the last state, and each part of the way is told", async () => {
    const said: string[] = [];
    const way = await walk(view(), chain, (text) => said.push(text), files());
    expect(said).toHaveLength(3);
    expect(lastState(way)).toBe(`${vector.run}/states/000004.safetensors`);
    await checkLastState(way, bytesOf(vector.last_state));
    await expect(checkLastState(way, bytesOf("other weights"))).rejects.toThrow(ProofError);
  });
});

describe("nothing is believed", () => {
  const trace = JSON.parse(vector.trace) as { root: string; states: string[] };
  const other = "11".repeat(32);
  it.each([
    ["a claim that the chain does not have", view(), { ...chain, digest: `0x${other}` as Hex }, {}],
    ["another manifest", view(), { ...chain, manifest: `0x${other}` as Hex }, {}],
    ["another root in the claim", view({ ...vector.claim, root: `0x${other}` }), chain, {}],
    ["no claim", { ...view(), slots: [] }, chain, {}],
    ["a run of another length", view(), { ...chain, segments: 5 }, {}],
    [
      "a result of another task",
      view(),
      chain,
      { [resultCid]: vector.result.replace(vector.manifest.slice(2), other) },
    ],
    ["a result that is none", view(), chain, { [resultCid]: "[" }],
    [
      "a trace with one state changed",
      view(),
      chain,
      {
        [`${vector.run}/trace.json`]: JSON.stringify({
          ...trace,
          states: [...trace.states.slice(0, 4), other],
        }),
      },
    ],
    ["a trace that is none", view(), chain, { [`${vector.run}/trace.json`]: '{"states": [1]}' }],
  ])("of %s", async (_, task, onChain, changed) => {
    await expect(walk(task, onChain, () => {}, files(changed))).rejects.toThrow(ProofError);
  });
});
