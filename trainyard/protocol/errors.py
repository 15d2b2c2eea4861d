"""The one tree of errors: what may be tried again, and what may not."""


class TrainyardError(Exception):
    """Anything that Trainyard itself raises for its user."""


class TransientError(TrainyardError):
    """May go well on another try, or with another peer."""


class PermanentError(TrainyardError):
    """Will fail the same way again; the message says what to change."""
