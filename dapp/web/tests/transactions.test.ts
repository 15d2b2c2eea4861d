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

/** Two tabs over one storage, which have not heard of each other yet. */
function tabs(storage = memory()) {
  return [new TransactionStore(storage), new TransactionStore(storage)] as const;
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

  it("of an end that another tab has seen go on no more", () => {
    const [one, other] = tabs();
    one.add(item);
    other.change("a", { stage: "final", confirmations: 12 });
    one.change("a", { stage: "mined", confirmations: 11 });
    expect(one.items).toMatchObject([{ stage: "final", confirmations: 12 }]);
  });

  it("are not read from what somebody else wrote", () => {
    expect(restored("{")).toEqual([]);
    expect(restored('{"a": 1}')).toEqual([]);
    expect(restored('[1, null, {"id": 3}]')).toEqual([]);
  });
});

describe("transactions of two tabs", () => {
  const old = { ...item, id: "old", at: 1 };
  const fresh = { ...item, id: "fresh", kind: "post", draft: "d", at: 2 };

  it("are kept, whichever tab writes last", () => {
    const storage = memory();
    const [one, other] = tabs(storage);
    one.add(old);
    other.add(fresh);
    one.change("old", { stage: "mined", block: 5, confirmations: 1 });
    expect(new TransactionStore(storage).items).toMatchObject([
      { id: "fresh", stage: "sent" },
      { id: "old", stage: "mined" },
    ]);
  });

  it("come as far as the tab that saw the most", () => {
    const [one, other] = tabs();
    one.add(old);
    other.follow();
    other.change("old", { stage: "mined", block: 5, confirmations: 1 });
    one.add(fresh);
    expect(one.items).toMatchObject([{ id: "fresh" }, { id: "old", stage: "mined" }]);
  });

  it("stay dismissed where another tab still has them", () => {
    const [one, other] = tabs();
    one.add(old);
    other.follow();
    one.remove("old");
    other.add(fresh);
    one.follow();
    expect(one.items).toEqual([fresh]);
    expect(other.items).toEqual([fresh]);
  });

  it("are told of in both", () => {
    const [one, other] = tabs();
    let told = 0;
    other.subscribe(() => {
      told += 1;
    });
    one.add(fresh);
    other.follow();
    expect(told).toBe(1);
    expect(other.items).toEqual([fresh]);
  });

  it("are written again where the other tab missed them", () => {
    const storage = memory();
    const [one, other] = tabs(storage);
    one.add(fresh);
    // Written by a tab that read before.
    storage.setItem("", JSON.stringify([old]));
    one.follow();
    other.follow();
    expect(other.items).toEqual([fresh, old]);
  });

  it("wait for the wallet of their own tab in all, whatever one that was loaded meanwhile guesses", () => {
    const storage = memory();
    const one = new TransactionStore(storage);
    one.add({ ...fresh, stage: "signing", hash: null });
    const other = new TransactionStore(storage);
    expect(other.items).toMatchObject([{ stage: "lost" }]);
    one.follow();
    other.follow();
    expect([one.items, other.items]).toMatchObject([
      [{ stage: "signing", error: null }],
      [{ stage: "signing", error: null }],
    ]);
    one.change("fresh", { stage: "sent", hash: item.hash });
    other.follow();
    expect(other.items).toMatchObject([{ stage: "sent", hash: item.hash }]);
  });

  it("are lost in all where the page of the wallet itself was loaded again", () => {
    const storage = memory();
    const [one, other] = tabs(storage);
    one.add({ ...fresh, stage: "signing", hash: null });
    other.follow();
    expect(new TransactionStore(storage).items).toMatchObject([{ stage: "lost" }]);
    other.follow();
    expect(other.items).toMatchObject([{ stage: "lost" }]);
  });

  it("go back to waiting when a reorg takes their block", () => {
    const [one, other] = tabs();
    one.add({ ...old, stage: "mined", block: 5 });
    one.change("old", { stage: "sent", block: null });
    other.follow();
    expect(other.items).toMatchObject([{ stage: "sent", block: null }]);
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
