/** What came of it, as files: the way from the claim to the weights is walked before any of them is handed out. */

import { useState } from "react";
import { fullText } from "~/api/client";
import type { ResultView, Task } from "~/api/types";
import { Button, Notice } from "~/components/basics";
import { Icon } from "~/components/icons";
import { fetchVerified, saveFile } from "~/content/download";
import { modelCid } from "~/content/model_file";
import { checkLastState, lastState, walk } from "~/content/proof";
import { checkWeights } from "~/content/weights";
import { useChainClaim } from "~/pages/task/use_chain_claim";
import { formatBytes, plural } from "~/protocol/units";

interface Download {
  name: string;
  state: "busy" | "done" | "bad";
  bytes: number;
  /** What was checked, one sentence each. */
  checked: string[];
  /** What nobody can check here. */
  left?: string;
  cid?: string;
  error?: string;
  /** Why the server is asked again in a moment. */
  waits?: string | null;
}

type Kind = "model" | "weights";

const MADE_HERE =
  "What else is in the .keras file, such as the description of its layers, was written by this server in its sandbox, which your browser cannot repeat. The weights file is checked to its last byte.";

export function Downloads({ view, result }: { view: Task; result: ResultView }) {
  const { id } = view.task;
  const [download, setDownload] = useState<Download | null>(null);
  const askChain = useChainClaim();
  const fetchFile = async (kind: Kind) => {
    const found: Download = {
      name: `task-${id}.${kind === "model" ? "keras" : "safetensors"}`,
      state: "busy",
      bytes: 0,
      checked: [],
    };
    const tell = (more: Partial<Download>) => setDownload({ ...Object.assign(found, more) });
    const said = (text: string) => tell({ checked: [...found.checked, text] });
    tell({});
    try {
      const chain = await askChain(id);
      said(
        chain.by === "wallet"
          ? "The chain was asked through your wallet."
          : "The chain was asked through this server; with a wallet connected, your wallet is asked.",
      );
      const way = await walk(view, chain, said);
      const fetched = (path: string) => fetchVerified(path, ({ bytes }) => tell({ bytes }));
      const weights = await fetched(lastState(way));
      await checkLastState(way, weights);
      said("The weights have the last of those hashes.");
      if (kind === "weights") {
        saveFile(weights, found.name);
        tell({ state: "done", bytes: weights.length, cid: result.state_cid ?? way.run });
        return;
      }
      const cid = await modelCid(id, (why) => tell({ waits: why }));
      tell({ waits: null });
      const model = await fetched(cid);
      const count = checkWeights(model, weights);
      said(`All ${plural(count, "array")} of weights are in the .keras file, byte for byte.`);
      saveFile(model, found.name);
      tell({ state: "done", bytes: model.length, left: MADE_HERE, cid });
    } catch (caught) {
      tell({ state: "bad", error: fullText(caught), waits: null });
    }
  };
  const isBusy = download?.state === "busy";
  return (
    <div className="stack stack-s">
      <div className="row">
        {result.model_url && (
          <Button look="primary" busy={isBusy} onClick={() => void fetchFile("model")}>
            <Icon name="download" /> Download model
          </Button>
        )}
        {result.state_cid && (
          <Button busy={isBusy} onClick={() => void fetchFile("weights")}>
            <Icon name="download" /> Weights
          </Button>
        )}
        {result.receipt_url && (
          <a className="button" href={result.receipt_url} download={`task-${id}-receipt.json`}>
            Receipt
          </a>
        )}
        {result.tensorboard_url && (
          <a className="button" href={result.tensorboard_url} download>
            TensorBoard
          </a>
        )}
      </div>
      {download && <DownloadNotice download={download} />}
    </div>
  );
}

function DownloadNotice({ download }: { download: Download }) {
  const { state, name, bytes } = download;
  const titles = {
    bad: "The download was not accepted",
    busy: bytes ? `Checking block by block: ${formatBytes(bytes)}` : "Checking the claim …",
    done: `${name}: ${formatBytes(bytes)}, every block checked in this browser`,
  };
  const tones = { bad: "bad", busy: "info", done: "good" } as const;
  return (
    <Notice tone={tones[state]} title={titles[state]} urgent={state === "bad"}>
      {download.error && <p>{download.error}</p>}
      {download.waits && <p>{download.waits}</p>}
      {download.checked.length > 0 && (
        <ul className="checked small">
          {download.checked.map((text) => (
            <li key={text}>
              <Icon name="check" /> {text}
            </li>
          ))}
        </ul>
      )}
      {download.left && <p className="small">{download.left}</p>}
      {download.cid && <span className="mono wrap-anywhere small">{download.cid}</span>}
    </Notice>
  );
}
