import {
  type Abi,
  createClient,
  custom,
  encodeErrorResult,
  type Hex,
  numberToHex,
  RpcRequestError,
} from "viem";
import { describe, expect, it } from "vitest";
import { marketAbi } from "~/protocol/abi";
import type { Tracked } from "~/transactions/store";
import { progressOf } from "~/transactions/tracking";

const ACCOUNT = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const MARKET = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512";
const SENT: Hex = `0x${"ab".repeat(32)}`;
const BLOCK = 40;

const settled = encodeErrorResult({
  abi: marketAbi as Abi,
  errorName: "MarketUnexpectedState",
  args: [7n, 9],
});

/** A chain that has the transaction in a block, where it reverted; says what was called once more, and where. */
function chain(answer: () => unknown, { keeps = true } = {}) {
  const called: unknown[] = [];
  const answers: Record<string, (params: unknown[]) => unknown> = {
    eth_getTransactionReceipt: () => ({
      transactionHash: SENT,
      blockNumber: numberToHex(BLOCK),
      status: "0x0",
      logs: [],
      type: "0x2",
    }),
    eth_getTransactionByHash: () =>
      keeps
        ? {
            hash: SENT,
            from: ACCOUNT.toLowerCase(),
            to: MARKET,
            input: "0xaabb",
            value: numberToHex(12n),
            nonce: "0x7",
            gas: "0x1",
            type: "0x2",
          }
        : null,
    eth_call: (params) => {
      called.push(params);
      return answer();
    },
  };
  const request = async ({ method, params = [] }: { method: string; params?: unknown }) =>
    answers[method]?.(params as unknown[]);
  return { client: createClient({ transport: custom({ request }, { retryCount: 0 }) }), called };
}

const item: Tracked = {
  id: "a",
  chainId: 1337,
  account: ACCOUNT,
  title: "Settle and pay everyone: task 7",
  kind: "settle",
  task: 7,
  draft: null,
  stage: "sent",
  hash: SENT,
  block: null,
  confirmations: 0,
  error: null,
  at: Date.now(),
};

const look = ({ client }: ReturnType<typeof chain>) => progressOf(client, item, SENT, BLOCK + 2, 3, "ETH");

function refusal(data: Hex) {
  return () => {
    throw new RpcRequestError({ body: {}, url: "", error: { code: 3, message: "execution reverted", data } });
  };
}

describe("a transaction that reverted in its block", () => {
  it("has failed with the market's reason, asked for on the state that it met", async () => {
    const found = chain(refusal(settled));
    expect(await look(found)).toEqual({
      stage: "failed",
      block: BLOCK,
      error: "Task 7 is settled: this cannot be done now.",
    });
    const [[call, block]] = found.called as [[Record<string, string>, string]];
    expect(block).toBe(numberToHex(BLOCK - 1));
    expect(call).toMatchObject({ data: "0xaabb", value: numberToHex(12n) });
    expect(call.from?.toLowerCase()).toBe(ACCOUNT.toLowerCase());
    expect(call.to?.toLowerCase()).toBe(MARKET.toLowerCase());
  });

  it("met another state within its block where the call would be taken before", async () => {
    expect(await look(chain(() => "0x"))).toMatchObject({
      stage: "failed",
      error: expect.stringMatching(/something changed between signing and the block/),
    });
  });

  it("has failed also where no node says why any more", async () => {
    const found = await look(chain(() => "0x", { keeps: false }));
    expect(found).toMatchObject({ stage: "failed", block: BLOCK });
    expect(found?.error).toBeTruthy();
  });
});
