"""A run while it goes on and when it is over: metrics, log lines, the result."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, FiniteFloat

from dapp.schemas.values import Address, Answer, CidText, Hex32, Question, Seconds, Wei

MetricName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]{1,80}$", examples=["loss"])]
Level: TypeAlias = Literal["debug", "info", "warning", "error"]
_LARGEST = 2**53 - 1
MOST_POINTS, MOST_LINES, LONGEST_LINE = 256, 256, 2_000


class FeedPoint(Question):
    """Numbers of a run at one step. `values` has finite numbers only."""

    time: Annotated[float, Field(ge=0, le=1e11)]
    step: Annotated[int, Field(ge=0, le=_LARGEST)]
    steps: Annotated[int, Field(ge=0, le=_LARGEST)] = 0
    values: Annotated[
        dict[MetricName, FiniteFloat], Field(max_length=32, examples=[{"loss": 0.25}])
    ]


class FeedLine(Question):
    time: Annotated[float, Field(ge=0, le=1e11)]
    level: Level = "info"
    text: Annotated[str, Field(max_length=LONGEST_LINE)]


class FeedBatch(Question):
    """What a worker posts of its run.

    Signed by its wallet (EIP-191) in the header X-Trainyard-Signature, over this text, where the
    hash is that of the body's bytes as sent:

        trainyard feed 1
        sha256 <64 hexadecimal digits>
    """

    version: Literal[1] = 1
    chain_id: Annotated[int, Field(ge=1, le=_LARGEST)]
    market: Address
    task: Annotated[int, Field(ge=1, le=2**31 - 1)]
    worker: Address
    slot: Annotated[int, Field(ge=0, le=31)]
    # Larger with each batch of this worker for this task; one that came before is refused.
    sequence: Annotated[int, Field(ge=1, le=_LARGEST)]
    sent_at: Seconds
    phase: Annotated[str, Field(max_length=40)] = ""
    points: Annotated[list[FeedPoint], Field(max_length=MOST_POINTS)] = Field(default_factory=list)
    lines: Annotated[list[FeedLine], Field(max_length=MOST_LINES)] = Field(default_factory=list)


class FeedAck(Answer):
    """What of a batch is kept."""

    sequence: int
    points: int
    lines: int
    # Numbers that were left out: the feed has as many different ones as may be.
    dropped: int = 0


class MetricSeries(Answer):
    """One number of one worker, in columns as charts take them; all have the same length."""

    slot: int
    worker: Address
    name: str = Field(examples=["loss"])
    steps: list[int]
    times: list[float]
    values: list[float]


class MetricsView(Answer):
    """`after` of the next request is `last`, which brings only what is new.

    The same points come live as SSE events of the type "metrics".
    """

    series: list[MetricSeries]
    last: int
    # Whether older points were left out to keep to `points`.
    is_thinned: bool


class LogLine(Answer):
    id: int
    slot: int
    worker: Address
    time: float
    level: Level
    text: str


class LogPage(Answer):
    """Oldest first. `before` goes back from its first line, `after` on from its last."""

    items: list[LogLine]
    first: int | None
    last: int | None
    has_more: bool


class ResultView(Answer):
    """What a task came to, as far as it is known and published."""

    available: bool
    # Why not yet.
    reason: str | None = None
    result_cid: CidText | None = None
    result_digest: Hex32 | None = None
    root: Hex32 | None = None
    run_cid: CidText | None = None
    evidence_cid: CidText | None = None
    # The last state (safetensors), and where the server gives it.
    state_cid: CidText | None = None
    state_url: str | None = None
    # The trained model as a .keras file, made from the state in the sandbox on demand; null for a
    # task that predicts. Its CID is known when it was made.
    model_url: str | None = None
    model_cid: CidText | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    tested: dict[str, float] = Field(default_factory=dict)
    steps: int | None = None
    train_s: float | None = None
    energy_j: float | None = None
    # Python that loads the downloaded model. It verifies nothing: whoever downloads does so.
    snippet: str | None = None
    receipt_url: str | None = None
    tensorboard_url: str | None = None
    # Of the requester's escrow, as in `Money`: what was spent, and what came back.
    paid_wei: Wei = 0
    refunded_wei: Wei = 0
