/** What took a transaction's place: a wallet's "speed up" is the same call again, under another hash. */

import { type Address, BaseError, type Client, type Hash, type Hex, RpcRequestError } from "viem";
import { getBlock, getBlockNumber, getTransactionCount } from "viem/actions";

/** What a transaction does, apart from what is paid for its gas. */
export interface Call {
  to: Address | null;
  data: Hex;
  /** In wei, as text: storage takes no large numbers. */
  value: string;
}

export interface Taker {
  hash: Hash;
  call: Call;
}

export function isSameCall(one: Call, other: Call): boolean {
  return (
    one.to?.toLowerCase() === other.to?.toLowerCase() &&
    one.data.toLowerCase() === other.data.toLowerCase() &&
    BigInt(one.value) === BigInt(other.value)
  );
}

/**
 * The account's transaction with this nonce. The block that used it is found by counts, not by reading all
 * blocks since: a page that was closed for an hour asks some twenty questions. Null where the node keeps no
 * state of a block before it.
 */
export async function takerOf(client: Client, address: Address, nonce: number): Promise<Taker | null> {
  let used = await getBlockNumber(client, { cacheTime: 0 });
  let unused = -1n;
  for (let step = 1n; unused < 0n; step *= 2n) {
    if (used === 0n) return null;
    const block = used > step ? used - step : 0n;
    const count = await countAt(client, address, block);
    if (count === null) return null;
    if (count > nonce) used = block;
    else unused = block;
  }
  while (used - unused > 1n) {
    const block = (used + unused) / 2n;
    const count = await countAt(client, address, block);
    if (count === null) return null;
    if (count > nonce) used = block;
    else unused = block;
  }
  const { transactions } = await getBlock(client, { blockNumber: used, includeTransactions: true });
  const taker = transactions.find(
    (one) => one.nonce === nonce && one.from.toLowerCase() === address.toLowerCase(),
  );
  if (!taker) return null;
  return { hash: taker.hash, call: { to: taker.to, data: taker.input, value: String(taker.value) } };
}

async function countAt(client: Client, address: Address, block: bigint): Promise<number | null> {
  try {
    return await getTransactionCount(client, { address, blockNumber: block });
  } catch (error) {
    // It answered, and has no such state. A node that is away is another matter: that is tried again.
    if (error instanceof BaseError && error.walk((one) => one instanceof RpcRequestError)) return null;
    throw error;
  }
}
