/** What the market itself says of a task's claim: through the person's own wallet where there is one. */

import { readContract } from "viem/actions";
import { useClient, useConnection, useConfig as useWagmiConfig } from "wagmi";
import { getConnectorClient } from "wagmi/actions";
import { useConfig } from "~/api/queries";
import type { OnChain } from "~/content/proof";
import { marketAbi } from "~/protocol/abi";
import { BURNER_ID } from "~/wallet/burner";
import { useWallet } from "~/wallet/use_wallet";

export interface Told extends OnChain {
  /** Who was asked: the wallet's own node, or this page's server, which passes the question on. */
  by: "wallet" | "server";
}

export function useChainClaim(): (task: number) => Promise<Told> {
  const config = useConfig();
  const wallet = useWallet();
  const { connector } = useConnection();
  const server = useClient({ chainId: config.chain_id });
  const wagmi = useWagmiConfig();
  // The burner has no node of its own.
  const hasNode = wallet.isConnected && wallet.isRightChain && connector?.id !== BURNER_ID;
  return async (task) => {
    const client = hasNode ? await getConnectorClient(wagmi, { chainId: config.chain_id }) : server;
    if (!client) throw new Error("The chain cannot be asked.");
    const market = { address: config.market, abi: marketAbi };
    const found = await readContract(client, { ...market, functionName: "task", args: [BigInt(task)] });
    const slot = await readContract(client, {
      ...market,
      functionName: "slot",
      args: [BigInt(task), BigInt(found.lead)],
    });
    return {
      manifest: found.manifest,
      segments: found.segments,
      digest: slot.digest,
      by: hasNode ? "wallet" : "server",
    };
  };
}
