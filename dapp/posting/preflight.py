"""Everything that can go wrong with a post, looked at before the wallet opens."""

from dapp.errors import ApiError
from dapp.posting.quoting import as_terms, sentence_of
from dapp.posting.reachable import Look
from dapp.posting.rehearsing import rehearse
from dapp.reaching import BusyError
from dapp.reading.statistics import classes_of
from dapp.schemas.market import ClassView
from dapp.schemas.posting import Check, Preflight, PreflightRequest, TermsDocument
from dapp.security.telling import told
from dapp.services import Services
from trainyard.chain.calls import Call, MarketCalls
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import RevertedError
from trainyard.chain.quantities import parse_number
from trainyard.engine.rehearsing import Rehearsal
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.offering import likely_cost
from trainyard.protocol.telling import amount, counted

# Of the currency that fees are paid in, beside what is locked.
_FEE_RESERVE = 10**16
_LONGEST_REASON = 600


def preflight(services: Services, given: PreflightRequest) -> Preflight:
    terms, checks = given.terms, list[Check]()
    manifest, in_reach = _manifest(services, terms, checks), False
    rehearsal: Rehearsal | None = None
    if manifest is not None:
        _check_terms(terms, manifest, checks)
        in_reach = _check_content(services, manifest, checks)
    _check_capacity(services, terms, checks)
    call, value = _post(services, given, checks)
    if manifest is not None and in_reach and given.rehearse:
        rehearsal = _rehearse(services, manifest, checks)
    else:
        checks.append(Check(name="rehearsal", status="skipped", message="no batch was run"))
    refundable_from = services.now() + terms.join_for
    priced = as_terms(terms)
    escrow, likely = priced.escrow, likely_cost(priced)
    per_step = None if rehearsal is None else rehearsal.seconds_per_step
    return Preflight(
        ok=all(check.status != "failed" for check in checks),
        checks=checks,
        at_most_wei=escrow,
        likely_wei=likely,
        sentence=sentence_of(escrow, likely, refundable_from),
        refundable_from=refundable_from,
        seconds_per_step=per_step,
        estimated_train_s=None
        if rehearsal is None or manifest is None
        else rehearsal.train_s(manifest),
        first_loss=None if rehearsal is None else rehearsal.first_loss,
        to=services.settings.market,
        data=f"0x{call.data.hex()}",
        value_wei=value,
    )


def _manifest(services: Services, terms: TermsDocument, checks: list[Check]) -> Manifest | None:
    try:
        found = services.manifests.read(terms.manifest)
    except TrainyardError as error:
        fix = "put it into the store with POST /api/v1/manifests"
        checks.append(Check(name="manifest", status="failed", message=str(error), fix=fix))
        return None
    what = f"{counted(found.plan.steps, 'step')} in {counted(found.plan.segments, 'segment')}"
    checks.append(Check(name="manifest", status="ok", message=f"valid: {what}"))
    return found


def _check_terms(terms: TermsDocument, manifest: Manifest, checks: list[Check]) -> None:
    wrong = None
    workers = manifest.training.workers
    if terms.policy in ("audit", "score") and terms.slots != workers:
        wrong = f"the manifest is for {counted(workers, 'worker')}, the terms have {terms.slots}"
    elif terms.policy == "audit" and terms.segments != manifest.plan.segments:
        wrong = f"the manifest has {manifest.plan.segments} segments, the terms {terms.segments}"
    elif terms.policy == "audit" and manifest.training.mode == "async":
        wrong = "mode async cannot be replayed: use the policy 'score'"
    if wrong is None:
        checks.append(Check(name="terms", status="ok", message="they fit the manifest"))
    else:
        checks.append(Check(name="terms", status="failed", message=wrong, fix="ask for a quote"))


def _check_content(services: Services, manifest: Manifest, checks: list[Check]) -> bool:
    """Whether there is anything to rehearse with."""
    look = Look(manifest, services.settings.upload_bytes)
    try:
        is_whole = services.reach.get(look.through)
    except BusyError as error:
        checks.append(Check(name="content", status="warning", message=str(error)))
        return False
    except TrainyardError as error:
        checks.append(
            Check(
                name="content",
                status="failed",
                message=f"{look.where}: {told(error)}"[:_LONGEST_REASON],
                fix="upload it again",
            )
        )
        return False
    seen = counted(look.blocks, "block")
    if is_whole:
        said = f"all that the manifest names is in reach: {seen} of it"
        checks.append(Check(name="content", status="ok", message=said))
    else:
        said = f"{seen} are in reach, and there is more than is looked at here"
        checks.append(Check(name="content", status="warning", message=said))
    return True


def _check_capacity(services: Services, terms: TermsDocument, checks: list[Check]) -> None:
    with services.database.reading() as session:
        classes = {one.env_class: one for one in classes_of(session).items}
    found: ClassView | None = classes.get(terms.env_class)
    free = 0 if found is None else found.free
    auditors = 0 if found is None else found.auditors
    if found is None or not found.workers:
        message = "no worker of this class is registered"
        checks.append(
            Check(name="capacity", status="warning", message=message, fix="choose another class")
        )
        return
    enough = free >= terms.slots and auditors >= terms.audits
    message = f"{counted(free, 'worker')} are free, {counted(auditors, 'auditor')} can be drawn"
    checks.append(Check(name="capacity", status="ok" if enough else "warning", message=message))


def _post(services: Services, given: PreflightRequest, checks: list[Check]) -> tuple[Call, int]:
    """The call, what has to be sent with it, and whether the chain would take it."""
    terms = as_terms(given.terms)
    escrow, who = terms.escrow, given.requester

    def look(endpoints: Endpoints, client: MarketClient) -> tuple[int, int]:
        if who is None:
            return 0, 0
        balance = parse_number(endpoints.call("eth_getBalance", who, "latest"))
        return balance, client.account(who).credit

    try:
        balance, credit = services.chain.ask(look)
    except ApiError as error:
        checks.append(Check(name="chain", status="failed", message=error.message))
        return _call(services, given, escrow), escrow
    checks.append(Check(name="chain", status="ok", message="the chain answers"))
    value = max(0, escrow - credit)
    call = _call(services, given, value)
    checks.append(_balance(who, balance, credit, value))
    checks.append(_try_out(services, call, who, can_pay=balance >= value))
    return call, value


def _balance(who: str | None, balance: int, credit: int, value: int) -> Check:
    if who is None:
        return Check(name="balance", status="skipped", message="no wallet is connected")
    credited = f", and {amount(credit)} are credited in the market" if credit else ""
    has = f"the wallet has {amount(balance)}{credited}"
    if balance < value:
        return Check(
            name="balance",
            status="failed",
            message=f"{has}; {amount(value)} are needed",
            fix="offer less, or put more into the wallet",
        )
    if balance < value + _FEE_RESERVE:
        return Check(name="balance", status="warning", message=f"{has}: fees may be too much")
    return Check(name="balance", status="ok", message=has)


def _try_out(services: Services, call: Call, who: str | None, *, can_pay: bool) -> Check:
    if who is None or not can_pay:
        return Check(name="post", status="skipped", message="not tried: nobody could pay for it")
    try:
        services.chain.ask(lambda _, client: client.try_out(call, who))
    except RevertedError as error:
        return Check(name="post", status="failed", message=str(error), fix="ask for a quote")
    except (ApiError, TrainyardError) as error:
        return Check(name="post", status="warning", message=f"could not be tried: {error}")
    return Check(name="post", status="ok", message="the market would take it")


def _rehearse(services: Services, manifest: Manifest, checks: list[Check]) -> Rehearsal | None:
    try:
        found = rehearse(services, manifest)
    except ApiError as error:
        is_wrong = error.status == 422
        checks.append(
            Check(
                name="rehearsal",
                status="failed" if is_wrong else "warning",
                message=error.message,
                fix=error.fix,
            )
        )
        return None
    except BusyError as error:
        checks.append(Check(name="rehearsal", status="warning", message=str(error)))
        return None
    except TrainyardError as error:
        said = told(error)[:_LONGEST_REASON]
        checks.append(Check(name="rehearsal", status="failed", message=said))
        return None
    said = f"a step takes {found.seconds_per_step:.3f} s here"
    checks.append(Check(name="rehearsal", status="ok", message=said))
    return found


def _call(services: Services, given: PreflightRequest, value: int) -> Call:
    return MarketCalls(services.settings.market).post(as_terms(given.terms), value=value)
