/** What is shown where something cannot be: what happened, what to do, and a way to do it. */

import { Component, type ReactNode } from "react";
import { ApiError, problemText } from "~/api/client";
import { Button, Card, Empty, Notice } from "~/components/basics";

export function Trouble({ error, retry, what }: { error: unknown; retry?: () => void; what: string }) {
  const fix = error instanceof ApiError ? error.problem.fix : null;
  return (
    <Notice
      tone="bad"
      title={`${what} could not be loaded`}
      action={
        retry && (
          <Button size="small" onClick={retry}>
            Try again
          </Button>
        )
      }
    >
      {problemText(error)} {fix}
    </Notice>
  );
}

interface BoundaryState {
  error: Error | null;
}

/** One broken part must not take the page with it. */
export class Boundary extends Component<{ children: ReactNode; resetKey: string }, BoundaryState> {
  override state: BoundaryState = { error: null };

  static getDerivedStateFromError(error: Error): BoundaryState {
    return { error };
  }

  override componentDidUpdate(before: { resetKey: string }): void {
    if (before.resetKey !== this.props.resetKey && this.state.error) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    // After a new version was put up, the old page's parts are no longer there to be loaded.
    const isStale = /dynamically imported module|Importing a module|preload/i.test(error.message);
    return (
      <Card>
        <Empty icon="alert" title={isStale ? "This page has a newer version" : "This part of the page broke"}>
          <p>{isStale ? "Load it again to go on." : error.message}</p>
          <Button look="primary" onClick={() => location.reload()}>
            Load again
          </Button>
        </Empty>
      </Card>
    );
  }
}
