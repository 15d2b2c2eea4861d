"""The honest agent with one thing wrong with it."""

from eth_account.signers.local import LocalAccount

from trainyard.content.cid import Cid, Codec
from trainyard.content.names import ContentPath
from trainyard.engine.evidence import TRACE, TraceList
from trainyard.protocol.commitments import Claim
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from trainyard.protocol.results import Result
from trainyard.protocol.trace import Trace
from worker_agent.actions import Action, Send
from worker_agent.agent import Agent
from worker_agent.cheating.moves import bend
from worker_agent.cheating.plan import Cheat, Plan
from worker_agent.settings import Home, Settings
from worker_agent.situation import Situation
from worker_agent.working import Worksite


class CheatingSite(Worksite):
    # What it does wrong depends on what it is asked for.
    stands_by = False
    work_module, runner_module = "worker_agent.cheating.work", "worker_agent.cheating.runner"


class CheatingAgent(Agent):
    worksite = CheatingSite

    def __init__(
        self, home: Home, settings: Settings, account: LocalAccount, *, plan: Plan
    ) -> None:
        # Nobody looks for its own fraud before it signs.
        policy = settings.policy.model_copy(update={"self_audits": 0})
        super().__init__(home, settings.model_copy(update={"policy": policy}), account)
        self._plan = plan
        plan.write(home.folder)

    def decide(self, situation: Situation) -> list[Action]:
        actions = bend(self._plan.cheat, situation, super().decide(situation))
        if self._plan.cheat is Cheat.FALSE_CHALLENGE:
            for number, task in situation.book.tasks.items():
                actions += self._accusations(situation, number, task)
        return actions

    def _accusations(self, s: Situation, number: int, task: Task) -> list[Action]:
        """Accuse the first segment of a task, whatever it is."""
        is_open = task.state is TaskState.WINDOW and s.now < task.deadline
        claim = task.slots[task.lead].claim
        allowed = s.policy.allow_requesters
        is_ours = not allowed or task.requester in allowed
        if not is_open or claim is None or task.disputes or not is_ours:
            return []
        trace = self._shown(task, claim)
        if trace is None:
            return []
        bond = s.book.params[task.params_id].seat_bond
        if s.book.account(s.me).credit < bond:
            return [Send(f"{number}/bond-to-accuse", s.calls.deposit(bond, value=bond))]
        proof = trace.proof_after(0)
        call = s.calls.challenge(number, 0, claim, trace.after(0), proof)
        return [Send(f"{number}/accuse", call, task.deadline)]

    def _shown(self, task: Task, claim: Claim) -> Trace | None:
        """The trace behind a claim, once the workers show it."""
        try:
            data = self._content.fetcher.get(Cid(Codec.RAW, claim.result)).block
            result = Result.parse(data, manifest=task.terms.manifest, root=claim.root)
            path = ContentPath.parse(result.run).child(TRACE)
            found = TraceList.model_validate_json(b"".join(self._content.cat(path)))
        except TrainyardError:
            return None
        return Trace([bytes.fromhex(state) for state in found.states])
