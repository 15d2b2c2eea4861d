/** The draft as one tab has it: what is changed here is written at once, what another tab wrote is taken over. */

import {
  clearDraft,
  type Draft,
  isEmpty,
  loadDraft,
  newDraft,
  saveDraft,
  setDraftAside,
  type TextStore,
} from "~/drafts/draft";

export class DraftStore {
  #draft: Draft;
  readonly #listeners = new Set<() => void>();
  readonly #storage: TextStore;

  constructor(storage: TextStore) {
    this.#storage = storage;
    this.#draft = loadDraft(storage);
  }

  get draft(): Draft {
    return this.#draft;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  change = (make: (draft: Draft) => Draft): void => {
    // The form was left: what it still waited for must not replace what came after it.
    if (this.#listeners.size === 0) return;
    const next = make(this.#draft);
    if (next === this.#draft) return;
    saveDraft(this.#storage, next);
    this.#show(next);
  };

  /** Begin an empty one, of which nothing is written. */
  reset = (): void => {
    clearDraft(this.#storage);
    this.#show(newDraft());
  };

  /** It was posted: put it aside, and no other that was begun in another tab. */
  leave = (): void => {
    setDraftAside(this.#storage, this.#draft.id);
    this.#show(newDraft());
  };

  /** Another tab has written: went on with it, posted it, or began anew. */
  follow(): void {
    const found = loadDraft(this.#storage);
    if (isEmpty(found) && isEmpty(this.#draft)) return;
    this.#show(found);
  }

  #show(draft: Draft): void {
    this.#draft = draft;
    for (const listener of this.#listeners) listener();
  }
}
