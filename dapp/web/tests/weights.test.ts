import { describe, expect, it } from "vitest";
import { ProofError } from "~/content/proof";
import { checkWeights, weightsOf } from "~/content/weights";

/** As `trainyard.engine.state` writes it. */
function stateOf(tensors: Record<string, { dtype: string; bytes: number[] }>): Uint8Array {
  let end = 0;
  const header = Object.fromEntries(
    Object.entries(tensors).map(([name, { dtype, bytes }]) => {
      const from = end;
      end += bytes.length;
      return [name, { dtype, shape: [bytes.length], data_offsets: [from, end] }];
    }),
  );
  const text = new TextEncoder().encode(JSON.stringify(header).padEnd(400));
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(text.length), true);
  return Uint8Array.from([...length, ...text, ...Object.values(tensors).flatMap(({ bytes }) => bytes)]);
}

const kernel = Array.from({ length: 64 }, (_, at) => (at * 37) % 251);
const bias = [0, 0, 0, 0, 1, 2, 3, 4];
const state = stateOf({
  "optimizer/m": { dtype: "F32", bytes: [9, 9, 9, 9] },
  "weights/dense/bias": { dtype: "F32", bytes: bias },
  "weights/dense/kernel": { dtype: "F32", bytes: kernel },
  "weights/dropout/seed": { dtype: "U32", bytes: [7, 7, 7, 7, 7, 7, 7, 7] },
});

describe("a .keras file", () => {
  it("is looked through for the trained arrays of the state", () => {
    expect(weightsOf(state).map(({ name }) => name)).toEqual(["dense/bias", "dense/kernel"]);
  });

  it("that holds all of them is taken, wherever they lie", () => {
    expect(checkWeights(Uint8Array.from([1, 0, 0, ...bias, 5, ...kernel, 0]), state)).toBe(2);
  });

  it.each([
    ["one bit of them changed", [...bias, ...kernel.slice(0, -1), (kernel.at(-1) ?? 0) ^ 1]],
    ["one of them missing", [...kernel]],
    ["the last one cut", [...bias, ...kernel.slice(0, -1)]],
  ])("with %s is not", (_, bytes) => {
    expect(() => checkWeights(Uint8Array.from(bytes), state)).toThrow(ProofError);
  });

  it("is not compared with what is no state", () => {
    expect(() => weightsOf(new Uint8Array(4))).toThrow(ProofError);
  });
});
