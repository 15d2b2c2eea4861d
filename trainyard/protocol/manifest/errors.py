"""Why a manifest is refused: where, what, and what to write instead."""

from trainyard.protocol.errors import PermanentError


class ManifestError(PermanentError, ValueError):
    """A manifest that no worker should run. `path` is the place in the JSON document."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'manifest'}: {reason}")
        self.path = path
        self.reason = reason


class MisfitError(ValueError):
    """Parts that are right by themselves and wrong together, at `path` below the validator."""

    def __init__(self, reason: str, *path: str | int) -> None:
        super().__init__(reason)
        self.path = path
