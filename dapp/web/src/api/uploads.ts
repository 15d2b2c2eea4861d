/** Files on their way to the content store: small ones at once, large ones in pieces that can be resumed. */

import { ApiError, BASE, request, send } from "~/api/client";
import type { Uploaded, UploadState } from "~/api/types";
import { formatBytes, formatCount } from "~/protocol/units";

const PIECE_BYTES = 4 * 1024 * 1024;
const RETRIES = 5;
/** As many as the server's reader of multipart bodies takes; a test compares both. */
export const MOST_FILES = 1_000;

export type Report = (sent: number, total: number) => void;

/** Why files would be refused after all of them were sent, and what to do instead; null where they are taken. */
export function refusalOf(files: readonly File[], atOnce: number): string | null {
  if (files.length < 2) return null;
  const total = files.reduce((sum, file) => sum + file.size, 0);
  const found =
    files.length > MOST_FILES
      ? `These are ${formatCount(files.length)} files, and at most ${formatCount(MOST_FILES)} are taken at once.`
      : total > atOnce
        ? `These ${formatCount(files.length)} files have ${formatBytes(total)}, and several files may have ${formatBytes(atOnce)} at most.`
        : null;
  if (!found) return null;
  return `${found} Pack the records into one .npz or TFRecord file, which is sent in pieces and may be larger, or put the folder into the content store and give its CID.`;
}

/** Store files (one, or a folder's) and give back what they are called from now on. */
export async function upload(
  files: File[],
  atOnce: number,
  report: Report,
  signal: AbortSignal,
): Promise<Uploaded> {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  const [first] = files;
  if (!first) throw new Error("There is no file in what you dropped.");
  const refusal = refusalOf(files, atOnce);
  if (refusal) throw new Error(refusal);
  if (files.length > 1 || total <= Math.min(atOnce, PIECE_BYTES)) {
    return multipart(files, total, report, signal);
  }
  return inPieces(first, report, signal);
}

/** Not by fetch, which does not tell how much of a body was sent. */
function multipart(files: File[], total: number, report: Report, signal: AbortSignal): Promise<Uploaded> {
  const form = new FormData();
  for (const file of files) form.append("file", file, file.webkitRelativePath || file.name);
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", `${BASE}/content`);
    sending.responseType = "json";
    sending.upload.onprogress = (event) => report(Math.min(event.loaded, total), total);
    sending.onload = () => {
      if (sending.status < 300) resolve(sending.response as Uploaded);
      else reject(problem(sending.status, sending.response));
    };
    sending.onerror = () => reject(problem(0, null));
    sending.onabort = () => reject(new DOMException("cancelled", "AbortError"));
    signal.addEventListener("abort", () => sending.abort(), { once: true });
    sending.send(form);
  });
}

function problem(status: number, body: unknown): ApiError {
  const said = (body as { error?: ApiError["problem"] } | null)?.error;
  const fallback = { code: String(status), message: "The upload did not get through.", fix: "Try again." };
  return new ApiError(status, said ?? { ...fallback, field: null, retry_after_s: null });
}

async function inPieces(file: File, report: Report, signal: AbortSignal): Promise<Uploaded> {
  const key = `trainyard.upload.${file.name}.${file.size}.${file.lastModified}`;
  let state = await resumed(key);
  if (!state) {
    state = await send<UploadState>("POST", "/uploads", { name: file.name, size: file.size }, signal);
    localStorage.setItem(key, state.id);
  }
  for (let failures = 0; !state.uploaded; ) {
    report(state.offset, file.size);
    try {
      state = await patch(state, file, signal);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (signal.aborted || failures > RETRIES) throw error;
      await new Promise((wake) => setTimeout(wake, 500 * 2 ** failures));
      state = await request<UploadState>(`/uploads/${state.id}`, { signal });
    }
  }
  localStorage.removeItem(key);
  report(file.size, file.size);
  return state.uploaded;
}

async function resumed(key: string): Promise<UploadState | null> {
  const id = localStorage.getItem(key);
  if (!id) return null;
  try {
    return await request<UploadState>(`/uploads/${id}`, {});
  } catch {
    localStorage.removeItem(key);
    return null;
  }
}

async function patch(state: UploadState, file: File, signal: AbortSignal): Promise<UploadState> {
  const end = Math.min(state.offset + PIECE_BYTES, file.size);
  const answer = await fetch(`${BASE}/uploads/${state.id}`, {
    method: "PATCH",
    body: file.slice(state.offset, end),
    headers: { "content-type": "application/offset+octet-stream", "upload-offset": String(state.offset) },
    signal,
  });
  if (answer.status === 200) return (await answer.json()) as UploadState;
  // A 409 without it says that another piece is still being taken: that is waited for.
  const offset = answer.headers.get("upload-offset");
  if (offset !== null && (answer.status === 204 || answer.status === 409)) {
    return { ...state, offset: Number(offset) };
  }
  throw problem(answer.status, await answer.json().catch(() => null));
}
