/** The visitor's own things: money in the market, tasks, notifications, drafts. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { fullText, get, problemText, send } from "~/api/client";
import { useLive } from "~/api/live";
import { accountQuery, notificationsQuery, postedQuery } from "~/api/queries";
import type { NotificationPage, Draft as StoredDraft } from "~/api/types";
import { Button, Card, Empty, Notice, Skeleton, SkeletonRows } from "~/components/basics";
import { AddressTag, Amount, useAmount } from "~/components/chain";
import { Trouble } from "~/components/errors";
import { TaskTable } from "~/components/task_table";
import { useTitle } from "~/components/title";
import { type Draft, isEmpty, loadDraft, saveDraft } from "~/drafts/draft";
import { ReplaceDialog } from "~/drafts/replace_dialog";
import { isRejection } from "~/protocol/refusals";
import { formatAgo } from "~/protocol/units";
import { Link, navigate } from "~/router";
import { marketCall, useSend } from "~/transactions/sending";
import { useBalance } from "~/wallet/balance";
import { useSession, useSignIn, useSignOut } from "~/wallet/session";
import { useWallet } from "~/wallet/use_wallet";

export default function Account() {
  useTitle("Account");
  const wallet = useWallet();
  if (!wallet.isConnected || !wallet.address) {
    return (
      <Card>
        <Empty
          level={1}
          icon="wallet"
          title={wallet.isWaking ? "Asking your wallet …" : "No wallet is connected"}
        >
          <p>
            Connect one to see your tasks, your credit and what was paid to you. Looking around needs none.
          </p>
          <Button look="primary" busy={wallet.isWaking} onClick={wallet.connect}>
            Connect a wallet
          </Button>
        </Empty>
      </Card>
    );
  }
  return <Shown address={wallet.address} />;
}

function Shown({ address }: { address: `0x${string}` }) {
  const client = useQueryClient();
  useLive([`account:${address}`], (event) => {
    if (event.name === "head") return;
    void client.invalidateQueries({ queryKey: ["account"] });
    void client.invalidateQueries({ queryKey: ["market", "tasks"] });
    void client.invalidateQueries({ queryKey: ["notifications"] });
  });
  const posted = useInfiniteQuery(postedQuery(address));
  const tasks = posted.data?.pages.flatMap((page) => page.items);
  return (
    <div className="stack">
      <div className="head">
        <div className="head-text">
          <h1>Account</h1>
          <AddressTag address={address} copy />
        </div>
      </div>
      <div className="split">
        <div className="stack">
          <Card flush title="Your tasks">
            {posted.error && !tasks ? (
              <div className="card-body">
                <Trouble error={posted.error} what="Your tasks" retry={() => void posted.refetch()} />
              </div>
            ) : !tasks ? (
              <div className="card-body">
                <SkeletonRows rows={3} height="52px" />
              </div>
            ) : tasks.length ? (
              <>
                <TaskTable tasks={tasks} isOfOne />
                <More what="tasks" list={posted} />
              </>
            ) : (
              <Empty icon="play" title="You have not posted a task">
                <p>Take an example or drop a model of your own; it takes a minute.</p>
                <Link to="/new" className="button button-primary">
                  New task
                </Link>
              </Empty>
            )}
          </Card>
          <Personal address={address} />
        </div>
        <aside className="stack">
          <Funds address={address} />
        </aside>
      </div>
    </div>
  );
}

interface MoreProps {
  what: string;
  list: {
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    isFetchNextPageError: boolean;
    error: unknown;
    fetchNextPage: () => unknown;
  };
}

function More({ what, list }: MoreProps) {
  if (!list.hasNextPage) return null;
  return (
    <div className="card-body stack stack-s">
      {list.isFetchNextPageError && <Trouble error={list.error} what={`More ${what}`} />}
      <div>
        <Button size="small" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          More {what}
        </Button>
      </div>
    </div>
  );
}

function Funds({ address }: { address: `0x${string}` }) {
  const amount = useAmount();
  const account = useQuery(accountQuery(address));
  const balance = useBalance(address);
  const { send: sendTransaction, isBusy, error } = useSend();
  const credit = BigInt(account.data?.credit_wei ?? "0");
  return (
    <Card title="Money">
      <div className="stack stack-m">
        <dl className="facts">
          <div>
            <dt>In the wallet</dt>
            <dd>{balance.data === undefined ? <Skeleton width="6em" /> : <Amount wei={balance.data} />}</dd>
          </div>
          <div>
            <dt>Credit in the market</dt>
            <dd>{account.data ? <Amount wei={credit} /> : <Skeleton width="6em" />}</dd>
          </div>
          <div>
            <dt>Held by tasks</dt>
            <dd>{account.data ? <Amount wei={account.data.held_wei} /> : <Skeleton width="6em" />}</dd>
          </div>
        </dl>
        {error && (
          <Notice tone="bad" title="Not sent" urgent>
            {error}
          </Notice>
        )}
        {credit > 0n && (
          <Button
            look="primary"
            busy={isBusy}
            onClick={() =>
              void sendTransaction({
                title: `Withdraw ${amount(credit, 4)}`,
                kind: "withdraw",
                data: marketCall("withdraw", [address, credit]),
              })
            }
          >
            Withdraw {amount(credit, 4)}
          </Button>
        )}
        <p className="small muted">
          Credit is yours at any time: refunds, rewards and stakes end up there, and posting uses it first.
        </p>
      </div>
    </Card>
  );
}

function Personal({ address }: { address: `0x${string}` }) {
  const session = useSession();
  const signIn = useSignIn();
  const signOut = useSignOut();
  const isIn = session.data?.address?.toLowerCase() === address.toLowerCase();
  if (!isIn) {
    return (
      <Card title="Notifications and drafts">
        <div className="stack stack-m">
          <p className="muted">
            Sign a message to see notifications and to keep drafts for other browsers. It is no transaction,
            costs nothing and allows nothing else.
          </p>
          {signIn.error && (
            <Notice tone={isRejection(signIn.error) ? "warn" : "bad"} title="Not signed in" urgent>
              {isRejection(signIn.error) ? "You declined in your wallet." : problemText(signIn.error)}
            </Notice>
          )}
          <div>
            <Button look="primary" busy={signIn.isPending} onClick={() => signIn.mutate(address)}>
              Sign in with Ethereum
            </Button>
          </div>
        </div>
      </Card>
    );
  }
  return (
    <>
      <Notifications
        address={address}
        signOut={
          <Button size="small" look="quiet" onClick={() => signOut.mutate()}>
            Sign out
          </Button>
        }
      />
      <Drafts address={address} />
    </>
  );
}

function Notifications({ address, signOut }: { address: string; signOut: React.ReactNode }) {
  const client = useQueryClient();
  const query = notificationsQuery(address);
  const list = useInfiniteQuery(query);
  const { data, error, refetch } = list;
  const read = useMutation({
    mutationFn: (id: number) => send<NotificationPage>("POST", "/notifications/read", { id }),
    onSuccess: () => client.invalidateQueries({ queryKey: query.queryKey }),
  });
  const items = data?.pages.flatMap((page) => page.items) ?? [];
  const unread = data?.pages[0]?.unread ?? 0;
  const newest = items[0]?.id;
  return (
    <Card
      flush
      title={unread ? `Notifications (${unread} new)` : "Notifications"}
      action={
        <span className="row">
          {unread > 0 && newest !== undefined && (
            <Button size="small" busy={read.isPending} onClick={() => read.mutate(newest)}>
              Mark all as read
            </Button>
          )}
          {signOut}
        </span>
      }
    >
      {read.error && (
        <div className="card-body">
          <Notice tone="bad" title="Not marked as read" urgent>
            {fullText(read.error)}
          </Notice>
        </div>
      )}
      {error && !data ? (
        <div className="card-body">
          <Trouble error={error} what="Notifications" retry={() => void refetch()} />
        </div>
      ) : !data ? (
        <div className="card-body">
          <SkeletonRows rows={3} height="36px" />
        </div>
      ) : items.length === 0 ? (
        <Empty icon="bell" title="Nothing to tell yet">
          <p>You hear here when workers join, when a task is settled or fails, and when it is your move.</p>
        </Empty>
      ) : (
        <>
          <ul className="events" aria-label="Notifications">
            {items.map((one) => (
              <li key={one.id}>
                <span className="small faint number">{formatAgo(one.time)}</span>
                <span className={one.is_read ? "muted" : "bold"}>
                  {!one.is_read && <span className="visually-hidden">New: </span>}
                  {one.text}
                </span>
                {one.task && <Link to={`/tasks/${one.task}`}>Task {one.task}</Link>}
              </li>
            ))}
          </ul>
          <More what="notifications" list={list} />
        </>
      )}
    </Card>
  );
}

function Drafts({ address }: { address: string }) {
  const client = useQueryClient();
  const {
    data,
    error: trouble,
    refetch,
  } = useQuery({
    queryKey: ["drafts", address],
    queryFn: async ({ signal }) => (await get<{ items: StoredDraft[] }>("/drafts", {}, signal)).items,
  });
  const [error, setError] = useState<string | null>(null);
  const [asked, setAsked] = useState<StoredDraft | null>(null);
  const goOn = (one: StoredDraft) => {
    saveDraft(localStorage, { ...(one.document as unknown as Draft), stored: one.id });
    navigate("/new");
  };
  const remove = async (id: string) => {
    setError(null);
    await send("DELETE", `/drafts/${id}`).catch((caught: unknown) => setError(fullText(caught)));
    void client.invalidateQueries({ queryKey: ["drafts"] });
  };
  if (trouble && !data) {
    return (
      <Card title="Drafts">
        <Trouble error={trouble} what="Your drafts" retry={() => void refetch()} />
      </Card>
    );
  }
  if (!data?.length) return null;
  return (
    <Card flush title="Drafts">
      <ReplaceDialog
        draft={asked && loadDraft(localStorage)}
        onReplace={() => asked && goOn(asked)}
        onKeep={() => setAsked(null)}
      />
      {error && (
        <div className="card-body">
          <Notice tone="bad" title="Not deleted" urgent>
            {error}
          </Notice>
        </div>
      )}
      <ul className="events" aria-label="Drafts">
        {data.map((one) => (
          <li key={one.id}>
            <span className="small faint number">{formatAgo(one.updated_at)}</span>
            <span>{one.title || "Draft"}</span>
            <span className="row">
              <Button
                size="small"
                onClick={() => (isEmpty(loadDraft(localStorage)) ? goOn(one) : setAsked(one))}
              >
                Go on with it
              </Button>
              <Button size="small" look="quiet" onClick={() => void remove(one.id)}>
                Delete
              </Button>
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
