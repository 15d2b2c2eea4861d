/** Signing in with Ethereum (EIP-4361): for drafts and notifications only; looking needs no account. */

import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { signMessage } from "viem/actions";
import { createSiweMessage } from "viem/siwe";
import { useConfig as useWagmiConfig } from "wagmi";
import { getConnectorClient } from "wagmi/actions";
import { get, rememberCsrf, send } from "~/api/client";
import type { Nonce, Session } from "~/api/types";

const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }) => {
    const session = await get<Session>("/auth/session", {}, signal);
    rememberCsrf(session.csrf_token);
    return session;
  },
  staleTime: 60_000,
});

export function useSession() {
  return useQuery(sessionQuery);
}

export function useSignIn() {
  const wagmi = useWagmiConfig();
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (address: `0x${string}`) => {
      const given = await get<Nonce>("/auth/nonce", { address });
      const message = createSiweMessage({
        address,
        chainId: given.chain_id,
        domain: given.domain,
        uri: given.uri,
        nonce: given.nonce,
        statement: given.statement,
        version: "1",
        issuedAt: new Date(given.issued_at),
        expirationTime: new Date(given.expires_at),
      });
      const signer = await getConnectorClient(wagmi, { account: address });
      const signature = await signMessage(signer, { account: address, message });
      const session = await send<Session>("POST", "/auth/sign-in", { message, signature });
      rememberCsrf(session.csrf_token);
      return session;
    },
    onSuccess: (session) => {
      client.setQueryData(["session"], session);
      void client.invalidateQueries({ queryKey: ["notifications"] });
      void client.invalidateQueries({ queryKey: ["drafts"] });
    },
  });
}

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => send<void>("POST", "/auth/sign-out"),
    onSettled: () => {
      rememberCsrf(null);
      void client.invalidateQueries({ queryKey: ["session"] });
    },
  });
}
