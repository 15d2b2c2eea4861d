/** Downloads by CID that trust nobody: the browser hashes every block before it believes it. */

import { CarReader } from "~/content/car";
import { ContentError, parseCid } from "~/content/cid";
import { readFile } from "~/content/unixfs";

export interface Progress {
  bytes: number;
  blocks: number;
}

/** The file at `path`, such as `bafy…/model.keras`; throws a ContentError if any of its bytes is wrong. */
export async function fetchVerified(
  path: string,
  onProgress: (progress: Progress) => void = () => {},
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const [root = "", ...names] = path.split("/").filter(Boolean);
  const cid = parseCid(root);
  const address = [root, ...names.map(encodeURIComponent)].join("/");
  const answer = await fetch(`/ipfs/${address}?format=car&dag-scope=entity`, {
    headers: { accept: "application/vnd.ipld.car" },
    ...(signal ? { signal } : {}),
  });
  if (answer.status === 404) throw new ContentError("nobody serves this content at present");
  if (!answer.ok || !answer.body)
    throw new ContentError(`the content could not be fetched (${answer.status})`);
  const reader = new CarReader();
  let bytes = 0;
  const stream = answer.body.getReader();
  for (;;) {
    const { done, value } = await stream.read();
    if (done) break;
    bytes += value.length;
    await reader.push(value);
    onProgress({ bytes, blocks: reader.blocks.size });
  }
  reader.end();
  return readFile(reader.blocks, cid, names);
}

/** Hand a file to the person. */
export function saveFile(bytes: Uint8Array, name: string, type = "application/octet-stream"): void {
  const url = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
