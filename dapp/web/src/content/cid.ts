/** Content identifiers as far as the page verifies them: SHA-256, of raw and dag-pb blocks, and identity. */

export const RAW = 0x55;
export const DAG_PB = 0x70;
const IDENTITY = 0x00;
const SHA2_256 = 0x12;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

export class ContentError extends Error {
  override name = "ContentError";
}

export interface Cid {
  version: 0 | 1;
  codec: number;
  hash: number;
  digest: Uint8Array;
}

export function parseCid(text: string): Cid {
  if (text.length === 46 && text.startsWith("Qm")) return decodeCid(fromDigits(text, BASE58));
  if (text.startsWith("b")) return decodeCid(fromBase32(text.slice(1)));
  if (text.startsWith("z")) return decodeCid(fromDigits(text.slice(1), BASE58));
  throw new ContentError(`“${text.slice(0, 40)}” is no CID that this page reads`);
}

export function decodeCid(bytes: Uint8Array): Cid {
  const [cid, end] = decodeCidPrefix(bytes, 0);
  if (end !== bytes.length) throw new ContentError("bytes are left over after a CID");
  return cid;
}

/** The CID at `start`, and where it ends. */
export function decodeCidPrefix(bytes: Uint8Array, start: number): [Cid, number] {
  if (bytes[start] === SHA2_256 && bytes[start + 1] === 32) {
    return [{ version: 0, codec: DAG_PB, hash: SHA2_256, digest: slice(bytes, start + 2, 32) }, start + 34];
  }
  const [version, codecAt] = readVarint(bytes, start);
  if (version !== 1) throw new ContentError(`CID version ${version} is not supported`);
  const [codec, hashAt] = readVarint(bytes, codecAt);
  const [hash, lengthAt] = readVarint(bytes, hashAt);
  const [length, at] = readVarint(bytes, lengthAt);
  if (codec !== RAW && codec !== DAG_PB) throw new ContentError(`codec ${codec} is not supported`);
  if (hash !== IDENTITY && (hash !== SHA2_256 || length !== 32)) {
    throw new ContentError(`hash function ${hash} is not supported`);
  }
  return [{ version: 1, codec, hash, digest: slice(bytes, at, length) }, at + length];
}

export function encodeCid(cid: Cid): Uint8Array {
  if (cid.version === 0) return Uint8Array.from([SHA2_256, 32, ...cid.digest]);
  return Uint8Array.from([1, cid.codec, cid.hash, cid.digest.length, ...cid.digest]);
}

export function cidText(cid: Cid): string {
  if (cid.version === 0) return toBase58(encodeCid(cid));
  return `b${toBase32(encodeCid(cid))}`;
}

/** The CID of a document whose SHA-256 stands on the chain, such as a manifest. */
export function rawCid(digest: Uint8Array): Cid {
  return { version: 1, codec: RAW, hash: SHA2_256, digest };
}

export async function matches(cid: Cid, block: Uint8Array): Promise<boolean> {
  if (cid.hash === IDENTITY) return equal(block, cid.digest);
  return equal(await sha256(block), cid.digest);
}

export async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  // Browsers offer their own hashing only to pages that came by TLS or from this machine.
  if (globalThis.crypto?.subtle) {
    return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
  }
  const { sha256: slow } = await import("viem");
  return slow(bytes, "bytes");
}

export function readVarint(bytes: Uint8Array, start: number): [number, number] {
  let value = 0;
  for (let at = start, scale = 1; at < start + 8; at += 1, scale *= 128) {
    const byte = bytes[at];
    if (byte === undefined) throw new ContentError("a number is cut short");
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return [value, at + 1];
  }
  throw new ContentError("a number without an end");
}

function slice(bytes: Uint8Array, at: number, length: number): Uint8Array {
  if (at + length > bytes.length) throw new ContentError("a CID is cut short");
  return bytes.slice(at, at + length);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

function fromBase32(text: string): Uint8Array {
  const out: number[] = [];
  let [bits, value] = [0, 0];
  for (const letter of text) {
    const digit = BASE32.indexOf(letter);
    if (digit < 0) throw new ContentError(`“${letter}” is no digit of base32`);
    value = ((value << 5) | digit) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      out.push((value >> bits) & 0xff);
    }
  }
  return Uint8Array.from(out);
}

function toBase32(bytes: Uint8Array): string {
  let [text, bits, value] = ["", 0, 0];
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xffff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32[(value >> bits) & 31];
    }
  }
  return bits ? text + BASE32[(value << (5 - bits)) & 31] : text;
}

function fromDigits(text: string, alphabet: string): Uint8Array {
  let number = 0n;
  for (const letter of text) {
    const digit = alphabet.indexOf(letter);
    if (digit < 0) throw new ContentError(`“${letter}” is no digit of base${alphabet.length}`);
    number = number * BigInt(alphabet.length) + BigInt(digit);
  }
  const hex = number.toString(16);
  const bytes = (hex.length % 2 ? `0${hex}` : hex).match(/../g) ?? [];
  const zeros = /^1*/.exec(text)?.[0].length ?? 0;
  return Uint8Array.from([...new Array<number>(zeros).fill(0), ...bytes.map((b) => Number.parseInt(b, 16))]);
}

function toBase58(bytes: Uint8Array): string {
  let number = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  let text = "";
  while (number) {
    text = BASE58[Number(number % 58n)] + text;
    number /= 58n;
  }
  return text;
}
