"""What a challenge has to be shown: the state that was claimed, and its place in the trace."""

from dapp.errors import not_found
from dapp.reading.task import claim_view
from dapp.results.opening import open_run
from dapp.schemas.tasks import StateProof
from dapp.services import Services
from trainyard.protocol.ledger.book import Task


def proof_of(services: Services, task: Task, segment: int) -> StateProof:
    if segment >= task.terms.segments:
        raise not_found(f"there is no segment {segment}: the trace has {task.terms.segments}")
    run = open_run(services, task)
    claim = claim_view(task.slots[task.lead])
    assert claim is not None
    trace, number = run.trace, segment + 1
    return StateProof(
        segment=segment,
        claim=claim,
        state=f"0x{trace.states[number].hex()}",
        proof=[f"0x{one.hex()}" for one in trace.proof(number)],
    )
