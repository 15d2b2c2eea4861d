/** Asked before something takes the place of a draft that is not posted. */

import { Button, Dialog } from "~/components/basics";
import { type Draft, draftTitle } from "~/drafts/draft";

interface ReplaceDialogProps {
  /** Null while nothing is asked. */
  draft: Draft | null;
  onReplace: () => void;
  onKeep: () => void;
}

export function ReplaceDialog({ draft, onReplace, onKeep }: ReplaceDialogProps) {
  return (
    <Dialog title="Replace your draft?" open={draft !== null} onClose={onKeep}>
      <p>
        You have not posted <strong className="wrap-anywhere">{draft && draftTitle(draft)}</strong> yet. This
        browser has room for one draft: if you replace it, what you filled in is gone.
      </p>
      <div className="row">
        <Button look="primary" onClick={onKeep}>
          Keep my draft
        </Button>
        <Button look="danger" onClick={onReplace}>
          Replace it
        </Button>
      </div>
    </Dialog>
  );
}
