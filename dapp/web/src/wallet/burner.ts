/**
 * A wallet for trying things out on a devnet: its key lies in this browser's storage, so it must never hold
 * anything of worth. It is not offered on any other chain.
 */

import type { Chain, Hex } from "viem";
import { createConnector } from "wagmi";

const KEY = "trainyard.burner";

export const BURNER_ID = "burner";

interface Request {
  method: string;
  params?: unknown;
}

class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

async function ask(url: string, method: string, params: unknown): Promise<unknown> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: params ?? [] }),
  });
  const said = (await answer.json()) as {
    result?: unknown;
    error?: { code: number; message: string; data?: unknown };
  };
  if (said.error)
    throw new RpcError(said.error.code ?? -32000, said.error.message ?? "the node refused", said.error.data);
  return said.result;
}

/** The cryptography is loaded only by those who use this wallet. */
async function ownAccount() {
  const { generatePrivateKey, privateKeyToAccount } = await import("viem/accounts");
  let key = localStorage.getItem(KEY) as Hex | null;
  if (!key || !/^0x[0-9a-f]{64}$/.test(key)) {
    key = generatePrivateKey();
    localStorage.setItem(KEY, key);
  }
  return privateKeyToAccount(key);
}

function providerOf(chain: Chain, url: string) {
  return {
    on() {},
    removeListener() {},
    async request({ method, params }: Request): Promise<unknown> {
      const account = await ownAccount();
      const given = (params ?? []) as unknown[];
      switch (method) {
        case "eth_requestAccounts":
        case "eth_accounts":
          return [account.address];
        case "eth_chainId":
          return `0x${chain.id.toString(16)}`;
        case "personal_sign":
          return account.signMessage({ message: { raw: given[0] as Hex } });
        case "eth_sendTransaction": {
          const { createWalletClient, http } = await import("viem");
          const wallet = createWalletClient({ account, chain, transport: http(url, { batch: false }) });
          const { to, data, value, gas } = given[0] as Record<
            "to" | "data" | "value" | "gas",
            Hex | undefined
          >;
          return wallet.sendTransaction({
            to: to ?? null,
            ...(data ? { data } : {}),
            ...(value ? { value: BigInt(value) } : {}),
            ...(gas ? { gas: BigInt(gas) } : {}),
          });
        }
        case "wallet_switchEthereumChain":
        case "wallet_addEthereumChain":
          return null;
        default:
          return ask(url, method, params);
      }
    },
  };
}

export function burner(chain: Chain, url: string) {
  const provider = providerOf(chain, url);
  return createConnector<typeof provider>((config) => ({
    id: BURNER_ID,
    name: "Burner wallet",
    type: "burner",
    // wagmi types the accounts by whether capabilities are asked for, which this wallet has none of.
    async connect() {
      const { address } = await ownAccount();
      localStorage.setItem(`${KEY}.used`, "1");
      return { accounts: [address] as never, chainId: chain.id };
    },
    async disconnect() {
      localStorage.removeItem(`${KEY}.used`);
    },
    async getAccounts() {
      return [(await ownAccount()).address];
    },
    async getChainId() {
      return chain.id;
    },
    async getProvider() {
      return provider;
    },
    async isAuthorized() {
      return localStorage.getItem(`${KEY}.used`) === "1";
    },
    async switchChain() {
      return chain;
    },
    onAccountsChanged() {},
    onChainChanged() {},
    onDisconnect() {
      config.emitter.emit("disconnect");
    },
  }));
}
