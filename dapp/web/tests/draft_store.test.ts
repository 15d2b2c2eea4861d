import { beforeEach, describe, expect, it } from "vitest";
import { type Draft, draftFromManifest, isEmpty, loadDraft, saveDraft } from "~/drafts/draft";
import { DraftStore } from "~/drafts/store";

class Memory {
  readonly #items = new Map<string, string>();
  writes = 0;
  getItem = (key: string) => this.#items.get(key) ?? null;
  setItem = (key: string, value: string) => {
    this.writes += 1;
    this.#items.set(key, value);
  };
  removeItem = (key: string) => void this.#items.delete(key);
}

const begun = (name: string) => draftFromManifest({ model: {}, data: {}, training: {} }, name, name);
const named = (name: string) => (draft: Draft) => ({ ...draft, origin: name });

describe("a draft in two tabs", () => {
  let storage: Memory;
  const tab = () => {
    const store = new DraftStore(storage);
    store.subscribe(() => {});
    return store;
  };
  beforeEach(() => {
    storage = new Memory();
  });

  it("is not written by who only looks at it", () => {
    tab();
    saveDraft(storage, begun("moons"));
    const store = tab();
    store.change((draft) => draft);
    store.follow();
    expect(store.draft.origin).toBe("moons");
    expect(storage.writes).toBe(1);
  });

  it("goes on in both with what either changed", () => {
    const [one, other] = [tab(), tab()];
    one.change(() => begun("moons"));
    other.follow();
    other.change(named("flowers"));
    one.follow();
    expect(one.draft).toEqual(other.draft);
    expect(loadDraft(storage).origin).toBe("flowers");
  });

  it("is begun anew in both", () => {
    const [one, other] = [tab(), tab()];
    one.change(() => begun("moons"));
    other.follow();
    other.reset();
    one.follow();
    expect(isEmpty(one.draft)).toBe(true);
    expect(storage.writes).toBe(1);
  });

  it("is let go of where it was posted, and another one is not", () => {
    const [one, other] = [tab(), tab()];
    one.change(() => begun("moons"));
    other.follow();
    one.leave();
    one.change(() => begun("flowers"));
    other.leave();
    expect(isEmpty(other.draft)).toBe(true);
    expect(loadDraft(storage).origin).toBe("flowers");
  });

  it("is not replaced by what comes late to a form that was left", () => {
    const store = new DraftStore(storage);
    const stop = store.subscribe(() => {});
    stop();
    store.change(() => begun("moons"));
    expect(storage.writes).toBe(0);
  });
});
