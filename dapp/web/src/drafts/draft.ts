/** A task that is being put together. It lives in this browser's storage, so that nothing loses it. */

import type { DataPreview, LayerView, Manifest, ModelView, Policy, Wei } from "~/drafts/parts";

export interface DraftModel {
  name: string;
  section: Manifest;
  layers: LayerView[];
  parameters: number | null;
  notes: string[];
}

export interface DraftData {
  name: string;
  /** What was uploaded or named, from which the sections were made; null where a manifest brought them. */
  source: string | null;
  train: Manifest;
  test: Manifest | null;
  records: number;
  classes: number | null;
  target: string | null;
  testPercent: number;
  /** What can be predicted: columns of a table, or features. */
  columns: string[];
  notes: string[];
  preview: DataPreview | null;
}

/** What is in the store, and was not read by the server yet. */
export interface Unread {
  cid: string;
  name: string;
}

/** What the requester wants otherwise than the market's good defaults. */
export interface Wishes {
  envClass?: `0x${string}`;
  policy?: Policy;
  slots?: number;
  target?: number;
  audits?: number;
  rewardWei?: Wei;
  stakeWei?: Wei;
  auditFeeWei?: Wei;
  joinFor?: number;
  trainFor?: number;
  auditFor?: number;
  answerFor?: number;
  challengeFor?: number;
}

export interface Draft {
  version: 1;
  id: string;
  /** Its number among those that the account keeps; null where none has it. */
  stored: string | null;
  origin: string | null;
  model: DraftModel | null;
  unreadModel: Unread | null;
  data: DraftData | null;
  unreadData: Unread | null;
  training: Manifest | null;
  extras: Manifest;
  /** Whether segments are cut by the page, or as somebody said. */
  hasOwnSegments: boolean;
  wishes: Wishes;
}

export const KEY = "trainyard.draft";
const POSTED_KEY = "trainyard.draft.posted";
const SEGMENTS = 24;
const LEAST_STEPS = 5;
const MOST_RECORDS = 12;
const MOST_PREVIEW_CHARACTERS = 200_000;

export function newDraft(): Draft {
  const id = `${Date.now().toString(36)}${Math.floor(Math.random() * 2 ** 32).toString(36)}`;
  return {
    version: 1,
    id,
    stored: null,
    origin: null,
    model: null,
    unreadModel: null,
    data: null,
    unreadData: null,
    training: null,
    extras: {},
    hasOwnSegments: false,
    wishes: {},
  };
}

export interface TextStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** The draft of an earlier visit, or a new one where there is none that can be read. */
export function loadDraft(storage: TextStore): Draft {
  return read(storage, KEY) ?? newDraft();
}

function read(storage: TextStore, key: string): Draft | null {
  try {
    const found = JSON.parse(storage.getItem(key) ?? "null") as Partial<Draft> | null;
    if (found?.version === 1 && typeof found.id === "string") return { ...newDraft(), ...found };
  } catch {
    // Not ours, or from a version that wrote otherwise.
  }
  return null;
}

export function saveDraft(storage: TextStore, draft: Draft, key = KEY): void {
  try {
    storage.setItem(key, JSON.stringify(draft));
  } catch {
    // Storage is full or blocked: the draft still lives as long as the page does.
  }
}

export function clearDraft(storage: TextStore): void {
  storage.removeItem(KEY);
}

/** Put a posted draft aside, if it is still the one that is kept: until its task is final it may be wanted again. */
export function setDraftAside(storage: TextStore, id: string): void {
  const draft = loadDraft(storage);
  if (draft.id !== id) return;
  saveDraft(storage, draft, POSTED_KEY);
  clearDraft(storage);
}

/** Let go of a draft that was put aside. */
export function dropPosted(storage: TextStore, id: string): void {
  if (read(storage, POSTED_KEY)?.id === id) storage.removeItem(POSTED_KEY);
}

/** What was put aside is not posted after all: go on with it, where no other was begun. */
export function bringBack(storage: TextStore, id: string): void {
  const draft = read(storage, POSTED_KEY);
  if (draft?.id !== id || !isEmpty(loadDraft(storage))) return;
  saveDraft(storage, draft);
  storage.removeItem(POSTED_KEY);
}

export function isEmpty(draft: Draft): boolean {
  return !draft.model && !draft.data && !draft.unreadModel && !draft.unreadData;
}

/** Whether one is the other still, wherever it is stored. Every change makes its part anew. */
export function isSameDraft(one: Draft, other: Draft): boolean {
  const names = Object.keys(newDraft()) as (keyof Draft)[];
  return names.every((name) => name === "stored" || one[name] === other[name]);
}

export function draftTitle(draft: Draft): string {
  const { model, data, unreadModel, unreadData } = draft;
  return model?.name ?? data?.name ?? unreadModel?.name ?? unreadData?.name ?? "Draft";
}

/** A whole manifest taken apart: an example, or a task that is run again. */
export function draftFromManifest(manifest: Manifest, origin: string, name: string): Draft {
  const { model, data, training, version: _, ...extras } = manifest as Record<string, Manifest | undefined>;
  const train = (data?.train ?? {}) as Manifest;
  return {
    ...newDraft(),
    origin,
    model: model ? { name, section: model, layers: [], parameters: null, notes: [] } : null,
    data: {
      name,
      source: null,
      train,
      test: (data?.test as Manifest | undefined) ?? null,
      records: Number(train.records ?? 0),
      classes: null,
      target: typeof train.target === "string" ? train.target : null,
      testPercent: 0,
      columns: Object.keys((train.features as Manifest | undefined) ?? {}),
      notes: [],
      preview: null,
    },
    training: training ?? null,
    extras: extras as Manifest,
    hasOwnSegments: true,
  };
}

export function withModel(draft: Draft, name: string, view: ModelView): Draft {
  const model: DraftModel = {
    name,
    section: view.model,
    layers: view.layers,
    parameters: view.parameters,
    notes: view.notes,
  };
  const training = view.training ? { ...(draft.training ?? {}), ...view.training } : draft.training;
  return completed({ ...draft, model, unreadModel: null, training });
}

/** How data was asked for. `columns` are those of a table, whose features have other names. */
export interface DataChoice {
  name: string;
  testPercent: number;
  target?: string | undefined;
  columns?: string[];
}

export function withData(draft: Draft, choice: DataChoice, preview: DataPreview): Draft {
  const table = preview.predictable.length ? preview.predictable : (choice.columns ?? []);
  const data: DraftData = {
    name: choice.name,
    source: preview.source_cid,
    train: preview.train ?? {},
    test: preview.test,
    records: Number(preview.train?.records ?? preview.records),
    classes: preview.classes,
    target: choice.target ?? preview.predicted ?? table.at(-1) ?? preview.target,
    testPercent: choice.testPercent,
    columns: table.length ? table : preview.columns.map((column) => column.name),
    notes: preview.notes,
    preview: kept(preview),
  };
  return completed({ ...draft, data, unreadData: null });
}

/** Whether it is still to be chosen what the model learns: names in a file do not always tell. */
export function lacksTarget(data: Pick<DraftData, "source" | "target">): boolean {
  return data.source !== null && data.target === null;
}

/** A preview that fits into the browser's storage beside the rest. */
function kept(preview: DataPreview): DataPreview | null {
  const few = { ...preview, first: preview.first.slice(0, MOST_RECORDS), train: null, test: null };
  return JSON.stringify(few).length <= MOST_PREVIEW_CHARACTERS ? few : null;
}

/** The names in the first line of a table, with whichever separator it has. */
export function tableColumns(firstLine: string): string[] {
  const separator = [",", ";", "\t"].find((one) => firstLine.includes(one)) ?? ",";
  return firstLine
    .split(separator)
    .map((name) => name.trim().replace(/^"(.*)"$/, "$1"))
    .filter(Boolean);
}

/** Fills in what training needs once model and data are there. */
export function completed(draft: Draft): Draft {
  if (!draft.model || !draft.data || lacksTarget(draft.data)) return draft;
  const given = draft.training ?? {};
  const defaults = defaultTraining(draft.data, outputActivation(draft.model.section));
  return { ...draft, training: { ...defaults, ...given } };
}

export function defaultTraining(
  data: Pick<DraftData, "records" | "classes">,
  activation: string | null,
): Manifest {
  const batch = Math.max(1, Math.min(128, 2 ** Math.floor(Math.log2(Math.max(1, data.records / 8)))));
  const isClasses = data.classes !== null && data.classes > 1;
  return {
    mode: "single",
    workers: 1,
    threads: 1,
    batch,
    until: { epochs: 3 },
    seed: 1,
    optimizer: { type: "Adam", learning_rate: 0.001 },
    loss: isClasses
      ? { type: "SparseCategoricalCrossentropy", from_logits: activation !== "softmax" }
      : { type: "MeanSquaredError" },
    metrics: isClasses ? [{ type: "SparseCategoricalAccuracy", name: "accuracy" }] : [],
  };
}

function outputActivation(model: Manifest): string | null {
  const layers = (model.layers as Manifest[] | undefined) ?? [];
  const last = layers.at(-1);
  const found = last?.activation ?? (last?.type === "Softmax" ? "softmax" : null);
  return typeof found === "string" ? found : null;
}

/** Segments of a length that makes about two dozen of a run: enough to draw from, and not too short to pay. */
export function segmentSteps(records: number, batch: number, epochs: number): number {
  const steps = Math.max(1, Math.ceil((epochs * records) / Math.max(1, batch)));
  return Math.min(steps, Math.max(LEAST_STEPS, Math.ceil(steps / SEGMENTS)));
}

/** The manifest of a draft, or null until there is enough of one. */
export function manifestOf(draft: Draft): Manifest | null {
  if (!draft.model || !draft.data || lacksTarget(draft.data) || !draft.training) return null;
  const training: Manifest = { ...draft.training };
  const until = (training.until ?? {}) as { epochs?: number };
  if (training.mode === "rounds") delete training.steps_per_segment;
  else if (!draft.hasOwnSegments || training.steps_per_segment === undefined) {
    training.steps_per_segment = segmentSteps(draft.data.records, Number(training.batch), until.epochs ?? 1);
  }
  return {
    ...draft.extras,
    version: 1,
    model: draft.model.section,
    data: { train: draft.data.train, ...(draft.data.test ? { test: draft.data.test } : {}) },
    training,
  };
}

export type Mode = "single" | "sync" | "rounds" | "async";

/** Another mode, with what goes with it: one worker alone, rounds with their length, shares that come out even. */
export function withMode(training: Manifest, mode: Mode, workers: number): Manifest {
  const { rounds, ...rest } = training;
  const count = mode === "single" ? 1 : Math.max(2, workers);
  const batch = Number(training.batch ?? 1);
  const even = mode === "async" ? batch : Math.max(count, Math.round(batch / count) * count);
  return {
    ...rest,
    mode,
    workers: count,
    batch: even,
    ...(mode === "rounds" ? { rounds: rounds ?? { local_steps: 20 } } : {}),
  };
}
