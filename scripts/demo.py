"""Two tasks on a fresh chain, told step by step: an honest one, and a cheat. Run by `make demo`."""

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from brownie import accounts, chain, interface, web3
from eth_utils.crypto import keccak

from scripts.demo_cast import ENV_CLASS, ETHER, POOL, Cast, Job, Person
from scripts.demo_story import Call, Story, eth, lasting
from scripts.deploy import deploy
from scripts.deploy_settings import read_deploy_settings
from trainyard.protocol.commitments import Claim, Market
from trainyard.protocol.market import OWN_PANEL, Params, Policy, Terms
from trainyard.protocol.trace import Trace

CREDIT = 10 * ETHER
REWARD = STAKE = ETHER
FEE = ETHER // 100
SEGMENTS = 16


class Demo:
    def __init__(self, market: Any, params: Params, cast: Cast) -> None:
        self.market, self.params, self.cast = market, params, cast
        self.protocol = Market(web3.eth.chain_id, market.address)
        self.story = Story(market, cast)

    # The acts

    def prologue(self) -> None:
        story, cast = self.story, self.cast
        bond = 5 * self.params.seat_bond
        for person in cast.everyone:
            self.market.deposit(CREDIT, {"from": person.account, "value": CREDIT}, silent=True)
        for person in (*cast.trainers, *cast.pool):
            own_bond = bond if person in cast.pool else 0
            self._call("register", person, keccak(text=person.name), ENV_CLASS, own_bond)
        story.console.print()
        story.console.rule("[bold]Trainyard: a market for verified training", style="cyan")
        story.say(
            "Training is a chain of states. Each link, a segment, can be computed again by anyone "
            "from the state before it. So nobody has to be trusted: before it pays, the market "
            "lets drawn strangers recompute a few segments, blind."
        )
        story.say(
            f"A market was deployed at {self.market.address}. Everyone has put {eth(CREDIT)} "
            "into it. Rita wants models trained. Walt, Wanda and Mallory train for money. "
            f"{', '.join(POOL[:-1])} and {POOL[-1]} have put down {eth(bond)} each as a bond, so "
            "that they may be drawn as auditors and referees. Sam passes by: what is due, anyone "
            "may do."
        )

    def honest_task(self) -> None:
        story, cast = self.story, self.cast
        walt, wanda = cast.workers
        job = Job.named("an honest task", SEGMENTS)
        story.act(
            "Act one: an honest task",
            f"Rita offers {eth(REWARD)} to each of two workers, who train one model together "
            f"in {SEGMENTS} segments. She pays for two audits.",
        )
        task = self._post(job, slots=2, audits=2)
        self._join(task, walt, "one more worker joins")
        self._join(task, wanda, "Walt and Wanda train, and submit what they have")
        trace = job.train()
        claim = Claim.of(keccak(text="the trained model"), trace.root)
        self._submit(task, walt, claim, "Wanda submits: the same, or a claim of her own")
        self._submit(task, wanda, claim, "anyone draws the auditors, by the hash of a later block")
        seats = self._draw(task)
        found = {seat: job.recompute(trace, segment) for seat, (_, segment) in seats.items()}
        self._audit(task, walt, claim, trace, seats, found)
        self._pass_window(task)
        call = self._call("settle", cast.passer_by, task)
        story.step(
            cast.passer_by,
            "settles the task, since its time has come",
            call,
            task=task,
            note="Stakes and rewards are credited to the workers, the fees to the auditors.",
        )
        rows = [
            (who, segment, found[seat], trace.after(segment))
            for seat, (who, segment) in seats.items()
        ]
        story.verdicts("What the auditors found", rows)
        auditors = {who.name: "auditor" for who, _ in seats.values()}
        story.balances({"Rita": "requester", "Walt": "worker", "Wanda": "worker", **auditors})
        story.gas()

    def dishonest_task(self) -> None:
        story, cast = self.story, self.cast
        mallory = cast.cheat
        job = Job.named("a cheated task", SEGMENTS)
        story.act(
            "Act two: a cheat",
            "Rita wants another model, from one worker and with one audit. Mallory takes the task, "
            "and saves herself the work: she makes her states up.",
        )
        task = self._post(job, slots=1, audits=1)
        self._join(task, mallory, "Mallory trains, or so Rita thinks")
        trace = job.make_up()
        claim = Claim.of(keccak(text="random weights"), trace.root)
        self._submit(task, mallory, claim, "anyone draws the auditor")
        seats = self._draw(task)
        ((auditor, segment),) = seats.values()
        found = {0: job.recompute(trace, segment)}
        self._audit(task, mallory, claim, trace, seats, found)
        rulings = self._hear(task, job, trace, segment)
        referees = {who.name: "referee" for who, *_ in rulings}
        story.verdicts(
            "What the auditor and the referees found",
            [
                (auditor, segment, found[0], trace.after(segment)),
                *rulings,
            ],
        )
        story.balances(
            {
                "Rita": "requester",
                "Mallory": "worker",
                auditor.name: "auditor",
                **referees,
                "burned": "nobody's",
            }
        )
        story.split(f"Who got Mallory's stake of {eth(STAKE)}", self._slashed(auditor, referees))
        story.gas()

    def epilogue(self) -> None:
        walt = self.cast.workers[0]
        credit = self.market.account(walt.address)["credit"]
        self.story.act("And then", "Credit is everyone's own: it can be withdrawn at any time.")
        call = self._call("withdraw", walt, walt.address, credit)
        held, owed = self.market.solvency()
        self.story.step(walt, f"takes his {eth(credit)} home", call)
        self.story.say(
            f"The market holds {eth(held)} and owes {eth(owed)}: to the last unit what "
            "is credited, bonded and burned."
        )
        self.story.console.print()

    # Steps

    def _post(self, job: Job, *, slots: int, audits: int) -> int:
        rita = self.cast.requester
        terms = Terms(
            manifest=job.manifest,
            env_class=ENV_CLASS,
            policy=Policy.AUDIT,
            slots=slots,
            quorum=(slots + 1) // 2,
            audits=audits,
            min_audits=audits,
            reward=REWARD,
            stake=STAKE,
            audit_fee=FEE,
            segments=job.segments,
        )
        call = self._call("post", rita, terms.as_tuple())
        task = int(self.market.taskCount())
        self.story.step(
            rita,
            "posts the task",
            call,
            task=task,
            note=f"{eth(terms.escrow)} of her credit are locked: rewards and audit fees.",
            then=f"workers join, {self._by(task, call)}",
        )
        return task

    def _join(self, task: int, worker: Person, then: str) -> None:
        call = self._call("join", worker, task, keccak(text=f"peer card of {worker}"), [])
        self.story.step(
            worker,
            f"joins with a stake of {eth(STAKE)}",
            call,
            task=task,
            then=f"{then}, {self._by(task, call)}",
        )

    def _submit(self, task: int, worker: Person, claim: Claim, then: str) -> None:
        slot = self._slot_of(task, worker)
        call = self._call("submit", worker, task, slot, claim.result, claim.root, [])
        self.story.step(
            worker,
            "submits the result and the root of the trace",
            call,
            task=task,
            note=f"One hash of 32 bytes stands for all {SEGMENTS} states: none can be changed now.",
            then=f"{then}, {self._by(task, call)}",
        )

    def _draw(self, task: int) -> dict[int, tuple[Person, int]]:
        """Draw the auditors: by seat, who sits on it and which segment it is about."""
        chain.mine(2)
        call = self._call("draw", self.cast.passer_by, task)
        seats = self._seats(task, OWN_PANEL, 0)
        duties = [f"segment {segment} to {who}" for who, segment in seats.values()]
        one = len(seats) == 1
        then = f"{seats[0][0]} recomputes it" if one else "they recompute their segments"
        self.story.step(
            self.cast.passer_by,
            f"draws the {'auditor' if one else 'auditors'}",
            call,
            task=task,
            note=f"Chance gives {' and '.join(duties)}. {eth(self.params.seat_bond)} of the "
            "bond stand behind each answer.",
            then=f"{then} and {'commits' if one else 'commit'}, {self._by(task, call)}",
        )
        return seats

    def _audit(
        self,
        task: int,
        worker: Person,
        claim: Claim,
        trace: Trace,
        seats: dict[int, tuple[Person, int]],
        found: dict[int, bytes],
    ) -> None:
        """Blind commitments, the workers' opening, and what the auditors had found."""
        for seat, (auditor, segment) in seats.items():
            commitment = self.protocol.answer_commitment(
                task, seat, auditor.address, auditor.salt, found[seat]
            )
            call = self._call("auditCommit", auditor, task, seat, commitment)
            last = seat == len(seats) - 1
            then = f"{worker} opens the drawn states" if last else "the other auditor commits"
            self.story.step(
                auditor,
                f"has recomputed segment {segment} and commits to the outcome",
                call,
                task=task,
                note="Blind: the claimed states are not public yet, so there is nothing to copy.",
                then=f"{then}, {self._by(task, call)}",
            )
        drawn = [segment for _, segment in seats.values()]
        states = [trace.after(segment) for segment in drawn]
        proofs = [trace.proof_after(segment) for segment in drawn]
        call = self._call("open", worker, task, claim.as_tuple(), states, proofs)
        self.story.step(
            worker,
            "opens the drawn states, with proofs against the root",
            call,
            task=task,
            then=f"answers are revealed; anyone may challenge any segment, {self._by(task, call)}",
        )
        for seat, (auditor, segment) in seats.items():
            call = self._call("auditReveal", auditor, task, seat, auditor.salt, found[seat])
            agrees = found[seat] == trace.after(segment)
            self.story.step(
                auditor,
                f"reveals: segment {segment} is {'as claimed' if agrees else 'NOT as claimed'}",
                call,
                task=task,
                note=""
                if agrees
                else "That is an accusation, with the bond of the seat behind it.",
                then=f"anyone may still challenge, {self._by(task, call)}"
                if agrees
                else "anyone draws three referees",
            )

    def _hear(
        self, task: int, job: Job, trace: Trace, segment: int
    ) -> list[tuple[Person, int, bytes, bytes]]:
        """Referees are drawn, answer blind as well, and the majority decides."""
        story, sam = self.story, self.cast.passer_by
        chain.mine(2)
        call = self._call("drawReferees", sam, task, segment)
        seats = self._seats(task, segment, 1)
        names = [who.name for who, _ in seats.values()]
        story.step(
            sam,
            f"draws the referees: {', '.join(names[:-1])} and {names[-1]}",
            call,
            task=task,
            note=f"They recompute segment {segment}, and nothing else.",
            then=f"they commit, {self._by(task, call, segment)}",
        )
        truth = job.recompute(trace, segment)
        for seat, (referee, _) in seats.items():
            commitment = self.protocol.answer_commitment(
                task, seat, referee.address, referee.salt, truth, segment=segment
            )
            call = self._call("refereeCommit", referee, task, segment, seat, commitment)
            last = seat == len(seats) - 1
            then = f"they reveal, {self._by(task, call, segment)}" if last else ""
            story.step(referee, "commits blind", call, task=task if last else None, then=then)
        for seat, (referee, _) in seats.items():
            call = self._call("refereeReveal", referee, task, segment, seat, referee.salt, truth)
            last = seat == len(seats) - 1
            then = "anyone asks for the ruling" if last else ""
            does = "reveals: the auditor is right"
            story.step(referee, does, call, task=task if last else None, then=then)
        call = self._call("resolve", sam, task, segment)
        story.step(
            sam,
            "asks for the ruling: three of three agree with the auditor",
            call,
            task=task,
            note="Rita gets her money back. Mallory loses her stake, and it shows in her record.",
        )
        return [(who, segment, truth, trace.after(segment)) for who, _ in seats.values()]

    def _slashed(self, auditor: Person, referees: dict[str, str]) -> list[tuple[str, str, int]]:
        story, params = self.story, self.params
        return [
            *((name, "fee for a right answer", story.change_of(name)) for name in referees),
            (
                auditor.name,
                f"{params.finder_bps / 100:.0f}% of the rest, for finding the cheat",
                story.change_of(auditor.name) - FEE,
            ),
            (
                "Rita",
                f"{params.requester_bps / 100:.0f}% of the rest, for her lost time",
                story.change_of("Rita") + FEE,
            ),
            ("burned", "so that accusing oneself costs money", story.change_of("burned")),
        ]

    def _pass_window(self, task: int) -> None:
        window = self.market.task(task)["deadline"] - chain.time()
        chain.mine(1, timestamp=self.market.task(task)["deadline"])
        self.story.say(f"    … {lasting(window)} pass, in which nobody challenges anything …")

    # The market

    def _call(self, function: str, by: Person, *arguments: Any) -> Call:
        tx = getattr(self.market, function)(*arguments, {"from": by.account}, silent=True)
        return Call(function, tx.gas_used, tx.timestamp)

    def _by(self, task: int, call: Call, segment: int | None = None) -> str:
        stage = self.market.task(task) if segment is None else self.market.dispute(task, segment)
        return f"within {lasting(stage['deadline'] - call.timestamp)}"

    def _slot_of(self, task: int, worker: Person) -> int:
        slots = range(self.market.task(task)["slots"])
        return next(i for i in slots if self.market.slot(task, i)["worker"] == worker.address)

    def _seats(self, task: int, segment: int, round_: int) -> dict[int, tuple[Person, int]]:
        count = self.market.panel(task, segment, round_)["seats"]
        seats = [self.market.seat(task, segment, round_, index) for index in range(count)]
        return {i: (self.cast.who(seat["member"]), seat["segment"]) for i, seat in enumerate(seats)}


def main() -> None:
    settings = read_deploy_settings({})
    # Brownie prints four lines per deployment.
    with redirect_stdout(StringIO()):
        record = deploy(settings, accounts[0])
    demo = Demo(interface.ITrainingMarket(record.address), settings.params, Cast.of(accounts))
    demo.prologue()
    demo.honest_task()
    demo.dishonest_task()
    demo.epilogue()
