/** CAR version 1: blocks behind their lengths and CIDs. Every block is hashed before it is kept. */

import { type Cid, ContentError, cidText, decodeCidPrefix, matches, readVarint } from "~/content/cid";

const MOST_BLOCK_BYTES = 2 * 1024 * 1024 + 160;

/** Collects the verified blocks of a CAR from pieces as they arrive. */
export class CarReader {
  readonly blocks = new Map<string, Uint8Array>();
  #rest: Uint8Array = new Uint8Array(0);
  #isHeaderRead = false;

  async push(piece: Uint8Array): Promise<void> {
    this.#rest = joined(this.#rest, piece);
    for (;;) {
      const section = this.#take();
      if (section === null) return;
      if (!this.#isHeaderRead) {
        this.#isHeaderRead = true;
        continue;
      }
      const [cid, end] = decodeCidPrefix(section, 0);
      const block = section.slice(end);
      if (!(await matches(cid, block))) {
        throw new ContentError(`the block ${cidText(cid)} does not have the hash that names it`);
      }
      this.blocks.set(keyOf(cid), block);
    }
  }

  end(): void {
    if (this.#rest.length) throw new ContentError("the download broke off");
    if (!this.#isHeaderRead) throw new ContentError("the download is empty");
  }

  /** The next whole section, or null until more has arrived. */
  #take(): Uint8Array | null {
    if (!this.#rest.length) return null;
    const last = this.#rest.findIndex((byte) => byte < 0x80);
    if (last < 0 || last > 8) {
      if (this.#rest.length > 8) throw new ContentError("this is no CAR");
      return null;
    }
    const [length, at] = readVarint(this.#rest, 0);
    if (length > MOST_BLOCK_BYTES) throw new ContentError(`a block of ${length} bytes is too large`);
    if (this.#rest.length < at + length) return null;
    const section = this.#rest.slice(at, at + length);
    this.#rest = this.#rest.slice(at + length);
    return section;
  }
}

/** Version 0 and version 1 name the same block. */
export function keyOf(cid: Cid): string {
  return Array.from(cid.digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (!a.length) return b;
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}
