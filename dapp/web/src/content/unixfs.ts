/** Files and folders of verified blocks: dag-pb nodes with UnixFS data. */

import { keyOf } from "~/content/car";
import { type Cid, ContentError, DAG_PB, decodeCid, RAW, readVarint } from "~/content/cid";

interface Link {
  cid: Cid;
  name: string;
}

interface Node {
  kind: number;
  data: Uint8Array;
  links: Link[];
}

const [RAW_KIND, DIRECTORY, FILE, HAMT] = [0, 1, 2, 5];
const DEEPEST = 32;
const NOTHING: Uint8Array = new Uint8Array(0);

export type Blocks = ReadonlyMap<string, Uint8Array>;

/** The bytes of the file at `path` below `root`. Throws where a block is missing or is none of UnixFS. */
export function readFile(blocks: Blocks, root: Cid, path: readonly string[]): Uint8Array {
  let at = root;
  for (const name of path) at = childOf(blocks, at, name);
  const parts: Uint8Array[] = [];
  collect(blocks, at, parts, 0);
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let end = 0;
  for (const part of parts) {
    whole.set(part, end);
    end += part.length;
  }
  return whole;
}

function childOf(blocks: Blocks, folder: Cid, name: string): Cid {
  const node = nodeOf(blocks, folder);
  if (node.kind !== DIRECTORY && node.kind !== HAMT)
    throw new ContentError(`there is no “${name}” in a file`);
  if (node.kind === HAMT) return childOfShard(blocks, node, name, 0);
  const link = node.links.find((one) => one.name === name);
  if (!link) throw new ContentError(`there is no “${name}” in this folder`);
  return link.cid;
}

/** In a sharded folder names stand behind two hexadecimal digits; the gateway sent the shards on the way. */
function childOfShard(blocks: Blocks, node: Node, name: string, depth: number): Cid {
  if (depth > DEEPEST) throw new ContentError("a folder is nested too deep");
  for (const link of node.links) {
    if (link.name.slice(2) === name) return link.cid;
    if (link.name.length === 2 && blocks.has(keyOf(link.cid))) {
      try {
        return childOfShard(blocks, nodeOf(blocks, link.cid), name, depth + 1);
      } catch {
        // Another shard may have it.
      }
    }
  }
  throw new ContentError(`there is no “${name}” in this folder`);
}

function collect(blocks: Blocks, cid: Cid, parts: Uint8Array[], depth: number): void {
  if (depth > DEEPEST) throw new ContentError("a file is nested too deep");
  if (cid.codec === RAW) {
    parts.push(blockOf(blocks, cid));
    return;
  }
  const node = nodeOf(blocks, cid);
  if (node.kind !== FILE && node.kind !== RAW_KIND) throw new ContentError("this is a folder, not a file");
  if (node.data.length) parts.push(node.data);
  for (const link of node.links) collect(blocks, link.cid, parts, depth + 1);
}

function blockOf(blocks: Blocks, cid: Cid): Uint8Array {
  if (cid.hash === 0) return cid.digest;
  const block = blocks.get(keyOf(cid));
  if (!block) throw new ContentError("a block is missing in the download");
  return block;
}

function nodeOf(blocks: Blocks, cid: Cid): Node {
  if (cid.codec !== DAG_PB) throw new ContentError("this is a plain block, not a folder");
  const links: Link[] = [];
  let data = NOTHING;
  for (const [number, value] of fields(blockOf(blocks, cid))) {
    if (number === 1 && value instanceof Uint8Array) data = value;
    if (number === 2 && value instanceof Uint8Array) links.push(linkOf(value));
  }
  let kind = -1;
  let content = NOTHING;
  for (const [number, value] of fields(data)) {
    if (number === 1 && typeof value === "number") kind = value;
    if (number === 2 && value instanceof Uint8Array) content = value;
  }
  return { kind, data: kind === HAMT ? NOTHING : content, links };
}

function linkOf(message: Uint8Array): Link {
  let cid: Cid | null = null;
  let name = "";
  for (const [number, value] of fields(message)) {
    if (number === 1 && value instanceof Uint8Array) cid = decodeCid(value);
    if (number === 2 && value instanceof Uint8Array) name = new TextDecoder().decode(value);
  }
  if (!cid) throw new ContentError("a link without a CID");
  return { cid, name };
}

/** The fields of a protobuf message; only the two wire types that dag-pb and UnixFS have. */
function* fields(message: Uint8Array): Generator<[number, number | Uint8Array]> {
  let at = 0;
  while (at < message.length) {
    const [key, valueAt] = readVarint(message, at);
    const [value, end] = readVarint(message, valueAt);
    if ((key & 7) === 0) {
      yield [key >> 3, value];
      at = end;
    } else if ((key & 7) === 2) {
      if (end + value > message.length) throw new ContentError("a field is longer than its message");
      yield [key >> 3, message.slice(end, end + value)];
      at = end + value;
    } else {
      throw new ContentError("this is no dag-pb");
    }
  }
}
