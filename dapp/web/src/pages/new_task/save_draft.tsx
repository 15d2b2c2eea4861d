/** Keeps a draft with the account, for another browser; only for who is signed in. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ApiError, problemText } from "~/api/client";
import { Button } from "~/components/basics";
import { type Draft, isEmpty, isSameDraft } from "~/drafts/draft";
import { storeDraft } from "~/drafts/storing";
import { useSession } from "~/wallet/session";

interface SaveDraftProps {
  draft: Draft;
  change: (change: (draft: Draft) => Draft) => void;
}

export function SaveDraft({ draft, change }: SaveDraftProps) {
  const session = useSession();
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: storeDraft,
    onSuccess: ({ id }, saved) => {
      change((now) => (now.id === saved.id ? { ...now, stored: id } : now));
      void client.invalidateQueries({ queryKey: ["drafts"] });
    },
  });
  if (!session.data?.address || isEmpty(draft)) return null;
  const isSaved = save.isSuccess && isSameDraft(save.variables, draft);
  return (
    <>
      {save.error && (
        <span className="small tone-bad" role="alert">
          Not saved: {problemText(save.error)}
          {save.error instanceof ApiError && save.error.problem.fix && `; ${save.error.problem.fix}`}
        </span>
      )}
      <Button busy={save.isPending} onClick={() => save.mutate(draft)}>
        {isSaved ? "Saved to your account" : "Save to account"}
      </Button>
    </>
  );
}
