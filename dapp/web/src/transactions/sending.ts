/** Sending: tried first without a wallet, then signed, then followed. */

import { useCallback, useState } from "react";
import { type Client, encodeFunctionData, type Hex } from "viem";
import { call, estimateGas, sendTransaction, waitForTransactionReceipt } from "viem/actions";
import { useClient, useConfig as useWagmiConfig } from "wagmi";
import { getConnectorClient } from "wagmi/actions";
import { useConfig } from "~/api/queries";
import { marketAbi } from "~/protocol/abi";
import { explainFailure, isRejection } from "~/protocol/refusals";
import { transactions } from "~/transactions/tracking";
import { useWallet } from "~/wallet/use_wallet";

export interface Intent {
  /** What people call it: "Cancel task 7". */
  title: string;
  kind: string;
  data: Hex;
  value?: bigint;
  task?: number;
  draft?: string;
  /** Something that is sent next needs it: it is in a block before this counts as sent. */
  isFirst?: boolean;
}

export type Outcome = "sent" | "rejected" | "refused" | "not-ready";

/** The market's function by its name, where the arguments are known to fit. */
export function marketCall(name: string, args: readonly unknown[]): Hex {
  return encodeFunctionData({ abi: marketAbi as never, functionName: name, args } as never);
}

// Estimates are of the state now; a block later somebody's act may have made it dearer.
const GAS_MARGIN_PERCENT = 125n;

async function isDone(client: Client, hash: Hex): Promise<boolean> {
  const receipt = await waitForTransactionReceipt(client, { hash, pollingInterval: 1_000 }).catch(() => null);
  return receipt?.status === "success";
}

export function useSend() {
  const config = useConfig();
  const wallet = useWallet();
  const client = useClient({ chainId: config.chain_id });
  const wagmi = useWagmiConfig();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);

  const send = useCallback(
    async (intent: Intent): Promise<Outcome> => {
      setError(null);
      if (!wallet.address) {
        wallet.connect();
        return "not-ready";
      }
      if (!client) return "not-ready";
      setBusy(true);
      const account = wallet.address;
      const request = { account, to: config.market, data: intent.data, value: intent.value ?? 0n };
      let gas: bigint;
      try {
        if (!wallet.isRightChain) await wallet.switchChain();
        // What would be refused is not worth a signature: the reason is told before the wallet opens.
        await call(client, request);
        gas = ((await estimateGas(client, request)) * GAS_MARGIN_PERCENT) / 100n;
      } catch (caught) {
        setError(explainFailure(caught, config.currency.symbol));
        setBusy(false);
        return isRejection(caught) ? "rejected" : "refused";
      }
      const id = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
      transactions.add({
        id,
        chainId: config.chain_id,
        account,
        title: intent.title,
        kind: intent.kind,
        task: intent.task ?? null,
        draft: intent.draft ?? null,
        stage: "signing",
        hash: null,
        block: null,
        confirmations: 0,
        error: null,
        at: Date.now(),
        call: { to: request.to, data: request.data, value: String(request.value) },
      });
      try {
        const signer = await getConnectorClient(wagmi, { account, chainId: config.chain_id });
        const hash = await sendTransaction(signer, { ...request, gas, chain: signer.chain });
        transactions.change(id, { stage: "sent", hash });
        if (intent.isFirst && !(await isDone(client, hash))) {
          setError(
            "The first of the two transactions is in no block, or failed there. Nothing else was sent.",
          );
          return "refused";
        }
        return "sent";
      } catch (caught) {
        const isNo = isRejection(caught);
        const text = explainFailure(caught, config.currency.symbol);
        transactions.change(id, { stage: isNo ? "rejected" : "failed", error: text });
        setError(text);
        return isNo ? "rejected" : "refused";
      } finally {
        setBusy(false);
      }
    },
    [wallet, client, wagmi, config],
  );

  return { send, isBusy, error, clearError: () => setError(null) };
}
