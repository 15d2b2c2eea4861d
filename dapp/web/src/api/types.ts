// Written by `make types` from dapp/schemas; a test compares both.
// Amounts are decimal strings of wei, times are Unix seconds.

export type Wei = string;
export type Address = `0x${string}`;
export type Hex32 = `0x${string}`;
export type HexData = `0x${string}`;
/** A part of a manifest, as it is. */
export type Manifest = Record<string, unknown>;

export type StateName = "open" | "running" | "revealing" | "submitted" | "auditing" | "opening" | "window" | "disputed" | "settled" | "failed" | "cancelled";

export type PolicyName = "replicate" | "audit" | "score" | "contest";

export type FailureName = "no_quorum" | "fraud" | "withheld" | "inconclusive" | "unaudited" | "below_target";

export type ModeName = "single" | "sync" | "rounds" | "async" | "predict";

export type StageName = "posted" | "joined" | "training" | "submitted" | "audited" | "settled";

export type StageStatus = "done" | "now" | "waiting" | "failed" | "skipped";

export type Level = "debug" | "info" | "warning" | "error";

/** What an address has in the market. */
export interface AccountView {
  address: Address;
  credit_wei: Wei;
  held_wei: Wei;
  tasks_posted: number;
  tasks_worked: number;
  settled: number;
  failed: number;
  audits_right: number;
  audits_wrong: number;
  is_worker: boolean;
}

export interface Check {
  name: "manifest" | "terms" | "content" | "balance" | "capacity" | "rehearsal" | "post" | "chain";
  status: "ok" | "warning" | "failed" | "skipped";
  message: string;
  fix: string | null;
}

export interface Claim {
  result: Hex32;
  root: Hex32;
  shares_digest: Hex32;
  shares: number[];
}

export interface ClassPage {
  items: ClassView[];
}

/** An environment class: machines whose results have the same bits. */
export interface ClassView {
  env_class: Hex32;
  title: string | null;
  workers: number;
  free: number;
  auditors: number;
  open_tasks: number;
  running_tasks: number;
  settled: number;
  failed: number;
  success_rate: number | null;
  median_reward_wei: Wei | null;
  lowest_reward_wei: Wei | null;
  highest_reward_wei: Wei | null;
}

/** Who must move next, and by when. `now` is the chain's time as the server has it. */
export interface Clock {
  now: number;
  block: number;
  next: MoveView | null;
  moves: MoveView[];
}

export interface Column {
  name: string;
  dtype: string;
  shape: number[];
  low: number | null;
  high: number | null;
  mean: number | null;
  distinct: number | null;
  most_frequent: ([string, number])[];
  labels: string[] | null;
}

/** All that a wallet and the page need to begin. */
export interface Config {
  version: string;
  chain_id: number;
  chain_name: string;
  rpc_url: string | null;
  explorer_tx_url: string | null;
  market: Address;
  start_block: number;
  currency: Currency;
  params: MarketParams | null;
  abi: Record<string, unknown>[];
  is_devnet: boolean;
  has_faucet: boolean;
  gateway_url: string | null;
  confirmations: number;
  limits: Limits;
  head_block: number | null;
  head_time: number | null;
}

export interface ContentEntry {
  name: string;
  cid: string;
  kind: "file" | "directory" | "symlink";
  size: number;
}

export interface ContentStat {
  cid: string;
  kind: "file" | "directory" | "symlink";
  size: number;
  entries: ContentEntry[];
  is_cut: boolean;
}

export interface Currency {
  symbol: string;
  decimals: number;
  address: Address | null;
}

export interface DataPreview {
  kind: "npz" | "npy" | "csv" | "images" | "tfrecord";
  source_cid: string;
  records: number;
  columns: Column[];
  target: string | null;
  inputs: string[];
  first: Record<string, unknown>[];
  train: Record<string, unknown> | null;
  test: Record<string, unknown> | null;
  bytes: number;
  notes: string[];
  classes: number | null;
  predictable: string[];
  predicted: string | null;
}

/** How surely audits find cheating. */
export interface Detection {
  fraction: number;
  probability: number;
  words: string;
}

export interface DisputeView {
  segment: number;
  state: "unserved" | "called" | "hearing" | "ruling" | "upheld" | "rejected" | "dismissed" | "inconclusive" | "void";
  accuser: Address | null;
  by_auditor: boolean;
  unserved: boolean;
  escalated: boolean;
  round: number;
  bond_wei: Wei;
  deadline: number | null;
  referees: SeatView[];
  verdict: string | null;
}

export interface Draft {
  id: string;
  title: string;
  document: Record<string, unknown>;
  created_at: number;
  updated_at: number;
}

export interface DraftPage {
  items: Draft[];
}

export interface DraftWrite {
  title?: string;
  document: Record<string, unknown>;
}

/** A model with its data that anyone can post at once. */
export interface ExampleTask {
  name: string;
  title: string;
  about: string;
  manifest: Record<string, unknown>;
  records: number;
  parameters: number;
  data_cid: string | null;
}

export interface Examples {
  items: ExampleTask[];
}

export interface FaucetGrant {
  address: Address;
  amount_wei: Wei;
  transaction: Hex32;
}

export interface FaucetRequest {
  address: Address;
}

/** What of a batch is kept. */
export interface FeedAck {
  sequence: number;
  points: number;
  lines: number;
  dropped: number;
}

/** What a worker posts of its run. */
export interface FeedBatch {
  version?: 1;
  chain_id: number;
  market: Address;
  task: number;
  worker: Address;
  slot: number;
  sequence: number;
  sent_at: number;
  phase?: string;
  points?: FeedPoint[];
  lines?: FeedLine[];
}

export interface FeedLine {
  time: number;
  level?: Level;
  text: string;
}

/** Numbers of a run at one step. `values` has finite numbers only. */
export interface FeedPoint {
  time: number;
  step: number;
  steps?: number;
  values: Record<string, number>;
}

export interface HealthView {
  status: string;
  version: string;
}

export interface LayerView {
  name: string;
  type: string;
  output: number[];
  parameters: number;
}

export interface Limits {
  upload_bytes: number;
  multipart_bytes: number;
  json_bytes: number;
  draft_bytes: number;
  drafts: number;
  page: number;
}

export interface LogLine {
  id: number;
  slot: number;
  worker: Address;
  time: number;
  level: Level;
  text: string;
}

/** Oldest first. `before` goes back from its first line, `after` on from its last. */
export interface LogPage {
  items: LogLine[];
  first: number | null;
  last: number | null;
  has_more: boolean;
}

/** What a digest stands for, or why that cannot be told. */
export interface ManifestRead {
  digest: Hex32;
  cid: string;
  manifest: Record<string, unknown> | null;
  summary: ManifestSummary;
}

/** What the manifest says is to be trained; null fields where it cannot be read. */
export interface ManifestSummary {
  title: string | null;
  mode: ModeName | null;
  workers: number | null;
  parameters: number | null;
  layers: number | null;
  records: number | null;
  batch: number | null;
  steps: number | null;
  segments: number | null;
  epochs: number | null;
  error: string | null;
}

/** A manifest that is valid and in the server's store. */
export interface ManifestView {
  digest: Hex32;
  cid: string;
  manifest: Record<string, unknown>;
  summary: ManifestSummary;
  layers: LayerView[];
}

export interface ManifestWrite {
  manifest: Record<string, unknown>;
}

/** The present parameters of the market; `bps` are hundredths of a percent. */
export interface MarketParams {
  id: number;
  seat_bond: Wei;
  unbond_for: number;
  fault_bps: number;
  finder_bps: number;
  requester_bps: number;
  referees: number;
  escalation: number;
  draw_delay: number;
  min_window: number;
}

export interface MarketStats {
  tasks: number;
  tasks_by_state: Record<string, number>;
  open_slots: number;
  workers: number;
  workers_ready: number;
  held_wei: Wei;
  paid_wei: Wei;
  settled: number;
  failed: number;
  success_rate: number | null;
  median_reward_wei: Wei | null;
  median_settle_s: number | null;
  disputes: number;
  disputes_upheld: number;
  head_block: number | null;
  head_time: number | null;
}

/** One number of one worker, in columns as charts take them; all have the same length. */
export interface MetricSeries {
  slot: number;
  worker: Address;
  name: string;
  steps: number[];
  times: number[];
  values: number[];
}

/** `after` of the next request is `last`, which brings only what is new. */
export interface MetricsView {
  series: MetricSeries[];
  last: number;
  is_thinned: boolean;
}

/** A `.keras` file or a Keras JSON, by the CID that its upload gave. */
export interface ModelRequest {
  cid: string;
}

/** The model section of a manifest, and the training that a compiled model brings along. */
export interface ModelView {
  model: Record<string, unknown>;
  training: Record<string, unknown> | null;
  layers: LayerView[];
  parameters: number;
  trainable_parameters: number;
  inputs: Record<string, unknown>[];
  output: number[];
  notes: string[];
}

/** Of the requester's escrow, which is what is held, spent and refunded together. */
export interface Money {
  escrow_wei: Wei;
  held_wei: Wei;
  spent_wei: Wei;
  refunded_wei: Wei;
  compensated_wei: Wei;
  refundable_wei: Wei;
  refundable_from: number | null;
  refund_call: "cancel" | "expire" | null;
  rule: string;
  parts: Part[];
}

/** Something that can be done: by those in `who`, or by anyone if that is empty. */
export interface MoveView {
  who: Address[];
  what: string;
  call: string;
  segment: number | null;
  slot: number | null;
  since: number | null;
  by: number | null;
  is_open: boolean;
}

/** For the message of EIP-4361; good once, and until it expires. */
export interface Nonce {
  nonce: string;
  domain: string;
  uri: string;
  chain_id: number;
  statement: string;
  issued_at: string;
  expires_at: string;
}

export interface Notification {
  id: number;
  task: number | null;
  kind: "joined" | "started" | "submitted" | "disputed" | "settled" | "failed" | "move" | "paid";
  text: string;
  time: number;
  transaction: Hex32 | null;
  is_read: boolean;
}

export interface NotificationPage {
  items: Notification[];
  unread: number;
  next: string | null;
}

/** What an account has to do with a task, and what the task holds of it or brought it. */
export interface Part {
  who: Address;
  name: string;
  role: string;
  held_wei: Wei;
  credited_wei: Wei;
  lost_wei: Wei;
  credit_wei: Wei;
  claim: string;
}

/** Whether the wallet may open; every check has its sentence. */
export interface Preflight {
  ok: boolean;
  checks: Check[];
  at_most_wei: Wei;
  likely_wei: Wei;
  sentence: string;
  refundable_from: number;
  seconds_per_step: number | null;
  estimated_train_s: number | null;
  first_loss: number | null;
  to: Address;
  data: HexData;
  value_wei: Wei;
}

/** Everything but the signature. */
export interface PreflightRequest {
  terms: TermsDocument;
  requester?: Address | null;
  rehearse?: boolean;
}

/** What is behind a CID that was uploaded, or is somewhere in reach. */
export interface PreviewRequest {
  cid: string;
  kind?: "npz" | "npy" | "csv" | "images" | "tfrecord" | null;
  target?: string | null;
  ignore?: string[];
  image_size?: [number, number] | null;
  test_percent?: number;
  write?: boolean;
}

/** The body of every answer that is not 2xx. */
export interface Problem {
  error: ProblemDetail;
}

/** Why a request was refused; `fix` says what to do about it. */
export interface ProblemDetail {
  code: string;
  message: string;
  fix: string | null;
  field: string | null;
  retry_after_s: number | null;
}

/** Terms that can be posted as they are, and what they mean. */
export interface Quote {
  terms: TermsDocument;
  at_most_wei: Wei;
  likely_wei: Wei;
  sentence: string;
  refund_rule: string;
  refundable_from: number;
  price_from: "market" | "default" | "request";
  market_low_wei: Wei | null;
  market_median_wei: Wei | null;
  market_high_wei: Wei | null;
  detection: Detection[];
  honest_stake_wei: Wei;
  workers_free: number;
  auditors_free: number;
  warnings: string[];
}

/** What is to be done; what is left out gets a good default, which the quote names. */
export interface QuoteRequest {
  manifest: Hex32;
  env_class?: Hex32 | null;
  policy?: PolicyName | null;
  slots?: number | null;
  target?: number | null;
  audits?: number | null;
  reward_wei?: Wei | null;
  stake_wei?: Wei | null;
  audit_fee_wei?: Wei | null;
  join_for?: number | null;
  train_for?: number | null;
  audit_for?: number | null;
  answer_for?: number | null;
  challenge_for?: number | null;
}

/** Marks this notification and all before it as read. */
export interface ReadUpTo {
  id: number;
}

export interface ReadyCheck {
  name: string;
  ok: boolean;
  detail: string;
}

export interface ReadyView {
  ready: boolean;
  checks: ReadyCheck[];
  lag_blocks: number | null;
}

/** What a task came to, as far as it is known and published. */
export interface ResultView {
  available: boolean;
  reason: string | null;
  result_cid: string | null;
  result_digest: Hex32 | null;
  root: Hex32 | null;
  run_cid: string | null;
  evidence_cid: string | null;
  state_cid: string | null;
  state_url: string | null;
  model_url: string | null;
  model_cid: string | null;
  metrics: Record<string, number>;
  tested: Record<string, number>;
  steps: number | null;
  train_s: number | null;
  energy_j: number | null;
  snippet: string | null;
  receipt_url: string | null;
  tensorboard_url: string | null;
  paid_wei: Wei;
  refunded_wei: Wei;
}

export interface SeatView {
  index: number;
  member: Address;
  segment: number;
  status: "drawn" | "committed" | "revealed" | "closed";
  agrees: boolean | null;
  scores: number[];
}

/** Who is signed in. The cookie is `HttpOnly`; changes need the header X-CSRF-Token. */
export interface Session {
  address: Address | null;
  expires_at: number | null;
  csrf_token: string | null;
}

/** The message exactly as it was signed, and its signature (EIP-191). */
export interface SignIn {
  message: string;
  signature: string;
}

export interface SlotView {
  index: number;
  worker: Address | null;
  status: "free" | "joined" | "answered" | "revealed" | "left";
  is_lead: boolean;
  claim: Claim | null;
  pong_by: number | null;
  contribution: number | null;
  last_seen: number | null;
  step: number | null;
  examples_per_s: number | null;
  phase: string | null;
  credited_wei: Wei;
}

/** A step of Posted → Joined → Training → Submitted → Audited → Settled. */
export interface Stage {
  name: StageName;
  title: string;
  status: StageStatus;
  began_at: number | null;
  ended_at: number | null;
  transaction: Hex32 | null;
  block: number | null;
  detail: string | null;
}

/** What `challenge` and `serve` have to be shown about a segment, from the published run. */
export interface StateProof {
  segment: number;
  claim: Claim;
  state: Hex32;
  proof: Hex32[];
}

/** All about a task but its history, its trace and its feed. */
export interface Task {
  task: TaskSummary;
  join_for: number;
  train_for: number;
  audit_for: number;
  answer_for: number;
  challenge_for: number;
  quorum: number;
  min_audits: number;
  audit_fee_wei: Wei;
  target: number;
  tolerance: number;
  min_settled: number;
  shares_agreed: boolean;
  slots: SlotView[];
  seats: SeatView[];
  disputes: DisputeView[];
  clock: Clock;
  money: Money;
  names: Record<string, string>;
  challenge_bond_wei: Wei;
  has_result: boolean;
}

export interface TaskPage {
  items: TaskSummary[];
  next: string | null;
  total: number;
}

/** A row of the market. */
export interface TaskSummary {
  id: number;
  state: StateName;
  failure: FailureName | null;
  policy: PolicyName;
  requester: Address;
  env_class: Hex32;
  manifest: Hex32;
  summary: ManifestSummary;
  slots: number;
  slots_joined: number;
  reward_wei: Wei;
  stake_wei: Wei;
  escrow_wei: Wei;
  audits: number;
  segments: number;
  disputes: number;
  is_listed: boolean;
  posted_at: number;
  updated_at: number;
  deadline: number | null;
  ended_at: number | null;
  progress: number | null;
}

/** The argument of `post`, by the names of the contract, with amounts as strings. */
export interface TermsDocument {
  manifest: Hex32;
  env_class: Hex32;
  allow_list: Hex32;
  policy: PolicyName;
  slots: number;
  quorum: number;
  audits: number;
  min_audits: number;
  shares_agreed: boolean;
  min_settled: number;
  reward: Wei;
  stake: Wei;
  audit_fee: Wei;
  segments: number;
  target: number;
  tolerance: number;
  join_for: number;
  train_for: number;
  audit_for: number;
  answer_for: number;
  challenge_for: number;
}

export interface Timeline {
  stages: Stage[];
  events: TimelineEvent[];
}

/** One event of the chain. */
export interface TimelineEvent {
  key: string;
  name: string;
  what: string | null;
  stage: StageName;
  block: number;
  block_hash: Hex32;
  index: number;
  transaction: Hex32;
  time: number;
  confirmations: number;
}

/** A segment that somebody looked at; all others were not drawn and nobody challenged them. */
export interface TraceSegment {
  segment: number;
  title: string | null;
  status: "drawn" | "audited" | "differs" | "challenged" | "upheld" | "rejected" | "undecided";
  auditor: Address | null;
  audit: "waiting" | "committed" | "agrees" | "differs" | "unserved" | "silent" | null;
  challenger: Address | null;
  verdict: string | null;
  referees: Address[];
  transaction: Hex32 | null;
  claimed: Hex32 | null;
  found: Hex32 | null;
}

export interface TraceView {
  segments: number;
  root: Hex32 | null;
  looked_at: TraceSegment[];
  detection: number | null;
}

/** A file that comes in pieces. `sha256` is checked at the end if it is given. */
export interface UploadStart {
  name: string;
  size: number;
  sha256?: string | null;
}

export interface UploadState {
  id: string;
  name: string;
  size: number;
  offset: number;
  expires_at: number;
  uploaded: Uploaded | null;
}

/** What was stored, read back and found to be what the CID says. */
export interface Uploaded {
  cid: string;
  size: number;
  files: number;
  kind: string;
  name: string;
}

export interface WorkerPage {
  items: WorkerSummary[];
  next: string | null;
  total: number;
}

export interface WorkerSummary {
  rank: number | null;
  address: Address;
  env_class: Hex32 | null;
  is_retired: boolean;
  bond_wei: Wei;
  bond_locked_wei: Wei;
  settled: number;
  failed: number;
  audits_right: number;
  audits_wrong: number;
  success_rate: number | null;
  earned_wei: Wei;
  lost_wei: Wei;
  slots_held: number;
  seats_held: number;
  since: number | null;
}

export interface WorkerView {
  worker: WorkerSummary;
  profile: Hex32 | null;
  min_fee_wei: Wei;
  min_audit_for: number;
  min_answer_for: number;
  unbonds_at: number | null;
  credit_wei: Wei;
  tasks: TaskSummary[];
  earnings: ([number, Wei])[];
}
