/** A place to drop files on, or to choose them with the keyboard; shows how far the upload is. */

import { type ReactNode, useId, useRef, useState } from "react";
import { problemText } from "~/api/client";
import { useConfig } from "~/api/queries";
import type { Uploaded } from "~/api/types";
import { refusalOf, upload } from "~/api/uploads";
import { Bar, Button, Notice } from "~/components/basics";
import { Icon } from "~/components/icons";
import { formatBytes } from "~/protocol/units";

interface DropProps {
  what: string;
  accept?: string;
  folders?: boolean;
  busyText?: string | null;
  children?: ReactNode;
  onUploaded: (uploaded: Uploaded, files: readonly File[]) => void;
}

export function Dropzone({
  what,
  accept,
  folders = false,
  busyText = null,
  children,
  onUploaded,
}: DropProps) {
  const { limits } = useConfig();
  const [isOver, setOver] = useState(false);
  const [progress, setProgress] = useState<{ sent: number; total: number } | null>(null);
  const [error, setError] = useState<string | null>(null);
  const stop = useRef<AbortController | null>(null);
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const label = useId();

  const take = async (found: File[]) => {
    setError(null);
    const total = found.reduce((sum, file) => sum + file.size, 0);
    if (!found.length) return setError("There is no file in what you dropped.");
    const refusal = refusalOf(found, limits.multipart_bytes);
    if (refusal) return setError(refusal);
    if (total > limits.upload_bytes) {
      return setError(
        `${formatBytes(total)} are more than the ${formatBytes(limits.upload_bytes)} that this server takes.`,
      );
    }
    const control = new AbortController();
    stop.current = control;
    setProgress({ sent: 0, total });
    try {
      onUploaded(
        await upload(found, limits.multipart_bytes, (sent) => setProgress({ sent, total }), control.signal),
        found,
      );
    } catch (caught) {
      if (!control.signal.aborted) setError(problemText(caught));
    } finally {
      setProgress(null);
    }
  };

  const isBusy = progress !== null || busyText !== null;
  return (
    <div className="stack stack-s">
      {/* biome-ignore lint/a11y/useSemanticElements: a place to drop on, with its buttons inside */}
      <div
        className={`drop${isOver ? " drop-over" : ""}`}
        role="group"
        aria-labelledby={label}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void filesIn(event.dataTransfer).then(take);
        }}
      >
        <Icon name="upload" size={24} />
        <span id={label} className="bold">
          Drop {what}
        </span>
        {children}
        {isBusy ? (
          <div className="stack stack-s drop-progress">
            <span className="small" role="status">
              {progress ? `${formatBytes(progress.sent)} of ${formatBytes(progress.total)}` : busyText}
            </span>
            <Bar
              part={progress ? progress.sent / Math.max(1, progress.total) : 1}
              label={`Upload of ${what}`}
            />
            {progress && (
              <Button size="small" onClick={() => stop.current?.abort()}>
                Stop
              </Button>
            )}
          </div>
        ) : (
          <div className="row">
            <Button size="small" onClick={() => files.current?.click()}>
              Choose {folders ? "files" : "a file"}
            </Button>
            {folders && (
              <Button size="small" onClick={() => folder.current?.click()}>
                Choose a folder
              </Button>
            )}
          </div>
        )}
        <input
          ref={files}
          type="file"
          className="visually-hidden"
          tabIndex={-1}
          aria-label={`File: ${what}`}
          multiple={folders}
          {...(accept ? { accept } : {})}
          onChange={(event) => {
            void take([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        {folders && (
          <input
            ref={folder}
            type="file"
            className="visually-hidden"
            tabIndex={-1}
            aria-label={`Folder: ${what}`}
            // React's types do not know the attribute, which all browsers do.
            {...({ webkitdirectory: "" } as object)}
            onChange={(event) => {
              void take([...(event.target.files ?? [])]);
              event.target.value = "";
            }}
          />
        )}
      </div>
      {error && (
        <Notice tone="bad" title="Not uploaded" urgent>
          {error}
        </Notice>
      )}
    </div>
  );
}

/** All files that were dropped, those in folders with their paths. */
async function filesIn(transfer: DataTransfer): Promise<File[]> {
  const entries = [...transfer.items]
    .map((item) => item.webkitGetAsEntry?.())
    .filter((entry) => entry !== null);
  if (!entries.some((entry) => entry?.isDirectory)) return [...transfer.files];
  const found: File[] = [];
  for (const entry of entries) if (entry) await collect(entry, found);
  return found;
}

async function collect(entry: FileSystemEntry, found: File[]): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    Object.defineProperty(file, "webkitRelativePath", { value: entry.fullPath.replace(/^\//, "") });
    found.push(file);
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (!batch.length) return;
    for (const child of batch) await collect(child, found);
  }
}
