/** The draft as the server sees it: a stored manifest, and terms with a price. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { send } from "~/api/client";
import type { ManifestView, Quote, QuoteRequest } from "~/api/types";
import { useRested } from "~/components/debounce";
import { type Draft, manifestOf, type Wishes } from "~/drafts/draft";

export interface QuoteState {
  manifest: ManifestView | undefined;
  manifestError: unknown;
  quote: Quote | undefined;
  quoteError: unknown;
  isWorking: boolean;
}

export function useQuote(draft: Draft): QuoteState {
  const text = JSON.stringify(manifestOf(draft));
  const rested = useRested(text, 400);
  const has = rested !== "null";
  const stored = useQuery({
    queryKey: ["draft-manifest", rested],
    queryFn: ({ signal }) =>
      send<ManifestView>("POST", "/manifests", { manifest: JSON.parse(rested) }, signal),
    enabled: has,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
    retry: 1,
  });
  const manifest = has && !stored.error ? stored.data : undefined;
  const wishes = useRested(JSON.stringify(draft.wishes), 300);
  const quoted = useQuery({
    queryKey: ["quote", manifest?.digest, wishes],
    queryFn: ({ signal }) =>
      send<Quote>("POST", "/quotes", quoteRequest(manifest?.digest ?? "0x", JSON.parse(wishes)), signal),
    enabled: Boolean(manifest),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
    retry: 1,
  });
  const isStale =
    rested !== text ||
    wishes !== JSON.stringify(draft.wishes) ||
    stored.isPlaceholderData ||
    quoted.isPlaceholderData;
  return {
    manifest,
    manifestError: has ? stored.error : null,
    quote: manifest && !quoted.error ? quoted.data : undefined,
    quoteError: manifest ? quoted.error : null,
    isWorking: has && (isStale || stored.isFetching || quoted.isFetching),
  };
}

export function quoteRequest(manifest: `0x${string}`, wishes: Wishes): QuoteRequest {
  const {
    envClass,
    rewardWei,
    stakeWei,
    auditFeeWei,
    joinFor,
    trainFor,
    auditFor,
    answerFor,
    challengeFor,
    ...same
  } = wishes;
  return {
    manifest,
    ...same,
    ...(envClass ? { env_class: envClass } : {}),
    ...(rewardWei ? { reward_wei: rewardWei } : {}),
    ...(stakeWei ? { stake_wei: stakeWei } : {}),
    ...(auditFeeWei ? { audit_fee_wei: auditFeeWei } : {}),
    ...(joinFor ? { join_for: joinFor } : {}),
    ...(trainFor ? { train_for: trainFor } : {}),
    ...(auditFor ? { audit_for: auditFor } : {}),
    ...(answerFor ? { answer_for: answerFor } : {}),
    ...(challengeFor ? { challenge_for: challengeFor } : {}),
  };
}
