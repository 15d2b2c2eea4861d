/** How it is trained: by how many, for how long, towards what. */

import type { Manifest, ManifestView } from "~/api/types";
import { Notice } from "~/components/basics";
import { Choices, Field, NumberField } from "~/components/forms";
import { type Draft, type Mode, withMode } from "~/drafts/draft";
import { formatCount, plural } from "~/protocol/units";

interface StepProps {
  draft: Draft;
  change: (change: (draft: Draft) => Draft) => void;
  manifest: ManifestView | undefined;
  error: { field: string | null; text: string } | null;
}

const MODES: { value: Mode; title: string; text: string }[] = [
  { value: "single", title: "One worker", text: "The simplest; right for most models." },
  { value: "sync", title: "Together", text: "Workers share every step: a larger batch in the same time." },
  {
    value: "rounds",
    title: "In rounds",
    text: "Workers train apart and merge now and then: little traffic.",
  },
  {
    value: "async",
    title: "Asynchronous",
    text: "Nobody waits for anybody; scored, since it cannot be replayed.",
  },
];

const OPTIMIZERS = ["Adam", "AdamW", "SGD", "RMSprop"];

export function TrainingStep({ draft, change, manifest, error }: StepProps) {
  const { training } = draft;
  if (!training || !draft.data || !draft.model) {
    return <p className="muted">Choose a model and its data first: good settings follow from them.</p>;
  }
  const set = (changes: Manifest) =>
    change((before) => ({ ...before, training: { ...before.training, ...changes } }));
  const mode = String(training.mode ?? "single") as Mode;
  const workers = Number(training.workers ?? 1);
  const optimizer = (training.optimizer ?? {}) as Manifest;
  const rate = optimizer.learning_rate;
  const until = (training.until ?? {}) as { epochs?: number; steps?: number };
  const rounds = (training.rounds ?? {}) as Manifest;
  const summary = manifest?.summary;
  return (
    <div className="stack stack-m">
      <Choices
        legend="Mode"
        value={mode}
        choices={MODES}
        onChange={(next) =>
          change((before) => ({
            ...before,
            wishes: withoutPolicy(before.wishes),
            training: withMode(training, next, workers),
          }))
        }
      />
      <div className="fields">
        {mode !== "single" && (
          <NumberField
            label="Workers"
            value={workers}
            min={2}
            max={32}
            onChange={(count) =>
              change((before) => ({ ...before, training: withMode(training, mode, count) }))
            }
          />
        )}
        {until.epochs !== undefined ? (
          <NumberField
            label="Epochs"
            value={until.epochs}
            min={1}
            max={10_000}
            onChange={(epochs) => set({ until: { epochs } })}
          />
        ) : (
          <NumberField
            label="Steps"
            value={until.steps ?? 1}
            min={1}
            max={10_000_000}
            onChange={(steps) => set({ until: { steps } })}
          />
        )}
        <NumberField
          label="Batch"
          value={Number(training.batch ?? 1)}
          min={1}
          max={1_000_000}
          hint={mode === "single" ? undefined : "Of all workers together."}
          onChange={(batch) => set({ batch })}
        />
        <Field label="Optimiser">
          {({ id }) => (
            <select
              id={id}
              className="select"
              value={String(optimizer.type ?? "Adam")}
              onChange={(event) =>
                set({
                  optimizer: {
                    type: event.target.value,
                    learning_rate: typeof rate === "number" ? rate : 0.001,
                  },
                })
              }
            >
              {[...new Set([...OPTIMIZERS, String(optimizer.type ?? "Adam")])].map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          )}
        </Field>
        {typeof rate === "object" && rate !== null ? (
          <Field label="Learning rate" hint="A schedule, as the model brought it.">
            {({ id }) => (
              <input
                id={id}
                className="input"
                readOnly
                value={String((rate as Manifest).type ?? "schedule")}
              />
            )}
          </Field>
        ) : (
          <NumberField
            label="Learning rate"
            value={Number(rate ?? 0.001)}
            min={1e-9}
            max={100}
            step="any"
            onChange={(learning_rate) =>
              set({ optimizer: { ...optimizer, type: optimizer.type ?? "Adam", learning_rate } })
            }
          />
        )}
        {mode === "rounds" ? (
          <NumberField
            label="Steps in a round"
            value={Number(rounds.local_steps ?? 20)}
            min={1}
            max={100_000}
            onChange={(local_steps) => set({ rounds: { ...rounds, local_steps } })}
          />
        ) : (
          <NumberField
            label="Steps in a segment"
            value={Number(
              training.steps_per_segment ??
                (manifest?.manifest.training as Manifest | undefined)?.steps_per_segment ??
                20,
            )}
            min={1}
            max={1_000_000}
            hint="What an auditor recomputes."
            onChange={(steps_per_segment) =>
              change((before) => ({
                ...before,
                hasOwnSegments: true,
                training: { ...before.training, steps_per_segment },
              }))
            }
          />
        )}
        <NumberField
          label="Seed"
          value={Number(training.seed ?? 1)}
          min={0}
          max={2 ** 53 - 1}
          hint="Same seed, same result."
          onChange={(seed) => set({ seed })}
        />
      </div>
      {error && (
        <Notice
          tone="bad"
          title={error.field ? `Something does not fit: ${place(error.field)}` : "Something does not fit"}
          urgent
        >
          {error.text}
        </Notice>
      )}
      {summary && !error && (
        <p className="small muted">
          {plural(summary.steps ?? 0, "step")} in {plural(summary.segments ?? 0, "segment")}; loss{" "}
          {String((training.loss as Manifest | undefined)?.type ?? "–")};{" "}
          {formatCount(summary.parameters ?? 0)} parameters.
        </p>
      )}
    </div>
  );
}

function withoutPolicy<W extends { policy?: unknown; slots?: unknown }>(
  wishes: W,
): Omit<W, "policy" | "slots"> {
  const { policy: _policy, slots: _slots, ...rest } = wishes;
  return rest;
}

function place(field: string): string {
  return field.replace(/^body\.manifest\.?/, "").replaceAll("_", " ") || "the manifest";
}
