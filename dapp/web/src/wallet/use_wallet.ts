/** The wallet as the pages see it: an address, whether it is on the right chain, and how to change both. */

import { useConnection, useDisconnect, useSwitchChain } from "wagmi";
import { useConfig } from "~/api/queries";
import { openWalletDialog } from "~/wallet/dialog_state";

export interface Wallet {
  address: `0x${string}` | undefined;
  isConnected: boolean;
  /** Whether a wallet of an earlier visit is still being asked. */
  isWaking: boolean;
  isRightChain: boolean;
  walletName: string | undefined;
  connect: () => void;
  disconnect: () => void;
  switchChain: () => Promise<void>;
  isSwitching: boolean;
  switchError: Error | null;
}

export function useWallet(): Wallet {
  const { chain_id: wanted } = useConfig();
  const connection = useConnection();
  const { mutate: disconnect } = useDisconnect();
  const switching = useSwitchChain();
  return {
    address: connection.address,
    isConnected: connection.status === "connected" && Boolean(connection.address),
    isWaking: connection.status === "reconnecting",
    isRightChain: connection.chainId === wanted,
    walletName: connection.connector?.name,
    connect: openWalletDialog,
    disconnect: () => disconnect({}),
    switchChain: async () => {
      await switching.mutateAsync({ chainId: wanted });
    },
    isSwitching: switching.isPending,
    switchError: switching.error,
  };
}
