/**
 * A wallet in place of an extension: EIP-1193 behind an EIP-6963 announcement. Its key is one of the devnet's;
 * the test decides through `window.testWallet` what the person would do: accept, decline, be on another chain.
 */
import { createRequire } from "node:module";

const require = createRequire(new URL("../../dapp/web/package.json", import.meta.url));
const { createWalletClient, http } = require("viem");
const { privateKeyToAccount } = require("viem/accounts");

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Crect width='8' height='8' fill='%23e2761b'/%3E%3C/svg%3E";

/** Puts the wallet into every page of a context. Signing happens here in Node, as it would in an extension. */
export async function addWallet(context, place, { key, chainId = place.chain_id, knowsChain = true } = {}) {
  const account = privateKeyToAccount(key ?? place.people.requester.key);
  const chain = {
    id: place.chain_id,
    name: "devnet",
    nativeCurrency: { name: "ETH", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [place.rpc] } },
  };
  const client = createWalletClient({ account, chain, transport: http(place.rpc) });
  await context.exposeFunction("testWalletSign", async (raw) => account.signMessage({ message: { raw } }));
  await context.exposeFunction("testWalletSend", async ({ to, data, value, gas }) =>
    client.sendTransaction({
      to,
      data,
      value: value ? BigInt(value) : 0n,
      ...(gas ? { gas: BigInt(gas) } : {}),
    }),
  );
  await context.exposeFunction("testWalletAsk", async (method, params) => client.request({ method, params }));
  await context.addInitScript(
    ({ address, chainId, wanted, knowsChain, icon }) => {
      const listeners = {};
      const state = (window.testWallet = {
        chainId: Number(sessionStorage.getItem("test.chain") ?? chainId),
        known: knowsChain ? [wanted] : [],
        declines: false,
        asked: [],
      });
      const refusal = () => Object.assign(new Error("User rejected the request."), { code: 4001 });
      const hex = (number) => `0x${number.toString(16)}`;
      const tell = (name, value) => (listeners[name] ?? []).forEach((listener) => listener(value));
      const provider = {
        on: (name, listener) => (listeners[name] ??= []).push(listener),
        removeListener: (name, listener) => {
          listeners[name] = (listeners[name] ?? []).filter((one) => one !== listener);
        },
        async request({ method, params = [] }) {
          state.asked.push(method);
          switch (method) {
            case "eth_requestAccounts":
              if (state.declines) throw refusal();
              localStorage.setItem("test.allowed", "1");
              return [address];
            case "eth_accounts":
              return localStorage.getItem("test.allowed") ? [address] : [];
            case "wallet_requestPermissions":
              if (state.declines) throw refusal();
              localStorage.setItem("test.allowed", "1");
              return [{ parentCapability: "eth_accounts", caveats: [{ value: [address] }] }];
            case "eth_chainId":
              return hex(state.chainId);
            case "wallet_switchEthereumChain": {
              const to = Number(params[0].chainId);
              if (state.declines) throw refusal();
              if (!state.known.includes(to)) throw Object.assign(new Error("Unrecognized chain"), { code: 4902 });
              state.chainId = to;
              sessionStorage.setItem("test.chain", String(to));
              tell("chainChanged", hex(to));
              return null;
            }
            case "wallet_addEthereumChain":
              if (state.declines) throw refusal();
              state.known.push(Number(params[0].chainId));
              state.added = params[0];
              state.chainId = Number(params[0].chainId);
              sessionStorage.setItem("test.chain", String(state.chainId));
              tell("chainChanged", hex(state.chainId));
              return null;
            case "personal_sign":
              if (state.declines) throw refusal();
              return window.testWalletSign(params[0]);
            case "eth_sendTransaction":
              if (state.declines) throw refusal();
              if (state.hold) await new Promise((go) => (state.release = go));
              if (state.declines) throw refusal();
              return window.testWalletSend(params[0]);
            default:
              return window.testWalletAsk(method, params);
          }
        },
      };
      const detail = Object.freeze({
        info: { uuid: "4b5c8a9e-0000-4000-8000-000000000001", name: "Test Wallet", icon, rdns: "example.test.wallet" },
        provider,
      });
      const announce = () => window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
      window.addEventListener("eip6963:requestProvider", announce);
      announce();
    },
    { address: account.address, chainId, wanted: place.chain_id, knowsChain, icon: ICON },
  );
  return account;
}
