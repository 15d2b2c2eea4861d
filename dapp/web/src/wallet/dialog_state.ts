/** Whether the choice of wallets is open; any part of the page may open it. */

import { useSyncExternalStore } from "react";

let isOpen = false;
const listeners = new Set<() => void>();

function set(value: boolean): void {
  isOpen = value;
  for (const listener of listeners) listener();
}

export const openWalletDialog = () => set(true);
export const closeWalletDialog = () => set(false);

export function useWalletDialog(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isOpen,
  );
}
