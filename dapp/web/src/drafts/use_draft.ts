import { useCallback, useState, useSyncExternalStore } from "react";
import { type Draft, KEY } from "~/drafts/draft";
import { DraftStore } from "~/drafts/store";

/** The draft of this browser, in whichever tab it is changed. */
export function useDraft(): [Draft, DraftStore] {
  const [store] = useState(() => new DraftStore(localStorage));
  const subscribe = useCallback(
    (listener: () => void) => {
      const follow = (event: StorageEvent) => event.key === KEY && store.follow();
      window.addEventListener("storage", follow);
      const stop = store.subscribe(listener);
      return () => {
        window.removeEventListener("storage", follow);
        stop();
      };
    },
    [store],
  );
  const draft = useSyncExternalStore(subscribe, () => store.draft);
  return [draft, store];
}
