/** Whether a `.keras` file holds the weights of a state: a zip that is not compressed, with plain arrays in it. */

import { ProofError } from "~/content/proof";

export interface Tensor {
  name: string;
  bytes: Uint8Array;
}

const WEIGHTS = "weights/";
const FLOATS = ["F16", "BF16", "F32", "F64"];
const LENGTH_BYTES = 8;
const MOST_HEADER_BYTES = 16 * 1024 * 1024;

/** The trained arrays of a state (safetensors). */
export function weightsOf(state: Uint8Array): Tensor[] {
  const view = new DataView(state.buffer, state.byteOffset, state.byteLength);
  const length = state.length < LENGTH_BYTES ? 0 : Number(view.getBigUint64(0, true));
  if (!length || length > MOST_HEADER_BYTES) throw new ProofError("These weights are no safetensors.");
  const start = LENGTH_BYTES + length;
  const header = JSON.parse(new TextDecoder().decode(state.subarray(LENGTH_BYTES, start))) as Record<
    string,
    { dtype: string; data_offsets: [number, number] }
  >;
  return Object.entries(header)
    .filter(([name, { dtype }]) => name.startsWith(WEIGHTS) && FLOATS.includes(dtype))
    .map(
      ([
        name,
        {
          data_offsets: [from, to],
        },
      ]) => ({
        name: name.slice(WEIGHTS.length),
        bytes: state.subarray(start + from, start + to),
      }),
    );
}

/** Throws where one of the arrays is not in the file; says how many there are. */
export function checkWeights(file: Uint8Array, state: Uint8Array): number {
  const tensors = weightsOf(state);
  for (const { name, bytes } of tensors) {
    if (!contains(file, bytes))
      throw new ProofError(`The .keras file does not have the weights ${name} that were checked.`);
  }
  return tensors.length;
}

function contains(file: Uint8Array, wanted: Uint8Array): boolean {
  const [first] = wanted;
  if (first === undefined) return true;
  for (let at = file.indexOf(first); at >= 0; at = file.indexOf(first, at + 1)) {
    if (at + wanted.length > file.length) return false;
    let same = 1;
    while (same < wanted.length && file[at + same] === wanted[same]) same += 1;
    if (same === wanted.length) return true;
  }
  return false;
}
