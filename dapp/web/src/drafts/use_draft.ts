import { useCallback, useEffect, useState } from "react";
import { clearDraft, type Draft, loadDraft, newDraft, saveDraft } from "~/drafts/draft";

/** The draft of this browser; every change is kept at once. */
export function useDraft(): [Draft, (change: (draft: Draft) => Draft) => void, () => void] {
  const [draft, setDraft] = useState(() => loadDraft(localStorage));
  useEffect(() => saveDraft(localStorage, draft), [draft]);
  const reset = useCallback(() => {
    // At once: who resets may leave the page before any effect runs.
    clearDraft(localStorage);
    setDraft(newDraft());
  }, []);
  return [draft, setDraft, reset];
}
