/** The money of a task: what is held, what was spent, what comes back, and by which rule. */

import type { Task } from "~/api/types";
import { Card } from "~/components/basics";
import { AddressTag, Amount } from "~/components/chain";
import { formatMoment } from "~/protocol/units";

export function MoneyCard({ view }: { view: Task }) {
  const { money } = view;
  const escrow = BigInt(money.escrow_wei);
  const part = (wei: string) => (escrow > 0n ? Number((BigInt(wei) * 10_000n) / escrow) / 100 : 0);
  const rows = [
    { name: "Held", wei: money.held_wei, look: "money-held" },
    { name: "Spent", wei: money.spent_wei, look: "money-spent" },
    { name: "Refunded", wei: money.refunded_wei, look: "money-refunded" },
  ];
  return (
    <Card
      title="Money"
      action={
        <span className="small muted">
          of <Amount wei={money.escrow_wei} />
        </span>
      }
    >
      <div className="stack stack-m">
        <div className="money-bar" aria-hidden="true">
          {rows.map((row) => (
            <span key={row.name} className={row.look} style={{ width: `${Math.min(100, part(row.wei))}%` }} />
          ))}
        </div>
        <dl className="facts">
          {rows.map((row) => (
            <div key={row.name}>
              <dt className="row">
                <i className={`dot ${row.look}`} aria-hidden="true" /> {row.name}
              </dt>
              <dd>
                <Amount wei={row.wei} />
              </dd>
            </div>
          ))}
          {BigInt(money.compensated_wei) > 0n && (
            <div>
              <dt>From the workers' stakes</dt>
              <dd>
                <Amount wei={money.compensated_wei} />
              </dd>
            </div>
          )}
          {BigInt(money.refundable_wei) > 0n && (
            <div>
              <dt>
                Refundable{money.refundable_from ? ` from ${formatMoment(money.refundable_from)}` : " now"}
              </dt>
              <dd>
                <Amount wei={money.refundable_wei} />
              </dd>
            </div>
          )}
        </dl>
        <p className="small muted">{money.rule}</p>
        {money.parts.length > 0 && (
          <details>
            <summary className="small">Everybody's part</summary>
            <ul className="stack stack-s parts">
              {money.parts.map((one) => (
                <li key={`${one.who}-${one.role}`} className="small">
                  <div className="row row-between">
                    <AddressTag address={one.who} />
                    <span className="muted">{one.role}</span>
                  </div>
                  <div className="muted">
                    held <Amount wei={one.held_wei} digits={4} /> · credited{" "}
                    <Amount wei={one.credited_wei} digits={4} />
                    {BigInt(one.lost_wei) > 0n && (
                      <span className="tone-bad">
                        {" "}
                        · lost <Amount wei={one.lost_wei} digits={4} />
                      </span>
                    )}
                  </div>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </Card>
  );
}
