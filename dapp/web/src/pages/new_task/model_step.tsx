/** The model: one of the examples, or a file of one's own; shown layer by layer. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fullText, problemText, send } from "~/api/client";
import { examplesQuery } from "~/api/queries";
import type { ExampleTask, LayerView, ModelView } from "~/api/types";
import { Button, Notice, SkeletonRows } from "~/components/basics";
import { Dropzone } from "~/components/dropzone";
import { Trouble } from "~/components/errors";
import { type Draft, draftFromManifest, type Unread, withModel } from "~/drafts/draft";
import { UnreadNotice, useReading } from "~/pages/new_task/reading";
import { formatCount, plural } from "~/protocol/units";

interface StepProps {
  draft: Draft;
  change: (change: (draft: Draft) => Draft) => void;
  layers: LayerView[] | undefined;
}

export function ModelStep({ draft, change, layers }: StepProps) {
  const unread = draft.unreadModel;
  const forget = () => change((before) => ({ ...before, unreadModel: null }));
  const { isReading, error, read } = useReading(forget);
  const take = ({ cid, name }: Unread) => {
    change((before) => ({ ...before, unreadModel: { cid, name } }));
    void read(async () => {
      const view = await send<ModelView>("POST", "/models", { cid });
      change((before) => (before.unreadModel?.cid === cid ? withModel(before, name, view) : before));
    });
  };
  if (draft.model) {
    return (
      <Chosen
        draft={draft}
        layers={draft.model.layers.length ? draft.model.layers : layers}
        forget={() => change((before) => ({ ...before, model: null }))}
      />
    );
  }
  return (
    <div className="stack stack-m">
      <Examples
        onChosen={(example) =>
          change(() => draftFromManifest(example.manifest, `the example ${example.title}`, example.title))
        }
      />
      <Dropzone
        what="a .keras file or a Keras JSON"
        accept=".keras,.json,application/json"
        busyText={isReading ? "Reading the model in a sandbox …" : null}
        onUploaded={take}
      >
        <span className="small">Save it with model.save("model.keras"). Custom layers are not run.</span>
      </Dropzone>
      {unread && !isReading && (
        <UnreadNotice unread={unread} error={error} onRead={() => take(unread)} onForget={forget} />
      )}
      {Boolean(error) && !unread && (
        <Notice tone="bad" title="This model cannot be taken" urgent>
          {fullText(error)}
        </Notice>
      )}
    </div>
  );
}

function Examples({ onChosen }: { onChosen: (example: ExampleTask) => void }) {
  const { data, error, refetch } = useQuery(examplesQuery);
  const [pending, setPending] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const choose = async (name: string) => {
    setPending(name);
    setProblem(null);
    try {
      onChosen(await send<ExampleTask>("POST", `/examples/${name}`));
    } catch (caught) {
      setProblem(problemText(caught));
      setPending(null);
    }
  };
  if (error && !data) return <Trouble error={error} what="The examples" retry={() => void refetch()} />;
  if (!data) return <SkeletonRows rows={1} height="84px" />;
  if (!data.length) return null;
  return (
    <div className="stack stack-s">
      <span className="field-label" id="examples">
        Begin with an example, with its data
      </span>
      <ul className="examples" aria-labelledby="examples">
        {data.map((example) => (
          <li key={example.name}>
            <button
              type="button"
              className="example"
              aria-busy={pending === example.name}
              onClick={() => void choose(example.name)}
            >
              <span className="bold">{pending === example.name ? "Fetching its data …" : example.title}</span>
              <span className="small muted">{example.about}</span>
              <span className="small faint">
                {formatCount(example.parameters)} parameters · {formatCount(example.records)} records
              </span>
            </button>
          </li>
        ))}
      </ul>
      {problem && (
        <Notice tone="bad" title="The example could not be made ready" urgent>
          {problem}
        </Notice>
      )}
    </div>
  );
}

function Chosen({
  draft,
  layers,
  forget,
}: {
  draft: Draft;
  layers: LayerView[] | undefined;
  forget: () => void;
}) {
  const total = draft.model?.parameters ?? layers?.reduce((sum, layer) => sum + layer.parameters, 0);
  return (
    <div className="stack stack-m">
      <div className="row row-between">
        <span>
          <strong>{draft.model?.name}</strong>
          <span className="muted">
            {layers ? ` · ${plural(layers.length, "layer")} · ${formatCount(total ?? 0)} parameters` : ""}
          </span>
        </span>
        <Button size="small" onClick={forget}>
          Change model
        </Button>
      </div>
      {draft.model?.notes.map((note) => (
        <Notice key={note} tone="info" title={note} />
      ))}
      {layers && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
        <section className="layers table-wrap" aria-label="Layers" tabIndex={0}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Layer</th>
                <th scope="col">Kind</th>
                <th scope="col">Output</th>
                <th scope="col" className="right">
                  Parameters
                </th>
              </tr>
            </thead>
            <tbody>
              {layers.map((layer) => (
                <tr key={layer.name}>
                  <td className="mono">{layer.name}</td>
                  <td>{layer.type}</td>
                  <td className="mono">{layer.output.join(" × ")}</td>
                  <td className="right">{formatCount(layer.parameters)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}
