/** Keeps a draft with the account, for another browser; only for who is signed in. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { send } from "~/api/client";
import { Button } from "~/components/basics";
import { type Draft, isEmpty } from "~/drafts/draft";
import { useSession } from "~/wallet/session";

export function SaveDraft({ draft }: { draft: Draft }) {
  const session = useSession();
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: () =>
      send("POST", "/drafts", { title: draft.model?.name ?? draft.data?.name ?? "Draft", document: draft }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["drafts"] }),
  });
  if (!session.data?.address || isEmpty(draft)) return null;
  return (
    <Button busy={save.isPending} onClick={() => save.mutate()}>
      {save.isSuccess ? "Saved to your account" : "Save to account"}
    </Button>
  );
}
