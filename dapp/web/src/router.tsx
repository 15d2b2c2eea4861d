/** Where the page is: paths and the query in the address bar, with the browser's own history. */

import { type AnchorHTMLAttributes, type MouseEvent, useCallback, useSyncExternalStore } from "react";

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

export function navigate(to: string, { replace = false }: { replace?: boolean } = {}): void {
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  for (const listener of [...listeners]) listener();
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

/** The query of the address bar; changing it replaces the entry in the history, as filters should. */
export function useSearch(): [URLSearchParams, (changes: Record<string, string | string[] | null>) => void] {
  const text = useSyncExternalStore(subscribe, () => location.search);
  const change = useCallback((changes: Record<string, string | string[] | null>) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      next.delete(name);
      if (Array.isArray(value)) for (const one of value) next.append(name, one);
      else if (value) next.set(name, value);
    }
    const query = next.toString();
    navigate(location.pathname + (query ? `?${query}` : ""), { replace: true });
  }, []);
  return [new URLSearchParams(text), change];
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

/** A real link that stays in the page, unless a new tab is asked for. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={to} onClick={follow} {...rest} />;
}

export type Route =
  | { page: "market" }
  | { page: "new" }
  | { page: "task"; id: number }
  | { page: "workers" }
  | { page: "worker"; address: string }
  | { page: "account" }
  | { page: "missing" };

export function routeOf(path: string): Route {
  const parts = path.split("/").filter(Boolean);
  const [first, second] = parts;
  if (parts.length === 0) return { page: "market" };
  if (parts.length === 1 && first === "new") return { page: "new" };
  if (parts.length === 1 && first === "workers") return { page: "workers" };
  if (parts.length === 1 && first === "account") return { page: "account" };
  if (parts.length === 2 && first === "tasks" && /^[1-9]\d{0,9}$/.test(second ?? "")) {
    return { page: "task", id: Number(second) };
  }
  if (parts.length === 2 && first === "workers" && /^0x[0-9a-fA-F]{40}$/.test(second ?? "")) {
    return { page: "worker", address: second ?? "" };
  }
  return { page: "missing" };
}
