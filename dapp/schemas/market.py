"""The market as a whole: how to reach it, what it is doing, what can be had."""

from typing import Any

from pydantic import Field

from dapp.schemas.values import Address, Answer, CidText, Hex32, Question, Seconds, Wei


class Currency(Answer):
    symbol: str = "ETH"
    decimals: int = 18
    # None for the chain's own currency.
    address: Address | None = None


class MarketParams(Answer):
    """The present parameters of the market; `bps` are hundredths of a percent."""

    id: int
    seat_bond: Wei
    unbond_for: Seconds
    fault_bps: int
    finder_bps: int
    requester_bps: int
    referees: int
    escalation: int
    draw_delay: int
    min_window: Seconds


class Limits(Answer):
    upload_bytes: int
    multipart_bytes: int
    json_bytes: int
    draft_bytes: int
    drafts: int
    page: int


class Config(Answer):
    """All that a wallet and the page need to begin."""

    version: str
    chain_id: int
    chain_name: str
    # For `wallet_addEthereumChain`; what the browser itself can reach.
    rpc_url: str | None
    # A link to a transaction is this followed by its hash; None where nobody shows transactions.
    explorer_tx_url: str | None
    market: Address
    start_block: int
    currency: Currency
    params: MarketParams | None
    # Whole, as the package ships it: `ITrainingMarket`.
    abi: list[dict[str, Any]]
    is_devnet: bool
    # Whether `POST /faucet` gives.
    has_faucet: bool
    # A trustless gateway where the browser can fetch content by CID; None if there is none.
    gateway_url: str | None
    # How deep a transaction must be for the page to call it final.
    confirmations: int
    limits: Limits
    # The indexer's place.
    head_block: int | None
    head_time: Seconds | None


class MarketStats(Answer):
    tasks: int
    # By the names of states; those without a task are left out.
    tasks_by_state: dict[str, int]
    open_slots: int
    workers: int
    workers_ready: int
    # What tasks hold now, and what settled ones paid to workers and auditors, stakes not counted.
    held_wei: Wei
    paid_wei: Wei
    settled: int
    failed: int
    # Of those that ended; None where none has.
    success_rate: float | None
    median_reward_wei: Wei | None
    # Of settled tasks, from post to settlement.
    median_settle_s: float | None
    disputes: int
    disputes_upheld: int
    head_block: int | None
    head_time: Seconds | None


class ClassView(Answer):
    """An environment class: machines whose results have the same bits."""

    env_class: Hex32
    # Known where a worker's profile names it; such as "tensorflow-cpu 2.21.0".
    title: str | None = None
    workers: int
    # Workers of the class that hold no slot of a running task.
    free: int
    # Members of the pool that panels are drawn from.
    auditors: int
    open_tasks: int
    running_tasks: int
    settled: int
    failed: int
    success_rate: float | None
    # Of tasks of this class: what a slot is paid.
    median_reward_wei: Wei | None
    lowest_reward_wei: Wei | None
    highest_reward_wei: Wei | None


class ClassPage(Answer):
    items: list[ClassView]


class AccountView(Answer):
    """What an address has in the market."""

    address: Address
    # What `withdraw` gives at any time.
    credit_wei: Wei
    # What tasks hold of it now: escrows, stakes, bonds.
    held_wei: Wei
    tasks_posted: int
    tasks_worked: int
    settled: int
    failed: int
    audits_right: int
    audits_wrong: int
    is_worker: bool


class ExampleTask(Answer):
    """A model with its data that anyone can post at once."""

    name: str
    title: str
    about: str
    # A whole manifest, ready for `POST /manifests`.
    manifest: dict[str, Any]
    records: int
    parameters: int
    # None until the data is in the server's store, which `POST /examples/{name}` sees to.
    data_cid: CidText | None


class Examples(Answer):
    items: list[ExampleTask]


class FaucetRequest(Question):
    address: Address


class FaucetGrant(Answer):
    address: Address
    amount_wei: Wei
    transaction: Hex32


class HealthView(Answer):
    status: str = Field(examples=["ok"])
    version: str


class ReadyCheck(Answer):
    name: str
    ok: bool
    detail: str


class ReadyView(Answer):
    ready: bool
    checks: list[ReadyCheck]
    lag_blocks: int | None
