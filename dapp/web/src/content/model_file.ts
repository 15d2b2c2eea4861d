/** The model file of a task, which the server makes of the last state when it is first asked for. */

import { ApiError, BASE, errorOf, fullText } from "~/api/client";

// What others use is free again within a minute, or something is wrong with it.
const MOST_TRIES = 6;
const LONGEST_WAIT_S = 30;

/** Its CID. Where the server says when to ask again, it is asked then; `tell` hears why that takes so long. */
export async function modelCid(id: number, tell: (why: string) => void): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await askOnce(id);
    } catch (error) {
      const after = error instanceof ApiError && error.isPassing ? error.problem.retry_after_s : null;
      if (after === null || tries === MOST_TRIES) throw error;
      const seconds = Math.min(Math.max(after, 0), LONGEST_WAIT_S);
      tell(`${fullText(error)} It is asked again in ${Math.ceil(seconds)} s.`);
      await new Promise((wake) => setTimeout(wake, seconds * 1000));
    }
  }
}

async function askOnce(id: number): Promise<string> {
  const answer = await fetch(`${BASE}/tasks/${id}/result/model.keras`);
  if (!answer.ok) throw await errorOf(answer);
  await answer.body?.cancel();
  const cid = answer.headers.get("x-content-cid");
  if (cid) return cid;
  throw new Error(
    "The server did not say which CID the model file has. The weights can still be downloaded.",
  );
}
