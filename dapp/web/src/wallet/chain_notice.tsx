/** Says so at once when the wallet is on another chain, with the one click that mends it. */

import { useConfig } from "~/api/queries";
import { Button, Notice } from "~/components/basics";
import { isRejection } from "~/protocol/refusals";
import { useWallet } from "~/wallet/use_wallet";

export function ChainNotice() {
  const config = useConfig();
  const wallet = useWallet();
  if (!wallet.isConnected || wallet.isRightChain) return null;
  const { switchError: error } = wallet;
  return (
    <div className="chain-notice">
      <Notice
        tone="warn"
        urgent
        title={`Your wallet is on another network than ${config.chain_name}`}
        action={
          <Button busy={wallet.isSwitching} onClick={() => void wallet.switchChain().catch(() => {})}>
            Switch to {config.chain_name}
          </Button>
        }
      >
        {error
          ? isRejection(error)
            ? "You declined the switch. Nothing can be sent until the wallet is on the market's network."
            : `The wallet could not switch. Add the network by hand: chain ${config.chain_id}${config.rpc_url ? `, ${config.rpc_url}` : ""}.`
          : "You can look around. Before anything is sent, the wallet has to switch; it will offer to add the network."}
      </Notice>
    </div>
  );
}
