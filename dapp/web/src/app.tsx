/** The frame of the page: what is loaded first, where one can go, and what is shown there. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useRef } from "react";
import { WagmiProvider } from "wagmi";
import { configQuery } from "~/api/queries";
import type { Config } from "~/api/types";
import { Card, SkeletonRows } from "~/components/basics";
import { Boundary, Trouble } from "~/components/errors";
import { Logo } from "~/components/icons";
import { ThemeSwitch } from "~/components/theme_switch";
import { Market } from "~/pages/market";
import { Missing } from "~/pages/missing";
import { Link, type Route, routeOf, usePath } from "~/router";
import { Toasts } from "~/transactions/toasts";
import { ChainNotice } from "~/wallet/chain_notice";
import { walletConfig } from "~/wallet/config";
import { useWalletDialog } from "~/wallet/dialog_state";
import { WalletButton } from "~/wallet/wallet_button";

const Task = lazy(() => import("~/pages/task/task_page"));
const NewTask = lazy(() => import("~/pages/new_task/new_task_page"));
const Workers = lazy(() => import("~/pages/workers"));
const Worker = lazy(() => import("~/pages/worker"));
const Account = lazy(() => import("~/pages/account"));
const WalletDialog = lazy(() => import("~/wallet/wallet_dialog"));

export function App() {
  const { data, error, refetch } = useQuery(configQuery);
  if (data) return <Connected config={data} />;
  return (
    <div className="shell">
      <header className="topbar">
        <div className="topbar-inner">
          <span className="brand">
            <Logo /> Trainyard
          </span>
        </div>
      </header>
      <main className="main" id="main">
        {error ? (
          <Trouble error={error} what="The market" retry={() => void refetch()} />
        ) : (
          <SkeletonRows rows={4} height="72px" />
        )}
      </main>
    </div>
  );
}

function Connected({ config }: { config: Config }) {
  const wallets = useMemo(() => walletConfig(config), [config]);
  return (
    <WagmiProvider config={wallets} reconnectOnMount>
      <Frame config={config} />
    </WagmiProvider>
  );
}

function Frame({ config }: { config: Config }) {
  const path = usePath();
  const route = routeOf(path);
  const main = useRef<HTMLElement>(null);
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    // As a page load would: from the top, and with the reader's place at the new content.
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [path]);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="topbar">
        <div className="topbar-inner">
          <Link to="/" className="brand">
            <Logo /> Trainyard
          </Link>
          <nav className="nav" aria-label="Main">
            <NavLink to="/" isHere={route.page === "market" || route.page === "task"} text="Market" />
            <NavLink to="/new" isHere={route.page === "new"} text="New task" />
            <NavLink
              to="/workers"
              isHere={route.page === "workers" || route.page === "worker"}
              text="Workers"
            />
            <NavLink to="/account" isHere={route.page === "account"} text="Account" />
          </nav>
          <div className="topbar-tools">
            <ThemeSwitch />
            <WalletButton />
          </div>
        </div>
      </header>
      <main className="main" id="main" ref={main} tabIndex={-1}>
        <ChainNotice />
        <Boundary resetKey={path}>
          <Suspense fallback={<PageSkeleton />}>
            <PageOf route={route} />
          </Suspense>
        </Boundary>
      </main>
      <footer className="footer">
        <div className="footer-inner">
          <span>Trainyard {config.version}</span>
          <span>
            {config.chain_name}, chain {config.chain_id}
          </span>
          <span className="mono wrap-anywhere">Market {config.market}</span>
        </div>
      </footer>
      <Toasts />
      <DialogWhenAsked />
    </div>
  );
}

function NavLink({ to, isHere, text }: { to: string; isHere: boolean; text: string }) {
  return (
    <Link to={to} aria-current={isHere ? "page" : undefined}>
      {text}
    </Link>
  );
}

function PageOf({ route }: { route: Route }) {
  switch (route.page) {
    case "market":
      return <Market />;
    case "task":
      return <Task key={route.id} id={route.id} />;
    case "new":
      return <NewTask />;
    case "workers":
      return <Workers />;
    case "worker":
      return <Worker key={route.address} address={route.address} />;
    case "account":
      return <Account />;
    case "missing":
      return <Missing />;
  }
}

function PageSkeleton() {
  return (
    <Card>
      <SkeletonRows rows={6} height="48px" />
    </Card>
  );
}

/** Loaded when it is first asked for. */
function DialogWhenAsked() {
  const isOpen = useWalletDialog();
  const wasAsked = useRef(false);
  wasAsked.current ||= isOpen;
  return <Suspense fallback={null}>{wasAsked.current && <WalletDialog />}</Suspense>;
}
