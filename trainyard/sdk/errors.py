"""What can go wrong between a model and its trained weights."""

from trainyard.protocol.errors import PermanentError, TrainyardError


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


class DetachedError(TrainyardError):
    """Ctrl-C: the task goes on without this process; the text says how to come back."""

    def __init__(self, task: int) -> None:
        super().__init__(
            f"task {task} goes on without this process; come back with trainyard.attach({task}), "
            f"look at it with 'trainyard watch {task}'"
        )
        self.task = task


class WrongReceiptError(PermanentError):
    """A file that is no receipt."""
