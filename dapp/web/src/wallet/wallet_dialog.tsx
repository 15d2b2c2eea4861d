/** The choice of wallets. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Connector, useConnect, useConnectors } from "wagmi";
import { send } from "~/api/client";
import { useConfig } from "~/api/queries";
import type { FaucetGrant } from "~/api/types";
import { Dialog, Notice } from "~/components/basics";
import { Icon } from "~/components/icons";
import { isRejection } from "~/protocol/refusals";
import { BURNER_ID } from "~/wallet/burner";
import { closeWalletDialog, useWalletDialog } from "~/wallet/dialog_state";

export default function WalletDialog() {
  const isOpen = useWalletDialog();
  const config = useConfig();
  const client = useQueryClient();
  const connectors = useConnectors();
  const { mutateAsync: connect } = useConnect();
  const [pending, setPending] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const announced = connectors.filter((one) => one.type === "injected" && one.id !== "injected");
  const burner = connectors.find((one) => one.id === BURNER_ID);

  const choose = async (connector: Connector) => {
    setPending(connector.uid);
    setError(null);
    try {
      const { accounts } = await connect({ connector });
      const [address] = accounts;
      if (connector.id === BURNER_ID && config.has_faucet && address) {
        await send<FaucetGrant>("POST", "/faucet", { address }).catch(() => null);
        void client.invalidateQueries({ queryKey: ["balance"] });
      }
      closeWalletDialog();
    } catch (caught) {
      setError(
        isRejection(caught)
          ? "You declined in your wallet. Nothing happened."
          : caught instanceof Error
            ? (caught.message.split("\n")[0] ?? "")
            : "The wallet did not answer.",
      );
    } finally {
      setPending(null);
    }
  };

  return (
    <Dialog title="Connect a wallet" open={isOpen} onClose={closeWalletDialog}>
      {error && (
        <Notice tone="bad" title="Not connected" urgent>
          {error}
        </Notice>
      )}
      <ul className="stack stack-s">
        {announced.map((connector) => (
          <li key={connector.uid}>
            <button
              type="button"
              className="option"
              onClick={() => void choose(connector)}
              aria-busy={pending === connector.uid}
            >
              {connector.icon?.startsWith("data:image/") ? (
                <img src={connector.icon} alt="" />
              ) : (
                <Icon name="wallet" size={28} />
              )}
              <span>
                <span className="bold">{connector.name}</span>
                <span className="small muted">
                  {pending === connector.uid ? "Waiting for the wallet …" : "Found in this browser"}
                </span>
              </span>
            </button>
          </li>
        ))}
        {burner && (
          <li>
            <button
              type="button"
              className="option"
              onClick={() => void choose(burner)}
              aria-busy={pending === burner.uid}
            >
              <Icon name="flame" size={28} />
              <span>
                <span className="bold">Burner wallet</span>
                <span className="small muted">
                  {pending === burner.uid
                    ? "Making and funding it …"
                    : "A key in this browser, funded at once. For this devnet only."}
                </span>
              </span>
            </button>
          </li>
        )}
      </ul>
      {announced.length === 0 && !burner && (
        <Notice tone="info" title="No wallet found in this browser">
          Install a wallet that follows EIP-6963, such as Rabby or MetaMask, and load this page again. You
          need none to look around.
        </Notice>
      )}
      <p className="small muted">
        The page asks your wallet for an address and, when you post or act, for a signature. Your keys never
        leave the wallet.
      </p>
    </Dialog>
  );
}
