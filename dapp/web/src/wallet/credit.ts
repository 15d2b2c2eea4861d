import { useQuery } from "@tanstack/react-query";
import { readContract } from "viem/actions";
import { useClient } from "wagmi";
import { useConfig } from "~/api/queries";
import { marketAbi } from "~/protocol/abi";

/** What an address has to its credit in the market, as the chain says now: the index may be a block behind. */
export function useCredit(address: `0x${string}` | undefined) {
  const { chain_id: chainId, market } = useConfig();
  const client = useClient({ chainId });
  return useQuery({
    queryKey: ["account", address, "credit"],
    queryFn: async () => {
      if (!client || !address) throw new Error("there is no address");
      const found = await readContract(client, {
        address: market,
        abi: marketAbi,
        functionName: "account",
        args: [address],
      });
      return found.credit;
    },
    enabled: Boolean(client && address),
  });
}

/** What has to be put in before a call that takes `needed` of the credit. */
export function missingCredit(needed: bigint, credit: bigint): bigint {
  return credit >= needed ? 0n : needed - credit;
}
