"""Rounds: each part and each merge is a function of its inputs, bit for bit."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.engine.nets import manifest_of, write_data
from trainyard.engine import runtime
from trainyard.engine.counting import Counters, Stop
from trainyard.engine.data import open_folder
from trainyard.engine.errors import StateError
from trainyard.engine.leaves import Absence, Absences, absence_of, absent_in, delta_of
from trainyard.engine.merging import deltas_sent
from trainyard.engine.state import State, differing, is_of
from trainyard.protocol.manifest import Local, Manifest, Merge

runtime.start(threads=1)

from trainyard.engine.program import build  # noqa: E402
from trainyard.engine.rounds import RoundsTraining  # noqa: E402
from trainyard.engine.training import Material  # noqa: E402

Open = Callable[..., RoundsTraining]


@pytest.fixture(scope="module")
def open_rounds(tmp_path_factory: pytest.TempPathFactory) -> Open:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)

    opened: dict[tuple[bytes, bool], RoundsTraining] = {}

    def open_it(manifest: Manifest, *, stranger: bool = False) -> RoundsTraining:
        """Of each manifest one, and one of a stranger: TensorFlow takes long to build them."""
        key = manifest.digest, stranger
        if key not in opened:
            data = open_folder(manifest.data.train, folder)
            opened[key] = RoundsTraining(manifest, build(manifest), Material(data))
        return opened[key]

    return open_it


def rounds_of(
    net: str = "mlp",
    workers: int = 2,
    *,
    local_steps: int = 2,
    inner: str = "fresh",
    compression: str = "none",
    outer: dict[str, float] | None = None,
    **changes: Any,
) -> Manifest:
    """Three rounds, the last of which is a short one."""
    return manifest_of(
        net,
        **{
            "mode": "rounds",
            "workers": workers,
            "until": {"steps": 3 * local_steps - 1},
            "steps_per_segment": local_steps,
            "rounds": {
                "local_steps": local_steps,
                "inner": inner,
                "compression": compression,
                "outer": outer or {},
            },
            **changes,
        },
    )


@dataclass
class Run:
    """All states of a run, and the deltas between them."""

    states: list[State]
    deltas: dict[bytes, State] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)

    @property
    def hashes(self) -> list[str]:
        return [state.hash.hex() for state in self.states]


Forge = Callable[[State, State], tuple[State, State]]


def run_all(
    training: RoundsTraining,
    *,
    absences: Mapping[int, Absence] | None = None,
    others: Mapping[int, RoundsTraining] | None = None,
    forged: Mapping[int, Forge] | None = None,
) -> Run:
    """All segments in order.

    Those in `absences` are of workers that were not there, those in `others` are computed by
    somebody else, and those in `forged` are changed, leaf and delta, before anybody sees them.
    """
    plan = training.plan
    run = Run([training.start()])
    for segment in range(plan.segments):
        part = plan.part(segment)
        computing = (others or {}).get(segment, training)
        globe, *given = inputs(training, run, segment)
        if isinstance(part, Merge):
            sent = deltas_sent(given, run.deltas)
            run.states.append(computing.merge(part.round, globe, sent))
            continue
        if absences and segment in absences:
            run.states.append(absent_in(plan, segment, absences[segment]))
            continue
        found = computing.local(part, globe, given[0] if given else None)
        state, delta = found.state, found.delta
        if forged and delta is not None and segment in forged:
            state, delta = forged[segment](state, delta)
        run.states.append(state)
        if delta is not None:
            run.deltas[delta.hash] = delta
        if found.figures is not None:
            run.losses.append(found.figures.loss)
    return run


def inputs(training: RoundsTraining, run: Run, segment: int) -> tuple[State, ...]:
    """As they come from somebody else: by their bytes."""
    numbers = training.plan.inputs_of(segment, Absences(training.plan, run.hashes))
    return tuple(State.decode(b"".join(run.states[one].parts()), "sent") for one in numbers)


def wrong_segments(stranger: RoundsTraining, run: Run) -> list[int]:
    """The segments that a stranger finds otherwise, looking at them in no order."""
    absences = Absences(stranger.plan, run.hashes)
    wrong = []
    for segment in sorted(range(stranger.plan.segments), key=lambda one: one * 5 % 7):
        given = inputs(stranger, run, segment)
        told = absences.why(segment + 1)
        found = stranger.recompute(segment, given, run.deltas, told)
        if differing(found, run.states[segment + 1]):
            wrong.append(segment)
    return sorted(wrong)


@pytest.mark.parametrize(
    ("net", "workers", "inner", "compression"),
    [
        ("mlp", 2, "kept", "none"),
        ("mlp", 3, "kept", "float16"),
        ("mlp", 2, "fresh", "int8"),
        ("batch_norm", 3, "fresh", "none"),
        ("batch_norm", 2, "fresh", "float16"),
        ("batch_norm", 3, "kept", "int8"),
    ],
)
def test_each_segment_is_found_again_by_a_stranger(
    open_rounds: Open, net: str, workers: int, inner: str, compression: str
) -> None:
    manifest = rounds_of(net, workers, inner=inner, compression=compression)
    training = open_rounds(manifest)

    run = run_all(training)

    assert wrong_segments(open_rounds(manifest, stranger=True), run) == []
    assert len(set(run.hashes)) == training.plan.segments + 1
    assert [Counters.of(state).step for state in run.states[:: workers + 1]] == [0, 2, 4, 5]


@pytest.mark.parametrize("inner", ["fresh", "kept"])
def test_states_hold_what_a_round_depends_on(open_rounds: Open, inner: str) -> None:
    run = run_all(open_rounds(rounds_of("batch_norm", inner=inner)))

    globe, leaf = run.states[3].tensors, run.states[1].tensors
    counters = ["run/best", "run/step", "run/stop", "run/waited"]
    assert [name for name in globe if not name.startswith("weights/")] == [
        "outer/c1/kernel",
        "outer/norm/beta",
        "outer/norm/gamma",
        "outer/out/bias",
        "outer/out/kernel",
        *counters,
    ]
    assert any(name.startswith("optimizer/") for name in leaf) == (inner == "kept")
    assert {name for name in leaf if not name.startswith("optimizer/")} == {
        "weights/drop/seed_0",
        "run/delta",
        *counters,
    }
    sent = run.deltas[delta_of(run.states[1]) or b""]
    assert [name for name in sent.tensors if name.startswith("moving/")] == [
        "moving/norm/moving_mean",
        "moving/norm/moving_variance",
    ]


def test_rounds_learn(open_rounds: Open) -> None:
    manifest = rounds_of("mlp", local_steps=10, until={"steps": 80}, compression="int8")

    losses = run_all(open_rounds(manifest)).losses

    assert losses[-1] < losses[0] / 2


def test_rounds_are_validated_when_an_epoch_ends(open_rounds: Open) -> None:
    """An epoch of 72 records is three steps: the second round ends it, the third does not."""
    training = open_rounds(rounds_of(validation={"split": 0.25}))
    run = run_all(training)

    found = [training.validate(number, run.states[3 * number + 3]) for number in range(3)]

    assert [[(one.epoch, one.step) for one in tried] for tried in found] == [[], [(0, 3)], []]
    assert found[1][0].figures.examples == 24


def test_compressed_deltas_are_smaller(open_rounds: Open) -> None:
    sizes = []
    for compression in ("none", "float16", "int8"):
        training = open_rounds(rounds_of(compression=compression, until={"steps": 1}))
        part = training.local(Local(0, 0), training.start(), None)
        assert part.delta is not None
        sizes.append(part.delta.size)

    whole, half, quarter = sizes
    assert half < 0.55 * whole
    assert quarter < 0.3 * whole


class TestCheats:
    """Each is found at the segment, and so at the worker, that it was done in, and nowhere else."""

    # Of three workers: the second one in the second round, and the merge of that round.
    PART, MERGE = 5, 7

    def test_tampered_delta(self, open_rounds: Open) -> None:
        manifest = rounds_of(workers=3)

        def forge(leaf: State, delta: State) -> tuple[State, State]:
            kernel = delta.tensors["delta/out/kernel"] * np.float32(1.01)
            sent = State({**delta.tensors, "delta/out/kernel": kernel})
            digest = np.frombuffer(sent.hash, np.uint8)
            return State({**leaf.tensors, "run/delta": digest}), sent

        run = run_all(open_rounds(manifest), forged={self.PART: forge})

        assert wrong_segments(open_rounds(manifest, stranger=True), run) == [self.PART]

    def test_delta_that_is_not_the_one_named(self, open_rounds: Open) -> None:
        run = run_all(training := open_rounds(rounds_of(workers=3)))
        del run.deltas[delta_of(run.states[self.PART + 1]) or b""]

        with pytest.raises(StateError, match=r"the delta \w+ of worker 1 is missing"):
            training.recompute(self.MERGE, inputs(training, run, self.MERGE), run.deltas)

    @pytest.mark.parametrize(
        ("cheat", "where"),
        [
            ({"seed": 12}, PART),
            ({"outer": {"learning_rate": 0.70001}}, MERGE),
            ({"outer": {"momentum": 0.8}}, MERGE),
        ],
        ids=["another order", "outer rate", "outer momentum"],
    )
    def test_computed_otherwise(self, open_rounds: Open, cheat: dict[str, Any], where: int) -> None:
        training = open_rounds(rounds_of(workers=3))
        other = open_rounds(rounds_of(workers=3, **cheat))

        run = run_all(training, others={where: other})

        assert wrong_segments(training, run) == [where]

    def test_another_rate_is_none_of_the_run(self, open_rounds: Open) -> None:
        """Or whoever brought it in would be right ever after: it is part of what a worker keeps."""
        training = open_rounds(rounds_of(workers=3, inner="kept"))
        rate = {"type": "Adam", "learning_rate": 0.0100001}
        other = open_rounds(rounds_of(workers=3, inner="kept", optimizer=rate))

        with pytest.raises(StateError, match="and the manifest says"):
            run_all(training, others={1: other})

    def test_merge_without_a_worker_that_was_there(self, open_rounds: Open) -> None:
        training = open_rounds(rounds_of(workers=3))
        run = run_all(training)
        globe, *leaves = inputs(training, run, self.MERGE)
        sent = deltas_sent(leaves, run.deltas)
        del sent[1]

        assert training.merge(1, globe, sent) != run.states[self.MERGE + 1]

    @pytest.mark.parametrize("there", [0, 1])
    def test_round_that_too_few_were_in(self, open_rounds: Open, there: int) -> None:
        """Who was away is told and not computed: it must neither end a run nor decide it."""
        training = open_rounds(rounds_of(workers=3))
        run = run_all(training)
        globe, *leaves = inputs(training, run, self.MERGE)
        for slot in range(there, 3):
            segment = training.plan.segment(Local(1, slot))
            leaves[slot] = absent_in(training.plan, segment, Absence.AWAY)

        with pytest.raises(StateError, match=f"{there} workers were in this round, and 2 make one"):
            training.recompute(self.MERGE, (globe, *leaves), run.deltas)

    def test_who_diverged_was_there(self, open_rounds: Open) -> None:
        training = open_rounds(rounds_of(workers=3))
        absences = {4: Absence.DIVERGED, 5: Absence.AWAY}
        run = run_all(training, absences=absences)

        found = training.recompute(self.MERGE, inputs(training, run, self.MERGE), run.deltas)

        assert found == run.states[self.MERGE + 1]

    def test_made_up_divergence(self, open_rounds: Open) -> None:
        """Whoever says that its part came to no number can be proven wrong."""
        manifest = rounds_of(workers=3)

        run = run_all(open_rounds(manifest), absences={self.PART: Absence.DIVERGED})

        assert wrong_segments(open_rounds(manifest, stranger=True), run) == [self.PART]


class TestAbsences:
    def test_round_goes_on_without_some(self, open_rounds: Open) -> None:
        manifest = rounds_of("batch_norm", workers=3, inner="kept")
        absences = {0: Absence.LATE, 5: Absence.AWAY, 10: Absence.AWAY}
        training = open_rounds(manifest)

        run = run_all(training, absences=absences)

        assert {
            number - 1: why
            for number, state in enumerate(run.states)
            if (why := absence_of(state)) is not None
        } == absences
        assert training.plan.inputs_of(9, Absences(training.plan, run.hashes)) == (8, 2)
        assert wrong_segments(open_rounds(manifest, stranger=True), run) == []

    def test_all_diverged(self, open_rounds: Open) -> None:
        """The trace has its length; what follows changes nothing."""
        optimizer = {"type": "SGD", "learning_rate": 1e30}
        manifest = rounds_of("batch_norm", optimizer=optimizer, until={"steps": 8})

        run = run_all(training := open_rounds(manifest))

        ends = [Counters.of(state).stop for state in run.states[::3]]
        assert ends[0] is Stop.NO
        assert ends[-1] is Stop.DIVERGED
        last = run.states[-1]
        assert all(
            np.isfinite(tensor).all() for name, tensor in last.tensors.items() if "run/" not in name
        )
        assert absence_of(run.states[-2]) is Absence.OVER
        assert wrong_segments(training, run) == []

    def test_one_diverged(self, open_rounds: Open) -> None:
        """The others go on; that it did is found by whoever computes its part."""
        manifest = rounds_of("mlp")
        broken = {"type": "SGD", "learning_rate": 1e30}
        other = open_rounds(rounds_of("mlp", optimizer=broken))
        training = open_rounds(manifest)
        start = training.start()

        part = other.local(Local(0, 1), start, None)

        assert (part.absence, part.delta) == (Absence.DIVERGED, None)
        assert other.local(Local(0, 1), start, None).state == part.state
        good = training.local(Local(0, 0), start, None)
        assert good.delta is not None
        merged = training.merge(
            0, start, deltas_sent([good.state, part.state], {good.delta.hash: good.delta})
        )
        assert Counters.of(merged).stop is Stop.NO


def test_layers_that_are_not_trained_are_neither_sent_nor_kept(open_rounds: Open) -> None:
    document = json.loads(rounds_of("batch_norm").canonical)
    for name in ("c1", "norm"):
        [layer] = [one for one in document["model"]["layers"] if one["name"] == name]
        layer["trainable"] = False
    training = open_rounds(Manifest.of(document))

    run = run_all(training)

    frozen = [name for name in run.states[0].tensors if is_of(name, ["c1", "norm"])]
    assert len(frozen) == 5
    assert not any(
        "c1" in name or "norm" in name for one in run.deltas.values() for name in one.tensors
    )
    for number, state in enumerate(run.states):
        if number % 3:
            assert not state.tensors.keys() & set(frozen)
        else:
            assert all(
                state.tensors[name].tobytes() == run.states[0].tensors[name].tobytes()
                for name in frozen
            )
    assert wrong_segments(training, run) == []


class TestSchedule:
    """By whole steps of the run, whoever was there for them."""

    FALLING: ClassVar = {
        "type": "PiecewiseConstantDecay",
        # Of the last step of a rate: it falls after the first round.
        "boundaries": [1],
        "values": [0.1, 0.001],
    }

    @pytest.mark.parametrize("kind", ["SGD", "Adam"])
    def test_worker_that_comes_late_has_the_rate_of_the_others(
        self, open_rounds: Open, kind: str
    ) -> None:
        """And all else of its optimiser is as at the start, as if that rate were the only one."""
        falling = open_rounds(rounds_of(optimizer={"type": kind, "learning_rate": self.FALLING}))
        low = open_rounds(rounds_of(optimizer={"type": kind, "learning_rate": 0.001}))
        globe = run_all(falling, absences={1: Absence.AWAY}).states[3]

        late, one, early = (
            training.local(Local(number, 1), state, None).delta
            for training, number, state in (
                (falling, 1, globe),
                (low, 1, globe),
                (falling, 0, falling.start()),
            )
        )

        assert late is not None
        assert late == one
        assert early is not None
        assert self.length(early) > 10 * self.length(late)

    def test_worker_that_was_away_goes_on_at_the_step_of_the_run(self, open_rounds: Open) -> None:
        optimizer = {"type": "SGD", "learning_rate": self.FALLING}
        manifest = rounds_of(inner="kept", optimizer=optimizer)
        training = open_rounds(manifest)

        run = run_all(training, absences={4: Absence.AWAY})

        last = run.states[8]
        [count] = [one for name, one in last.tensors.items() if name.endswith(".iteration")]
        # Its own: two steps of the first round and the one of the last.
        assert int(count) == 3
        assert wrong_segments(open_rounds(manifest, stranger=True), run) == []

    @staticmethod
    def length(delta: State) -> float:
        return float(np.sqrt(sum(np.sum(np.square(one)) for one in delta.tensors.values())))


def test_state_of_another_round_is_refused(open_rounds: Open) -> None:
    training = open_rounds(rounds_of())

    with pytest.raises(StateError, match=r"round 1 begins with step 2, .* before step 0"):
        training.local(Local(1, 0), training.start(), None)
