import { beforeEach, describe, expect, it } from "vitest";
import type { DataPreview, ModelView } from "~/api/types";
import {
  bringBack,
  clearDraft,
  defaultTraining,
  draftFromManifest,
  draftTitle,
  dropPosted,
  isEmpty,
  loadDraft,
  manifestOf,
  newDraft,
  saveDraft,
  segmentSteps,
  setDraftAside,
  tableColumns,
  withData,
  withMode,
  withModel,
} from "~/drafts/draft";
import { quoteRequest } from "~/pages/new_task/use_quote";

class Memory {
  readonly #items = new Map<string, string>();
  getItem = (key: string) => this.#items.get(key) ?? null;
  setItem = (key: string, value: string) => void this.#items.set(key, value);
  removeItem = (key: string) => void this.#items.delete(key);
}

const model: ModelView = {
  model: {
    inputs: [{ name: "x", shape: [4] }],
    layers: [{ name: "out", type: "Dense", units: 3 }],
    outputs: ["out"],
  },
  training: null,
  layers: [{ name: "out", type: "Dense", output: [3], parameters: 15 }],
  parameters: 15,
  trainable_parameters: 15,
  inputs: [],
  output: [3],
  notes: [],
};

const preview: DataPreview = {
  kind: "csv",
  source_cid: "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy",
  records: 150,
  columns: [],
  target: "species",
  inputs: ["x"],
  first: [],
  train: { kind: "npz", path: "ipfs://bafy", records: 135 },
  test: { kind: "npz", path: "ipfs://bafy", records: 15 },
  bytes: 4000,
  notes: [],
  classes: 3,
  predictable: [],
  predicted: null,
};

describe("a draft", () => {
  let storage: Memory;
  beforeEach(() => {
    storage = new Memory();
  });

  it("survives a reload with all that was chosen", () => {
    const draft = withData(
      withModel(newDraft(), "iris.keras", model),
      { name: "iris.csv", testPercent: 10 },
      preview,
    );
    saveDraft(storage, draft);
    expect(loadDraft(storage)).toEqual(draft);
  });

  it("begins anew where storage holds nothing of use", () => {
    for (const text of ["", "null", "{", '{"version": 9, "id": "x"}', "[]"]) {
      storage.setItem("trainyard.draft", text);
      expect(isEmpty(loadDraft(storage))).toBe(true);
    }
  });

  it("is gone when it is cleared", () => {
    const draft = withModel(newDraft(), "a.keras", model);
    saveDraft(storage, draft);
    clearDraft(storage);
    expect(loadDraft(storage).id).not.toBe(draft.id);
  });

  it("lives on where storage is full", () => {
    const full = {
      ...storage,
      setItem: () => {
        throw new DOMException("full", "QuotaExceededError");
      },
    };
    expect(() => saveDraft(full, newDraft())).not.toThrow();
  });

  it("is a manifest once there is a model with data, and not before", () => {
    const half = withModel(newDraft(), "iris.keras", model);
    expect(manifestOf(half)).toBeNull();
    const manifest = manifestOf(withData(half, { name: "iris.csv", testPercent: 10 }, preview));
    expect(manifest).toMatchObject({
      version: 1,
      model: model.model,
      data: { train: preview.train, test: preview.test },
      training: {
        mode: "single",
        workers: 1,
        loss: { type: "SparseCategoricalCrossentropy", from_logits: true },
      },
    });
  });

  it("keeps what a compiled model brought along", () => {
    const compiled = { ...model, training: { optimizer: { type: "SGD", learning_rate: 0.1 } } };
    const draft = withData(
      withModel(newDraft(), "iris.keras", compiled),
      { name: "iris.csv", testPercent: 10 },
      preview,
    );
    expect(draft.training).toMatchObject({
      optimizer: { type: "SGD", learning_rate: 0.1 },
      until: { epochs: 3 },
    });
  });

  it("of a whole manifest is that manifest again", () => {
    const manifest = {
      version: 1,
      model: model.model,
      data: { train: { records: 60_000, target: "label", features: { image: {}, label: {} } } },
      training: {
        mode: "sync",
        workers: 2,
        batch: 512,
        until: { epochs: 2 },
        steps_per_segment: 20,
        seed: 1,
      },
      resources: { cores: 2 },
    };
    expect(manifestOf(draftFromManifest(manifest, "task 7", "LeNet-5"))).toEqual(manifest);
  });
});

describe("what was uploaded and not read yet", () => {
  const storage = new Memory();
  const file = { cid: preview.source_cid, name: "iris.csv" };

  it("survives a reload, and is called by its name", () => {
    const draft = { ...newDraft(), unreadData: file };
    saveDraft(storage, draft);
    expect(loadDraft(storage)).toEqual(draft);
    expect(isEmpty(loadDraft(storage))).toBe(false);
    expect(draftTitle(draft)).toBe("iris.csv");
    expect(manifestOf({ ...draft, unreadModel: file })).toBeNull();
  });

  it("is read once it is there", () => {
    const both = { ...newDraft(), unreadModel: { ...file, name: "iris.keras" }, unreadData: file };
    expect(withModel(both, "iris.keras", model)).toMatchObject({ unreadModel: null, unreadData: file });
    expect(withData(both, { name: file.name, testPercent: 10 }, preview).unreadData).toBeNull();
  });

  it("was not there in drafts of an older page", () => {
    const { unreadData, unreadModel, ...older } = newDraft();
    storage.setItem("trainyard.draft", JSON.stringify(older));
    expect(loadDraft(storage)).toMatchObject({ id: older.id, unreadData: null, unreadModel: null });
  });
});

describe("data in which no name tells what is to be learned", () => {
  const columns = ["a", "b"].map((name) => ({ name }) as DataPreview["columns"][number]);
  const unknown = { ...preview, columns, target: null, train: null, test: null, classes: null };
  const choice = { name: "arrays.npz", testPercent: 10 };
  const draft = withData(withModel(newDraft(), "iris.keras", model), choice, unknown);

  it("makes no manifest, and no training for another target than the one to come", () => {
    expect(draft.data).toMatchObject({ target: null, columns: ["a", "b"] });
    expect(draft.training).toBeNull();
    expect(manifestOf(draft)).toBeNull();
  });

  it("makes one once that was chosen", () => {
    const chosen = withData(draft, { ...choice, target: "b" }, { ...preview, columns, target: "b" });
    expect(chosen.data?.target).toBe("b");
    expect(manifestOf(chosen)).toMatchObject({
      data: { train: preview.train },
      training: { loss: { type: "SparseCategoricalCrossentropy" } },
    });
  });
});

describe("a draft that was posted", () => {
  const storage = new Memory();
  const draft = withModel(newDraft(), "a.keras", model);
  beforeEach(() => {
    saveDraft(storage, draft);
    setDraftAside(storage, draft.id);
  });

  it("is put aside, and another one is not", () => {
    expect(isEmpty(loadDraft(storage))).toBe(true);
    saveDraft(storage, draft);
    setDraftAside(storage, "another");
    expect(loadDraft(storage)).toEqual(draft);
  });

  it("comes back where its task did not stay on the chain", () => {
    bringBack(storage, "another");
    expect(isEmpty(loadDraft(storage))).toBe(true);
    bringBack(storage, draft.id);
    expect(loadDraft(storage)).toEqual(draft);
  });

  it("does not take the place of one that was begun since", () => {
    const next = withModel(newDraft(), "b.keras", model);
    saveDraft(storage, next);
    bringBack(storage, draft.id);
    expect(loadDraft(storage)).toEqual(next);
    clearDraft(storage);
  });

  it("is gone for good once its task is final", () => {
    dropPosted(storage, draft.id);
    bringBack(storage, draft.id);
    expect(isEmpty(loadDraft(storage))).toBe(true);
  });
});

describe("a table", () => {
  it.each([
    ["a,b,kind", ["a", "b", "kind"]],
    ['"a x";"b";kind', ["a x", "b", "kind"]],
    ["one", ["one"]],
    ["", []],
  ])("has the columns of its first line: %s", (line, columns) => {
    expect(tableColumns(line)).toEqual(columns);
  });

  it("is predicted by its last column, unless another was chosen", () => {
    const table = { name: "iris.csv", testPercent: 10, columns: ["a", "b", "kind"] };
    expect(withData(newDraft(), table, preview).data).toMatchObject({
      target: "kind",
      columns: table.columns,
    });
    expect(withData(newDraft(), { ...table, target: "a" }, preview).data?.target).toBe("a");
  });

  it("that came by its CID has the columns that the server found in it", () => {
    const found = { ...preview, target: "label", predictable: ["a", "b", "kind"], predicted: "kind" };
    const byCid = { name: "bafy", testPercent: 10 };
    expect(withData(newDraft(), byCid, found).data).toMatchObject({
      target: "kind",
      columns: ["a", "b", "kind"],
    });
  });
});

describe("training settings", () => {
  it("have batches that small data sets can fill", () => {
    expect(defaultTraining({ records: 20, classes: null }, null).batch).toBe(2);
    expect(defaultTraining({ records: 60_000, classes: 10 }, null).batch).toBe(128);
  });

  it("know logits from probabilities", () => {
    expect(defaultTraining({ records: 100, classes: 3 }, "softmax").loss).toMatchObject({
      from_logits: false,
    });
    expect(defaultTraining({ records: 100, classes: null }, null).loss).toEqual({ type: "MeanSquaredError" });
  });

  it("cut a run into about two dozen segments, and short runs into fewer", () => {
    expect(Math.ceil(1407 / segmentSteps(60_000, 128, 3))).toBe(24);
    expect(segmentSteps(100, 100, 3)).toBe(3);
  });

  it("come out even for all workers of a mode", () => {
    expect(withMode({ batch: 100, workers: 1 }, "sync", 3)).toMatchObject({
      mode: "sync",
      workers: 3,
      batch: 99,
    });
    expect(withMode({ batch: 100, workers: 3, rounds: { local_steps: 5 } }, "single", 3)).toEqual({
      mode: "single",
      workers: 1,
      batch: 100,
    });
    expect(withMode({ batch: 100 }, "rounds", 1)).toMatchObject({ workers: 2, rounds: { local_steps: 20 } });
  });
});

it("wishes are asked for by the names of the API, and nothing else", () => {
  const digest = `0x${"11".repeat(32)}` as const;
  expect(quoteRequest(digest, {})).toEqual({ manifest: digest });
  expect(quoteRequest(digest, { audits: 3, rewardWei: "5", joinFor: 60 })).toEqual({
    manifest: digest,
    audits: 3,
    reward_wei: "5",
    join_for: 60,
  });
});
