import { describe, expect, it } from "vitest";
import { fateOf, fateOfReplaced, restored, type Tracked, TransactionStore } from "~/transactions/store";

const item: Tracked = {
  id: "a",
  chainId: 1337,
  account: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
  title: "Cancel task 7",
  kind: "cancel",
  task: 7,
  draft: null,
  stage: "sent",
  hash: `0x${"ab".repeat(32)}`,
  block: null,
  confirmations: 0,
  error: null,
  at: 0,
};

function memory() {
  let kept: string | null = null;
  return {
    getItem: () => kept,
    setItem: (_: string, value: string) => {
      kept = value;
    },
  };
}

describe("transactions", () => {
  it("survive a reload where they were sent", () => {
    const storage = memory();
    new TransactionStore(storage).add(item);
    expect(new TransactionStore(storage).items).toEqual([item]);
  });

  it("that were being signed are told of as not known after a reload", () => {
    const [found] = restored(JSON.stringify([{ ...item, stage: "signing", hash: null }]));
    expect(found?.stage).toBe("lost");
    expect(found?.error).toMatch(/while your wallet was open/);
  });

  it("tell their listeners of every change, and forget what is dismissed", () => {
    const store = new TransactionStore(memory());
    let told = 0;
    const stop = store.subscribe(() => {
      told += 1;
    });
    store.add(item);
    store.change("a", { stage: "mined", confirmations: 1 });
    store.change("nobody", { stage: "final" });
    expect(store.items[0]).toMatchObject({ stage: "mined", confirmations: 1 });
    store.remove("a");
    stop();
    store.add(item);
    expect(told).toBe(3);
  });

  it("are not read from what somebody else wrote", () => {
    expect(restored("{")).toEqual([]);
    expect(restored('{"a": 1}')).toEqual([]);
    expect(restored('[1, null, {"id": 3}]')).toEqual([]);
  });
});

describe("a transaction in no block", () => {
  const waiting = { isKnown: true, ageMs: 60 * 60_000 };
  it.each([
    ["waits as long as a node has it", waiting, null],
    ["may not have spread yet", { isKnown: false, ageMs: 1_000 }, null],
    ["is lost when no node has it for long", { ...waiting, isKnown: false }, /No node has it/],
  ])("%s", (_, found, said) => {
    const fate = fateOf(found);
    if (said === null) expect(fate).toBeNull();
    else expect(fate).toMatchObject({ stage: "lost", error: expect.stringMatching(said) });
  });

  it("is itself what took its nonce, where a block came meanwhile", () => {
    const call = { to: null, data: "0x", value: "0" } as const;
    expect(fateOfReplaced(item, { hash: item.hash ?? "0x", call })).toBeNull();
  });
});
