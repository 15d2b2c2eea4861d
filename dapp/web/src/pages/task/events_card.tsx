/** Everything that happened on the chain, newest first, each with its transaction. */

import { useConfig } from "~/api/queries";
import type { TimelineEvent } from "~/api/types";
import { Card, SkeletonRows } from "~/components/basics";
import { TransactionTag } from "~/components/chain";
import { formatMoment } from "~/protocol/units";

export function EventsCard({ events }: { events: TimelineEvent[] | undefined }) {
  const { confirmations: needed } = useConfig();
  return (
    <Card flush title="History">
      {!events ? (
        <div className="card-body">
          <SkeletonRows rows={6} height="36px" />
        </div>
      ) : (
        <ol className="events">
          {events.toReversed().map((event) => (
            <li key={event.key}>
              <span className="small faint moment">
                <span>{formatMoment(event.time)}</span> <span>block {event.block}</span>
              </span>
              <span>
                {capital(event.what ?? event.name)}
                {event.confirmations < needed && (
                  <span className="small faint">
                    {" "}
                    · {event.confirmations} of {needed} confirmations
                  </span>
                )}
              </span>
              <TransactionTag hash={event.transaction} />
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
