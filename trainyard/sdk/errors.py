"""What can go wrong between a model and its trained weights."""

from collections.abc import Mapping, Sequence

from trainyard.protocol.errors import PermanentError, TrainyardError

_PREDICT_THEM = "predict these by themselves, and put the answers where their records are"


class NoMarketError(PermanentError):
    """No market is known by that name, or what is said of it is not enough."""


class NoAccountError(PermanentError):
    """Something costs money, and nobody's key is there to pay for it."""


class NoTensorFlowError(PermanentError, ImportError):
    """Models are Keras', and this installation has none."""

    def __init__(self, why: ImportError) -> None:
        super().__init__(
            f"models need TensorFlow, which cannot be imported here ({why}): install it with "
            "pip install 'trainyard[tf]', or pip install '.[tf]' in a clone"
        )


class RefusedError(PermanentError, ValueError):
    """Something that cannot be said in a manifest. No money has moved; the text says what to do."""


class TooDearError(PermanentError):
    """It would cost more than the budget. No money has moved."""


class TaskFailedError(PermanentError):
    """A task that ended without a result; the text says why, and where the money is."""

    def __init__(self, task: int, why: str) -> None:
        super().__init__(f"task {task} {why}")
        self.task = task


class SlicesFailedError(PermanentError):
    """Some slices of a prediction ended without a result; the text says which, and why.

    `tasks` are the tasks of all slices in the order of the records, and `failed` those without.
    """

    def __init__(self, tasks: Sequence[int], failed: Mapping[int, str]) -> None:
        settled = [task for task in tasks if task not in failed]
        kept = f"; settled are {', '.join(map(str, settled))}" if settled else ""
        super().__init__(
            f"{'; '.join(failed.values())}{kept}: predict again, or with attempts=2, which posts "
            "what fails once more"
        )
        self.tasks, self.failed = tuple(tasks), tuple(failed)


class DetachedError(TrainyardError):
    """Ctrl-C: the task goes on without this process; the text says how to come back.

    `unposted` are the slices of a prediction, by their records, that have no task.
    """

    def __init__(
        self, task: int, *others: int, predicts: bool = False, unposted: Sequence[str] = ()
    ) -> None:
        numbers = ", ".join(map(str, (task, *others)))
        what = f"tasks {numbers} go" if others else f"task {task} goes"
        back = "predictions" if predicts else "attach"
        lacking = f"; never posted were {', '.join(unposted)}: {_PREDICT_THEM}" if unposted else ""
        super().__init__(
            f"{what} on without this process; come back with trainyard.{back}({numbers}), "
            f"look at it with 'trainyard watch {task}'{lacking}"
        )
        self.task, self.tasks, self.unposted = task, (task, *others), tuple(unposted)


class NotPostedError(TrainyardError):
    """Somebody went away before anything was posted. No money has moved."""


class WrongReceiptError(PermanentError):
    """A file that is no receipt."""
