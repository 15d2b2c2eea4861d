import { useQuery } from "@tanstack/react-query";
import { getBalance } from "viem/actions";
import { useClient } from "wagmi";
import { useConfig } from "~/api/queries";

/** What an address has in its purse on the market's chain. */
export function useBalance(address: `0x${string}` | undefined) {
  const { chain_id: chainId } = useConfig();
  const client = useClient({ chainId });
  return useQuery({
    queryKey: ["balance", address],
    queryFn: () => {
      if (!client || !address) throw new Error("there is no address");
      return getBalance(client, { address });
    },
    enabled: Boolean(client && address),
    refetchInterval: 15_000,
  });
}
