/** The wallets of this page: all that the browser announces (EIP-6963), and on a devnet a burner. */

import { type Chain, defineChain } from "viem";
import { createConfig, createStorage, http } from "wagmi";
import { BASE } from "~/api/client";
import type { Config } from "~/api/types";
import { burner } from "~/wallet/burner";

export function chainOf(config: Config): Chain {
  return defineChain({
    id: config.chain_id,
    name: config.chain_name,
    nativeCurrency: { name: config.currency.symbol, symbol: config.currency.symbol, decimals: 18 },
    // What a wallet is told when it does not know the chain; the page itself asks its own server.
    rpcUrls: { default: { http: config.rpc_url ? [config.rpc_url] : [] } },
    testnet: config.is_devnet,
  });
}

export function rpcAddress(): string {
  return `${location.origin}${BASE}/rpc`;
}

export function walletConfig(config: Config) {
  const chain = chainOf(config);
  return createConfig({
    chains: [chain],
    connectors: config.is_devnet ? [burner(chain, rpcAddress())] : [],
    transports: { [chain.id]: http(rpcAddress(), { batch: false, retryCount: 1 }) },
    storage: createStorage({ storage: window.localStorage, key: "trainyard.wallet" }),
    pollingInterval: 2_000,
  });
}
