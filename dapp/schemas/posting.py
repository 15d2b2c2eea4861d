"""Posting a task: manifests, models, what it will cost, and whether it will work."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dapp.schemas.tasks import ManifestSummary
from dapp.schemas.values import (
    Address,
    Answer,
    CidText,
    Hex32,
    HexData,
    PolicyName,
    Price,
    Question,
    Seconds,
    Wei,
)


class LayerView(Answer):
    name: str
    type: str
    output: list[int]
    parameters: int


class ModelRequest(Question):
    """A `.keras` file or a Keras JSON, by the CID that its upload gave."""

    cid: CidText


class ModelView(Answer):
    """The model section of a manifest, and the training that a compiled model brings along."""

    model: dict[str, Any]
    # `optimizer`, `loss`, `metrics`; null for a model that is not compiled.
    training: dict[str, Any] | None
    layers: list[LayerView]
    parameters: int
    trainable_parameters: int
    inputs: list[dict[str, Any]]
    output: list[int]
    # Whether the file brought weights, which are not taken over.
    notes: list[str] = Field(default_factory=list)


class ManifestWrite(Question):
    manifest: dict[str, Any]


class ManifestView(Answer):
    """A manifest that is valid and in the server's store."""

    digest: Hex32
    cid: CidText
    manifest: dict[str, Any]
    summary: ManifestSummary
    layers: list[LayerView]


class TermsDocument(Question):
    """The argument of `post`, by the names of the contract, with amounts as strings."""

    manifest: Hex32
    env_class: Hex32
    allow_list: Hex32 = "0x" + "00" * 32
    policy: PolicyName = "audit"
    slots: Annotated[int, Field(ge=1, le=32)] = 1
    quorum: Annotated[int, Field(ge=1, le=32)] = 1
    audits: Annotated[int, Field(ge=0, le=15)] = 0
    min_audits: Annotated[int, Field(ge=0, le=15)] = 0
    shares_agreed: bool = False
    min_settled: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    reward: Price
    stake: Price
    audit_fee: Price = 0
    segments: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    target: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    tolerance: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    join_for: Annotated[int, Field(ge=0, le=2**32 - 1)] = 3_600
    train_for: Annotated[int, Field(ge=0, le=2**32 - 1)] = 86_400
    audit_for: Annotated[int, Field(ge=0, le=2**32 - 1)] = 3_600
    answer_for: Annotated[int, Field(ge=0, le=2**32 - 1)] = 600
    challenge_for: Annotated[int, Field(ge=0, le=2**32 - 1)] = 3_600


class QuoteRequest(Question):
    """What is to be done; what is left out gets a good default, which the quote names."""

    manifest: Hex32
    env_class: Hex32 | None = None
    # Left out, it is what suits the manifest: audits, or scores for mode async.
    policy: PolicyName | None = None
    # Only for `replicate` and `contest`; else as many as the manifest has workers.
    slots: Annotated[int, Field(ge=1, le=32)] | None = None
    # A score to reach, in millionths, for `score` and `contest`.
    target: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    audits: Annotated[int, Field(ge=0, le=15)] | None = None
    reward_wei: Price | None = None
    stake_wei: Price | None = None
    audit_fee_wei: Price | None = None
    join_for: Annotated[int, Field(ge=1, le=2**31)] | None = None
    train_for: Annotated[int, Field(ge=1, le=2**31)] | None = None
    audit_for: Annotated[int, Field(ge=1, le=2**31)] | None = None
    answer_for: Annotated[int, Field(ge=1, le=2**31)] | None = None
    challenge_for: Annotated[int, Field(ge=1, le=2**31)] | None = None


class Detection(Answer):
    """How surely audits find cheating."""

    # Part of the segments that is cheated, and the chance that it is found.
    fraction: float
    probability: float
    words: str = Field(
        examples=["two audits find a worker that fakes half of its work 3 in 4 times"]
    )


class Quote(Answer):
    """Terms that can be posted as they are, and what they mean."""

    terms: TermsDocument
    # What `post` has to be sent: at most, likely, and where the price is from.
    at_most_wei: Wei
    likely_wei: Wei
    # "at most 0.22 ETH, likely 0.21 ETH, refundable from 14:05 UTC if too few workers join"
    sentence: str
    refund_rule: str
    refundable_from: Seconds
    price_from: Literal["market", "default", "request"]
    # Prices of a slot in this class: open tasks and the latest settled ones.
    market_low_wei: Wei | None
    market_median_wei: Wei | None
    market_high_wei: Wei | None
    detection: list[Detection]
    # A stake at which cheating does not pay, by the theory.
    honest_stake_wei: Wei
    workers_free: int
    auditors_free: int
    warnings: list[str] = Field(default_factory=list)


class PreflightRequest(Question):
    """Everything but the signature."""

    terms: TermsDocument
    requester: Address | None = None
    # Whether one batch is run by the sandboxed engine, which takes some seconds.
    rehearse: bool = True


class Check(Answer):
    name: Literal[
        "manifest", "terms", "content", "balance", "capacity", "rehearsal", "post", "chain"
    ]
    status: Literal["ok", "warning", "failed", "skipped"]
    message: str
    fix: str | None = None


class Preflight(Answer):
    """Whether the wallet may open; every check has its sentence."""

    ok: bool
    checks: list[Check]
    at_most_wei: Wei
    likely_wei: Wei
    sentence: str
    refundable_from: Seconds
    # By the rehearsal.
    seconds_per_step: float | None = None
    estimated_train_s: float | None = None
    first_loss: float | None = None
    # The transaction to sign: `to`, `data` and `value` of `post` with these terms.
    to: Address
    data: HexData
    value_wei: Wei


class ManifestRead(Answer):
    """What a digest stands for, or why that cannot be told."""

    digest: Hex32
    cid: CidText
    manifest: dict[str, Any] | None
    summary: ManifestSummary
