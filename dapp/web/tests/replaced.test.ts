import { createClient, custom, type Hex, numberToHex, RpcRequestError } from "viem";
import { describe, expect, it } from "vitest";
import { takerOf } from "~/transactions/replaced";
import type { Tracked } from "~/transactions/store";
import { progressOf } from "~/transactions/tracking";

const ACCOUNT = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const MARKET = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512";
const SENT: Hex = `0x${"ab".repeat(32)}`;
const FASTER: Hex = `0x${"cd".repeat(32)}`;
const HEAD = 5_000;
const NONCE = 7;

interface Made {
  hash: Hex;
  to: Hex;
  input: Hex;
  value: bigint;
  /** The block that it is in. */
  block: number;
}

const post = { to: MARKET, input: "0xaabb", value: 12n } as const;

/** A chain on which the account's transactions before this one were mined long ago. */
function chain(made: Made | null, { states = HEAD + 1, waiting = null as Hex | null } = {}) {
  const asked: string[] = [];
  const transaction = (
    one: { hash: Hex; to: Hex; input: Hex; value: bigint },
    nonce: number,
    from: string,
  ) => ({
    ...one,
    value: numberToHex(one.value),
    nonce: numberToHex(nonce),
    from,
    type: "0x2",
    gas: "0x1",
  });
  const answers: Record<string, (params: never[]) => unknown> = {
    eth_blockNumber: () => numberToHex(HEAD),
    eth_getTransactionCount: ([, tag]) => {
      const block = tag === "latest" ? HEAD : Number(tag);
      if (block <= HEAD - states)
        throw new RpcRequestError({
          body: {},
          url: "",
          error: { code: -32000, message: "missing trie node" },
        });
      return numberToHex(made && block >= made.block ? NONCE + 1 : NONCE);
    },
    eth_getTransactionReceipt: ([hash]) =>
      made && hash === made.hash
        ? {
            transactionHash: hash,
            blockNumber: numberToHex(made.block),
            status: "0x1",
            logs: [],
            type: "0x2",
          }
        : null,
    eth_getTransactionByHash: ([hash]) =>
      hash === waiting ? transaction({ hash, ...post }, NONCE, ACCOUNT) : null,
    eth_getBlockByNumber: ([tag]) => ({
      number: tag,
      transactions:
        made && Number(tag) === made.block
          ? [
              // Another's with the same nonce stands before it.
              transaction({ hash: `0x${"11".repeat(32)}`, ...post }, NONCE, MARKET),
              transaction(made, NONCE, ACCOUNT.toLowerCase()),
            ]
          : [],
    }),
  };
  const request = async ({ method, params = [] }: { method: string; params?: unknown }) => {
    asked.push(method);
    const answer = answers[method];
    if (!answer) throw new Error(`the test's chain knows no ${method}`);
    return answer(params as never[]);
  };
  return { client: createClient({ transport: custom({ request }, { retryCount: 0 }) }), asked };
}

const item: Tracked = {
  id: "a",
  chainId: 1337,
  account: ACCOUNT,
  title: "Post task: iris",
  kind: "post",
  task: null,
  draft: "d",
  stage: "sent",
  hash: SENT,
  block: null,
  confirmations: 0,
  error: null,
  at: Date.now(),
  nonce: NONCE,
  call: { to: MARKET, data: "0xaabb", value: "12" },
};

function look(made: Made | null, one: Tracked = item, options = {}) {
  return progressOf(chain(made, options).client, one, one.hash ?? SENT, HEAD, 3, "ETH");
}

describe("a transaction whose nonce another hash took", () => {
  it("goes on under that hash where a wallet sped it up", async () => {
    const changes = await look({ hash: FASTER, ...post, block: HEAD - 1 });

    expect(changes).toEqual({ hash: FASTER, nonce: NONCE });
    const next = await look({ hash: FASTER, ...post, block: HEAD - 1 }, { ...item, ...changes });
    expect(next).toMatchObject({ stage: "mined", block: HEAD - 1, confirmations: 2 });
  });

  it.each([
    ["a cancel", { ...post, to: ACCOUNT, input: "0x", value: 0n } as const],
    ["another call of the market", { ...post, input: "0xccdd" } as const],
    ["other money", { ...post, value: 13n }],
  ])("is void where that is %s", async (_, call) => {
    const changes = await look({ hash: FASTER, ...call, block: HEAD });
    expect(changes).toMatchObject({ stage: "lost", error: expect.stringMatching(/never counts/) });
  });

  it.each([
    ["the node keeps no state of the time before", item, { states: 128 }],
    ["an older page did not note what it does", { ...item, call: undefined } as never, {}],
  ])("is not called void where %s", async (_, one, options) => {
    const changes = await look({ hash: FASTER, ...post, block: HEAD - 2_000 }, one, options);
    expect(changes).toMatchObject({
      stage: "lost",
      error: expect.stringMatching(/before you send it again/),
    });
  });

  it("waits where none took it", async () => {
    expect(await look(null, item, { waiting: SENT })).toBeNull();
    expect(await look(null, { ...item, nonce: null }, { waiting: SENT })).toEqual({ nonce: NONCE });
  });
});

it("is found thousands of blocks ago with few questions", async () => {
  const { client, asked } = chain({ hash: FASTER, ...post, block: 3 });
  expect((await takerOf(client, ACCOUNT, NONCE))?.hash).toBe(FASTER);
  expect(asked.length).toBeLessThan(30);
});
