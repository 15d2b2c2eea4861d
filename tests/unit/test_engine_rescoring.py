"""Which claimed score a worker can stand by, who may be of another class than the leader."""

import pytest

from trainyard.engine.journal import Measured
from trainyard.engine.rescoring import ScoreAudit
from trainyard.engine.scoring import Score

LOSS, ACCURACY, EXAMPLES = 0.5, 0.9, 10_000


def score(loss: float = LOSS, accuracy: float = ACCURACY, state: str = "ab" * 32) -> Score:
    figures = Measured(loss=loss, metrics={"accuracy": accuracy}, examples=EXAMPLES)
    return Score(state=state, records="test", figures=figures)


@pytest.mark.parametrize(
    ("found", "is_credible"),
    [
        (score(), True),
        (score(loss=LOSS * 1.0001), True),
        (score(accuracy=ACCURACY + 1 / EXAMPLES), True),
        (score(loss=LOSS * 1.1), False),
        (score(accuracy=ACCURACY - 0.05), False),
        (score(state="cd" * 32), False),
        (None, False),
    ],
    ids=["equal", "another class", "one example", "loss", "accuracy", "another state", "nonsense"],
)
def test_what_one_can_stand_by(found: Score | None, is_credible: bool) -> None:
    audit = ScoreAudit(
        manifest="", root="", claimed=score(), found=found, seconds=1.0, shares=("accuracy",)
    )

    assert audit.is_credible is is_credible
