/** The leaderboard of workers, and how to become one. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useConfig, workersQuery } from "~/api/queries";
import { Badge, Card, CopyButton, Empty, SkeletonRows } from "~/components/basics";
import { AddressTag, Amount, ClassTag } from "~/components/chain";
import { useRested } from "~/components/debounce";
import { Trouble } from "~/components/errors";
import { useTitle } from "~/components/title";
import { formatPercent, plural } from "~/protocol/units";
import { Link, useSearch } from "~/router";

const SORTS = {
  earned: "Most earned",
  settled: "Most settled",
  success: "Best record",
  bond: "Highest bond",
  since: "Longest there",
};

export default function Workers() {
  useTitle("Workers");
  return (
    <div className="stack">
      <div className="head">
        <div className="head-text">
          <h1>Workers</h1>
          <p className="muted">Who trains and audits, and what is on their record.</p>
        </div>
        <a href="#become" className="button">
          Become a worker
        </a>
      </div>
      <Board />
      <Become />
    </div>
  );
}

function Board() {
  const [search, change] = useSearch();
  const [text, setText] = useState(search.get("q") ?? "");
  const rested = useRested(text);
  const sort = search.get("sort") ?? "earned";
  const cursors = search.getAll("page");
  const { data, error, refetch } = useQuery(
    workersQuery({ search: rested.trim(), sort, limit: 25, cursor: cursors.at(-1) }),
  );
  return (
    <Card flush title="Leaderboard">
      <div className="card-body filters filters-two">
        <label className="field">
          <span className="visually-hidden">Search workers</span>
          <input
            className="input"
            type="search"
            placeholder="Address or class"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              change({ q: event.target.value, page: null });
            }}
          />
        </label>
        <label className="field">
          <span className="visually-hidden">Order</span>
          <select
            className="select"
            value={sort}
            onChange={(event) =>
              change({ sort: event.target.value === "earned" ? null : event.target.value, page: null })
            }
          >
            {Object.entries(SORTS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
      </div>
      {error && !data && (
        <div className="card-body">
          <Trouble error={error} what="The workers" retry={() => void refetch()} />
        </div>
      )}
      {!data && !error && (
        <div className="card-body">
          <SkeletonRows rows={6} height="44px" />
        </div>
      )}
      {data?.items.length === 0 && (
        <Empty icon="chip" title={rested ? "No worker fits" : "No worker has registered yet"}>
          <p>
            {rested
              ? "Search for the beginning of an address or of a class."
              : "Be the first: three commands start an agent on your machine."}
          </p>
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <>
          <div className="table-wrap">
            <table className="table table-link table-cards">
              <thead>
                <tr>
                  <th scope="col">Worker</th>
                  <th scope="col">Class</th>
                  <th scope="col" className="right">
                    Settled
                  </th>
                  <th scope="col" className="right">
                    Audits
                  </th>
                  <th scope="col" className="right">
                    Record
                  </th>
                  <th scope="col" className="right">
                    Bond
                  </th>
                  <th scope="col" className="right">
                    Earned
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.items.map((one) => (
                  <tr key={one.address}>
                    <td className="card-title">
                      <span className="row">
                        {one.rank !== null && <span className="faint number">{one.rank}</span>}
                        <Link to={`/workers/${one.address}`} className="row-link">
                          <AddressTag address={one.address} />
                        </Link>
                        {one.is_retired ? (
                          <Badge>Retired</Badge>
                        ) : one.slots_held + one.seats_held > 0 ? (
                          <Badge tone="info">Busy</Badge>
                        ) : (
                          <Badge tone="good">Ready</Badge>
                        )}
                      </span>
                    </td>
                    <td data-label="Class">{one.env_class ? <ClassTag envClass={one.env_class} /> : "–"}</td>
                    <td data-label="Settled" className="right number">
                      <span>
                        {one.settled}
                        {one.failed > 0 && <span className="tone-bad"> · {one.failed} failed</span>}
                      </span>
                    </td>
                    <td data-label="Audits" className="right number">
                      <span>
                        {one.audits_right}
                        {one.audits_wrong > 0 && (
                          <span className="tone-bad"> · {one.audits_wrong} wrong</span>
                        )}
                      </span>
                    </td>
                    <td data-label="Record" className="right number">
                      {one.success_rate === null ? "new" : formatPercent(one.success_rate)}
                    </td>
                    <td data-label="Bond" className="right">
                      <Amount wei={one.bond_wei} digits={3} />
                    </td>
                    <td data-label="Earned" className="right">
                      <Amount wei={one.earned_wei} digits={4} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <nav className="card-body row row-between" aria-label="Pages of workers">
            <span className="small muted">{plural(data.total, "worker")}</span>
            <span className="row">
              <button
                type="button"
                className="button button-small"
                disabled={cursors.length === 0}
                onClick={() => change({ page: cursors.slice(0, -1) })}
              >
                Back
              </button>
              <button
                type="button"
                className="button button-small"
                disabled={!data.next}
                onClick={() => change({ page: [...cursors, data.next ?? ""] })}
              >
                More
              </button>
            </span>
          </nav>
        </>
      )}
    </Card>
  );
}

function Become() {
  const config = useConfig();
  const gateway = config.gateway_url ?? location.origin;
  const commands = `pip install trainyard
trainyard worker init \\
  --endpoint ${config.rpc_url ?? "https://…"} --chain-id ${config.chain_id} \\
  --market ${config.market} --start-block ${config.start_block} \\
  --gateway ${gateway} --set 'dapp.url="${location.origin}"'
trainyard worker run`;
  return (
    <Card title="Become a worker" id="become">
      <div className="stack stack-m">
        <ol className="columns numbered">
          <li className="stack stack-s">
            <h3>1. Install the agent</h3>
            <p className="muted">
              Linux, Python 3.11 and bubblewrap: what strangers send is run in a sandbox without network, and
              never sees your key.
            </p>
          </li>
          <li className="stack stack-s">
            <h3>2. Register</h3>
            <p className="muted">
              The agent makes a wallet, finds out the class of your machine and registers it. With a bond of{" "}
              {config.params ? <Amount wei={config.params.seat_bond} /> : "a seat"} it is drawn as auditor and
              referee too.
            </p>
          </li>
          <li className="stack stack-s">
            <h3>3. Let it run</h3>
            <p className="muted">
              It joins tasks by the policy that you set, trains, submits and is paid as credit, which you
              withdraw when you like. Be on time: silence costs a part of the stake, and cheating all of it.
            </p>
          </li>
        </ol>
        <div className="stack stack-s">
          <div className="row row-between">
            <span className="field-label">In a terminal</span>
            <CopyButton text={commands} label="Copy the commands" />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, also by keyboard */}
          <pre className="code" tabIndex={0}>
            {commands}
          </pre>
        </div>
      </div>
    </Card>
  );
}
