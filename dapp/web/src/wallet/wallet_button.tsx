/** The wallet in the top bar: connect, or see who one is and what one has. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { send } from "~/api/client";
import { accountQuery, useConfig } from "~/api/queries";
import { Button, CopyButton } from "~/components/basics";
import { AddressTag, Amount } from "~/components/chain";
import { shortAddress } from "~/protocol/units";
import { Link } from "~/router";
import { useBalance } from "~/wallet/balance";
import { useWallet } from "~/wallet/use_wallet";

export function WalletButton() {
  const wallet = useWallet();
  const [isOpen, setOpen] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const close = (event: Event) => {
      const isKey = event instanceof KeyboardEvent;
      if (isKey ? event.key === "Escape" : !menu.current?.contains(event.target as Node)) {
        setOpen(false);
        if (isKey) menu.current?.querySelector("button")?.focus();
      }
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", close);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", close);
    };
  }, [isOpen]);
  if (!wallet.isConnected || !wallet.address) {
    return (
      <Button look="primary" busy={wallet.isWaking} onClick={wallet.connect}>
        Connect
      </Button>
    );
  }
  return (
    <div className="menu" ref={menu}>
      <Button
        onClick={() => setOpen(!isOpen)}
        aria-expanded={isOpen}
        aria-label={`Wallet ${shortAddress(wallet.address)}`}
      >
        <AddressTag address={wallet.address} />
      </Button>
      {isOpen && <Menu address={wallet.address} close={() => setOpen(false)} />}
    </div>
  );
}

function Menu({ address, close }: { address: `0x${string}`; close: () => void }) {
  const wallet = useWallet();
  const config = useConfig();
  const client = useQueryClient();
  const balance = useBalance(address);
  const account = useQuery(accountQuery(address));
  const [isAsking, setAsking] = useState(false);
  const fund = async () => {
    setAsking(true);
    await send("POST", "/faucet", { address }).catch(() => null);
    await client.invalidateQueries({ queryKey: ["balance"] });
    setAsking(false);
  };
  return (
    <div className="menu-panel">
      <div className="row row-between">
        <span className="small muted">{wallet.walletName}</span>
        <span className="address">
          {shortAddress(address)}
          <CopyButton text={address} label="Copy address" />
        </span>
      </div>
      <dl className="facts">
        <div>
          <dt>In the wallet</dt>
          <dd>{balance.data === undefined ? "…" : <Amount wei={balance.data} digits={4} />}</dd>
        </div>
        <div>
          <dt>Credit in the market</dt>
          <dd>{account.data ? <Amount wei={account.data.credit_wei} digits={4} /> : "…"}</dd>
        </div>
        <div>
          <dt>Held by tasks</dt>
          <dd>{account.data ? <Amount wei={account.data.held_wei} digits={4} /> : "…"}</dd>
        </div>
      </dl>
      <div className="row">
        <Link to="/account" className="button button-small" onClick={close}>
          Account
        </Link>
        {config.has_faucet && (
          <Button size="small" busy={isAsking} onClick={() => void fund()}>
            Get test {config.currency.symbol}
          </Button>
        )}
        <Button
          size="small"
          look="quiet"
          onClick={() => {
            wallet.disconnect();
            close();
          }}
        >
          Disconnect
        </Button>
      </div>
    </div>
  );
}
