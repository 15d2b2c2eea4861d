/** Challenging a segment: what is claimed, what stands behind it, and what follows. */

import { useState } from "react";
import { ApiError, get, problemText } from "~/api/client";
import type { StateProof, Task } from "~/api/types";
import { Button, Dialog, Notice } from "~/components/basics";
import { useAmount } from "~/components/chain";
import { Choices, NumberField } from "~/components/forms";
import { unservedCall, wrongCall } from "~/pages/task/calls";
import { marketCall, useSend } from "~/transactions/sending";
import { missingCredit, useCredit } from "~/wallet/credit";
import { useWallet } from "~/wallet/use_wallet";

type Kind = "wrong" | "unserved";

export function ChallengeDialog({ view, onClose }: { view: Task; onClose: () => void }) {
  const amount = useAmount();
  const { send, isBusy, error } = useSend();
  const [kind, setKind] = useState<Kind>("wrong");
  const [segment, setSegment] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const { task } = view;
  const bond = BigInt(view.challenge_bond_wei);
  const wallet = useWallet();
  const credit = useCredit(wallet.address);
  const missing = credit.data === undefined ? null : missingCredit(bond, credit.data);
  const act = async () => {
    setProblem(null);
    let data: `0x${string}`;
    try {
      data =
        kind === "wrong"
          ? wrongCall(task.id, segment, await get<StateProof>(`/tasks/${task.id}/trace/${segment}`))
          : unservedCall(task.id, segment);
    } catch (caught) {
      setProblem(
        caught instanceof ApiError && caught.isMissing
          ? "The workers' state after this segment is not published. Say instead that its data is not served."
          : problemText(caught),
      );
      return;
    }
    // As it is now: another window may have used it since.
    const { data: has } = await credit.refetch();
    if (has === undefined && wallet.address) {
      setProblem("The chain does not say how much credit you have. Try again in a moment.");
      return;
    }
    const more = missingCredit(bond, has ?? 0n);
    if (wallet.address && more > 0n) {
      const put = await send({
        title: `Deposit ${amount(more)} for a bond`,
        kind: "deposit",
        data: marketCall("deposit", [more]),
        value: more,
        isFirst: true,
      });
      if (put !== "sent") return;
    }
    const outcome = await send({
      title: `Challenge segment ${segment} of task ${task.id}`,
      kind: "challenge",
      task: task.id,
      data,
    });
    if (outcome === "sent") onClose();
  };
  return (
    <Dialog title={`Challenge task ${task.id}`} open onClose={onClose}>
      <Choices<Kind>
        legend="What is wrong"
        value={kind}
        onChange={setKind}
        choices={[
          {
            value: "wrong",
            title: "The state is wrong",
            text: "You recomputed the segment and found another state.",
          },
          {
            value: "unserved",
            title: "Data is not served",
            text: "What it takes to recompute the segment cannot be fetched.",
          },
        ]}
      />
      <NumberField
        label="Segment"
        value={segment}
        min={0}
        max={Math.max(0, task.segments - 1)}
        onChange={setSegment}
      />
      <Notice tone="warn" title={`A bond of ${amount(bond)} of your credit stands behind it`}>
        Referees recompute the segment. If you are right, you get the bond back and a part of the workers'
        stakes; if they are right, you lose the bond.
      </Notice>
      {missing !== null && missing > 0n && (
        <Notice tone="info" title="You sign two transactions">
          Your credit in the market is {amount(credit.data ?? 0n)}. The first transaction deposits{" "}
          {amount(missing)}, and the second challenges. If you stop after the first, you can withdraw it
          again.
        </Notice>
      )}
      {(problem ?? error) && (
        <Notice tone="bad" title="Not sent" urgent>
          {problem ?? error}
        </Notice>
      )}
      <Button look="danger" size="wide" busy={isBusy} onClick={() => void act()}>
        Challenge segment {segment}
      </Button>
    </Dialog>
  );
}
