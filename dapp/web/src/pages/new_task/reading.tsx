/** What was uploaded is kept in the draft until the server has read it: a reload, or a busy server, costs no upload. */

import { useState } from "react";
import { ApiError, fullText } from "~/api/client";
import { Button, Notice } from "~/components/basics";
import type { Unread } from "~/drafts/draft";

/** One reading at a time; `giveUp` is told of what was refused, which would be refused again. */
export function useReading(giveUp: () => void) {
  const [isReading, setReading] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const read = async (ask: () => Promise<void>) => {
    setReading(true);
    setError(null);
    try {
      await ask();
    } catch (caught) {
      setError(caught);
      if (!(caught instanceof ApiError && caught.isPassing)) giveUp();
    } finally {
      setReading(false);
    }
  };
  return { isReading, error, read };
}

interface UnreadProps {
  unread: Unread;
  error: unknown;
  onRead: () => void;
  onForget: () => void;
}

export function UnreadNotice({ unread, error, onRead, onForget }: UnreadProps) {
  return (
    <Notice
      tone={error ? "warn" : "info"}
      title={`${unread.name} is uploaded, and was not read yet`}
      urgent={Boolean(error)}
      action={
        <span className="row">
          <Button size="small" look="primary" onClick={onRead}>
            {error ? "Try again" : "Read it"}
          </Button>
          <Button size="small" look="quiet" onClick={onForget}>
            Forget it
          </Button>
        </span>
      }
    >
      {error ? fullText(error) : "It need not be sent again."}
    </Notice>
  );
}
