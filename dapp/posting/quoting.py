"""What a task will cost: terms with good defaults, and what they mean in words."""

from datetime import UTC, datetime
from typing import Literal

from sqlalchemy.orm import Session

from dapp.errors import invalid
from dapp.reading.statistics import classes_of
from dapp.reading.task import params_of
from dapp.schemas.market import ClassView
from dapp.schemas.posting import Detection, Quote, QuoteRequest, TermsDocument
from dapp.services import Services
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Params, Policy, Terms
from trainyard.protocol.offering import (
    DEVNET_WINDOWS,
    HALF,
    TENTH,
    WINDOWS,
    OfferError,
    Supply,
    Wish,
    detection_of,
    detection_words,
    honest_stake,
    likely_cost,
    terms_for,
    warnings_of,
)
from trainyard.protocol.telling import amount


def quote(services: Services, given: QuoteRequest) -> Quote:
    manifest = services.manifests.read(given.manifest)
    now = services.now()
    with services.database.reading() as session:
        params = params_of(session)
        market = _class_for(session, given, manifest)
    if params is None:
        raise invalid("the market has no parameters yet; wait until it is indexed")
    terms, price_from = _terms(services, given, manifest, market, params)
    refundable_from = now + terms.join_for
    likely = likely_cost(terms)
    document = document_of_terms(terms)
    return Quote(
        terms=document,
        at_most_wei=terms.escrow,
        likely_wei=likely,
        sentence=sentence_of(terms.escrow, likely, refundable_from),
        refund_rule=refund_rule(document),
        refundable_from=refundable_from,
        price_from=price_from,
        market_low_wei=market.lowest_reward_wei,
        market_median_wei=market.median_reward_wei,
        market_high_wei=market.highest_reward_wei,
        detection=_detections(terms),
        honest_stake_wei=honest_stake(terms, params),
        workers_free=market.free,
        auditors_free=market.auditors,
        warnings=warnings_of(terms, _supply(market), params),
    )


def sentence_of(at_most: int, likely: int, refundable_from: int) -> str:
    when = f"{datetime.fromtimestamp(refundable_from, UTC):%H:%M} UTC"
    return f"at most {amount(at_most)}, likely {amount(likely)}, refundable from {when}"


def refund_rule(terms: TermsDocument) -> str:
    return (
        "Until the last slot is taken you can cancel and have everything back; if too few workers "
        "join or nothing is submitted in time, anyone can end the task and you have everything "
        "back; fees of audits that are not held come back when it is settled."
    )


def as_terms(document: TermsDocument) -> Terms:
    """The terms as the contract takes them."""
    values = document.model_dump()
    values |= {name: getattr(document, name) for name in ("reward", "stake", "audit_fee")}
    for name in ("manifest", "env_class", "allow_list"):
        values[name] = bytes.fromhex(values[name][2:])
    return Terms(**values | {"policy": Policy[document.policy.upper()]})


def document_of_terms(terms: Terms) -> TermsDocument:
    values = {name: getattr(terms, name) for name in Terms.__dataclass_fields__}
    for name in ("manifest", "env_class", "allow_list"):
        values[name] = f"0x{values[name].hex()}"
    return TermsDocument.model_validate(values | {"policy": terms.policy.name.lower()})


def _class_for(session: Session, given: QuoteRequest, manifest: Manifest) -> ClassView:
    classes = classes_of(session).items
    wanted = given.env_class
    if wanted is None and manifest.environment is not None:
        wanted = f"0x{manifest.environment}"
    if wanted is not None:
        for one in classes:
            if one.env_class == wanted:
                return one
        return ClassView(
            env_class=wanted,
            workers=0,
            free=0,
            auditors=0,
            open_tasks=0,
            running_tasks=0,
            settled=0,
            failed=0,
            success_rate=None,
            median_reward_wei=None,
            lowest_reward_wei=None,
            highest_reward_wei=None,
        )
    if not any(one.workers for one in classes):
        raise invalid("no worker is registered yet", field="body.env_class", fix="name a class")
    return max(classes, key=lambda one: (one.free, one.auditors, one.workers))


def _terms(
    services: Services,
    given: QuoteRequest,
    manifest: Manifest,
    market: ClassView,
    params: Params,
) -> tuple[Terms, Literal["market", "default", "request"]]:
    wish = Wish(
        policy=None if given.policy is None else Policy[given.policy.upper()],
        slots=given.slots,
        audits=given.audits,
        target=given.target,
        reward=given.reward_wei,
        stake=given.stake_wei,
        audit_fee=given.audit_fee_wei,
        join_for=given.join_for,
        train_for=given.train_for,
        audit_for=given.audit_for,
        answer_for=given.answer_for,
        challenge_for=given.challenge_for,
    )
    windows = DEVNET_WINDOWS if services.settings.is_devnet else WINDOWS
    try:
        terms = terms_for(manifest, _supply(market), params, wish, windows)
    except OfferError as error:
        raise invalid(str(error), field="body.slots") from error
    if given.reward_wei is not None:
        return terms, "request"
    return terms, "default" if market.median_reward_wei is None else "market"


def _supply(market: ClassView) -> Supply:
    median = market.median_reward_wei
    return Supply(
        bytes.fromhex(market.env_class[2:]),
        workers=market.workers,
        free=market.free,
        auditors=market.auditors,
        rewards=() if median is None else (median,),
    )


def _detections(terms: Terms) -> list[Detection]:
    found = []
    for fraction, words in ((HALF, "half"), (TENTH, "a tenth")):
        probability = detection_of(terms.segments, terms.audits, fraction)
        text = detection_words(terms, fraction, words)
        if probability is not None and text is not None:
            found.append(Detection(fraction=fraction, probability=probability, words=text))
    return found
