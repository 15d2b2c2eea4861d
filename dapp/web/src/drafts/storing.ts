/** Drafts that the account keeps. */

import { ApiError, send } from "~/api/client";
import type { Draft as StoredDraft } from "~/api/types";
import { type Draft, draftTitle } from "~/drafts/draft";

/** In its old place, or in a new one where that is gone or another account's. */
export async function storeDraft(draft: Draft): Promise<StoredDraft> {
  const given = { title: draftTitle(draft), document: draft };
  if (draft.stored) {
    try {
      return await send<StoredDraft>("PUT", `/drafts/${draft.stored}`, given);
    } catch (error) {
      if (!(error instanceof ApiError && error.isMissing)) throw error;
    }
  }
  return send<StoredDraft>("POST", "/drafts", given);
}
