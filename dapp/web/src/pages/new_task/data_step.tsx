/** The data: dropped, or by CID; shown as the first records and what its columns are. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fullText, send } from "~/api/client";
import type { Column, DataPreview, PreviewRequest } from "~/api/types";
import { Button, Notice, Skeleton } from "~/components/basics";
import { Dropzone } from "~/components/dropzone";
import { Field } from "~/components/forms";
import {
  type DataChoice,
  type Draft,
  lacksTarget,
  tableColumns,
  type Unread,
  withData,
} from "~/drafts/draft";
import { UnreadNotice, useReading } from "~/pages/new_task/reading";
import { formatCount, plural } from "~/protocol/units";

interface StepProps {
  draft: Draft;
  change: (change: (draft: Draft) => Draft) => void;
}

const TEST_PERCENT = 10;

export function DataStep({ draft, change }: StepProps) {
  const unread = draft.unreadData;
  const forget = () => change((before) => ({ ...before, unreadData: null }));
  const { isReading, error, read: begin } = useReading(forget);
  const read = (cid: string, choice: DataChoice) =>
    begin(async () => {
      const wanted: PreviewRequest = {
        cid,
        test_percent: choice.testPercent,
        write: true,
        ...(choice.target ? { target: choice.target } : {}),
      };
      const preview = await send<DataPreview>("POST", "/data/preview", wanted);
      const isWanted = ({ unreadData, data }: Draft) => unreadData?.cid === cid || data?.source === cid;
      change((before) => (isWanted(before) ? withData(before, choice, preview) : before));
    });
  const take = async ({ cid, name }: Unread, file?: File) => {
    change((before) => ({ ...before, unreadData: { cid, name } }));
    const columns = file ? await columnsIn(file) : [];
    await read(cid, { name, testPercent: TEST_PERCENT, columns });
  };
  return (
    <div className="stack stack-m">
      {draft.data ? (
        <Chosen
          draft={draft}
          isReading={isReading}
          read={read}
          forget={() => change((before) => ({ ...before, data: null }))}
        />
      ) : (
        <>
          <Dropzone
            what="an .npz, a CSV, a folder of images, or TFRecords"
            folders
            busyText={isReading ? "Reading the records …" : null}
            onUploaded={(uploaded, [file]) => void take(uploaded, uploaded.kind === "csv" ? file : undefined)}
          >
            <span className="small">
              Images lie in one folder per class. A tenth of the records is kept for the test.
            </span>
          </Dropzone>
          <ByCid isReading={isReading} onGiven={(cid) => void take({ cid, name: cid })} />
        </>
      )}
      {unread && !isReading && (
        <UnreadNotice unread={unread} error={error} onRead={() => void take(unread)} onForget={forget} />
      )}
      {Boolean(error) && !unread && (
        <Notice tone="bad" title="This data cannot be taken" urgent>
          {fullText(error)}
        </Notice>
      )}
    </div>
  );
}

const HEADER_BYTES = 16_384;

/** The first line of a table, read here: the server speaks of features, not of columns. */
async function columnsIn(file: File): Promise<string[]> {
  const text = await file.slice(0, HEADER_BYTES).text();
  return tableColumns(text.split(/\r?\n/, 1)[0] ?? "");
}

function ByCid({ isReading, onGiven }: { isReading: boolean; onGiven: (cid: string) => void }) {
  const [text, setText] = useState("");
  const cid = text
    .trim()
    .replace(/^ipfs:\/\//, "")
    .replace(/\/+$/, "");
  const isRight = /^(b[a-z2-7]{20,}|Qm[1-9A-HJ-NP-Za-km-z]{44}|z[1-9A-HJ-NP-Za-km-z]{20,})$/.test(cid);
  return (
    <form
      className="with-button"
      onSubmit={(event) => {
        event.preventDefault();
        if (isRight) onGiven(cid);
      }}
    >
      <Field
        label="Or by CID"
        error={text && !isRight ? "This is no CID: they begin with bafy, bafk or Qm." : undefined}
      >
        {({ id, describedBy, invalid }) => (
          <input
            id={id}
            className="input mono"
            placeholder="bafy…"
            autoComplete="off"
            spellCheck={false}
            value={text}
            aria-invalid={invalid}
            aria-describedby={describedBy}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <Button type="submit" disabled={!isRight} busy={isReading}>
        Use it
      </Button>
    </form>
  );
}

interface ChosenProps {
  draft: Draft;
  isReading: boolean;
  read: (cid: string, choice: DataChoice) => Promise<void>;
  forget: () => void;
}

function Chosen({ draft, isReading, read, forget }: ChosenProps) {
  const { data } = draft;
  const cid = data?.source ?? cidOf(data?.train.path);
  const kept = data?.preview ?? null;
  const loaded = useQuery({
    queryKey: ["preview", cid],
    queryFn: ({ signal }) => send<DataPreview>("POST", "/data/preview", { cid, write: false }, signal),
    enabled: Boolean(cid) && !kept,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  if (!data) return null;
  const preview = kept ?? loaded.data;
  const again = (changes: Partial<DataChoice>) => {
    const { name, testPercent, columns } = data;
    const target = data.target ?? undefined;
    if (data.source) void read(data.source, { name, testPercent, columns, target, ...changes });
  };
  return (
    <div className="stack stack-m">
      <div className="row row-between">
        <span>
          <strong>{data.name}</strong>
          <span className="muted">
            {` · ${plural(data.records, "record")} to train on`}
            {data.test ? ` · ${formatCount(Number(data.test.records ?? 0))} to test` : ""}
            {data.classes ? ` · ${data.classes} classes` : ""}
          </span>
        </span>
        <Button size="small" onClick={forget}>
          Change data
        </Button>
      </div>
      {data.notes.map((note) => (
        <Notice key={note} tone="info" title={note} />
      ))}
      {data.source && (
        <div className="fields">
          <Field
            label="Predict"
            hint="The column that the model learns."
            error={lacksTarget(data) ? "Choose the column that the model learns." : undefined}
          >
            {({ id, describedBy, invalid }) => (
              <select
                id={id}
                className="select"
                value={data.target ?? ""}
                disabled={isReading}
                aria-invalid={invalid}
                aria-describedby={describedBy}
                onChange={(event) => again({ target: event.target.value })}
              >
                {/* Else the first one seems to be chosen, and choosing it changes nothing. */}
                {data.target === null && (
                  <option value="" disabled>
                    Choose …
                  </option>
                )}
                {data.columns.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Kept for the test" hint="Not trained on; measures the result.">
            {({ id }) => (
              <select
                id={id}
                className="select"
                value={data.testPercent}
                disabled={isReading}
                onChange={(event) => again({ testPercent: Number(event.target.value) })}
              >
                {[0, 5, 10, 20, 30].map((percent) => (
                  <option key={percent} value={percent}>
                    {percent} %
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
      )}
      {cid && !kept && loaded.isPending && <Skeleton height="120px" />}
      {preview && <Preview preview={preview} />}
    </div>
  );
}

function cidOf(path: unknown): string | null {
  return typeof path === "string" ? (/^ipfs:\/\/([A-Za-z0-9]+)/.exec(path)?.[1] ?? null) : null;
}

function Preview({ preview }: { preview: DataPreview }) {
  const hasImages = preview.first.some((record) => pictureIn(record) !== null);
  return (
    <div className="stack stack-m">
      {hasImages ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
        <section className="records" aria-label="First records" tabIndex={0}>
          {preview.first.map((record, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: records have no names
            <figure className="record" key={at}>
              <img
                src={`data:image/png;base64,${pictureIn(record) ?? ""}`}
                alt={`Record ${at}`}
                width={64}
                height={64}
              />
              <figcaption>{preview.target ? shown(record[preview.target]) : at}</figcaption>
            </figure>
          ))}
        </section>
      ) : (
        <FirstRows preview={preview} />
      )}
      <ul className="small muted columns columns-s">
        {preview.columns.slice(0, 12).map((column) => (
          <li key={column.name}>
            <span className="mono">{column.name}</span> {describe(column)}
          </li>
        ))}
        {preview.columns.length > 12 && <li>and {preview.columns.length - 12} more columns</li>}
      </ul>
    </div>
  );
}

/** The picture of a record, whatever its column is called. */
export function pictureIn(record: Record<string, unknown>): string | null {
  for (const value of Object.values(record)) {
    const { png } = (value ?? {}) as { png?: unknown };
    if (typeof png === "string") return png;
  }
  return null;
}

function FirstRows({ preview }: { preview: DataPreview }) {
  const columns = preview.columns.slice(0, 8);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
    <section className="table-wrap" aria-label="First records" tabIndex={0}>
      <table className="table small">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col">
                {column.name}
                {column.name === preview.target ? " (to predict)" : ""}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {preview.first.slice(0, 5).map((record, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: records have no names
            <tr key={at}>
              {columns.map((column) => (
                <td key={column.name} className="number">
                  {shown(record[column.name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function shown(value: unknown): string {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : value.toPrecision(4);
  if (Array.isArray(value)) return `[${value.flat(3).slice(0, 3).map(shown).join(", ")}…]`;
  const text = value === undefined || value === null ? "" : String(value);
  return text.length > 24 ? `${text.slice(0, 24)}…` : text;
}

function describe(column: Column): string {
  const shape = column.shape.length ? ` ${column.shape.join(" × ")}` : "";
  const range =
    column.low !== null && column.high !== null ? `, ${shown(column.low)} to ${shown(column.high)}` : "";
  const different = column.distinct !== null ? `, ${plural(column.distinct, "value")}` : "";
  return `${column.dtype}${shape}${range}${different}`;
}
