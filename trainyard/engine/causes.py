"""What an exception of TensorFlow comes down to, for people. TensorFlow is not imported here."""

import re

# A lost peer is seen as one of these when vectors are handed round.
_PEER_ERRORS = ("UnavailableError", "AbortedError", "CancelledError", "DeadlineExceededError")
# These come again, however often a worker is started: of the data, the model, or the machine.
_LASTING_ERRORS = ("InvalidArgumentError", "ResourceExhaustedError", "UnimplementedError")
# Where in a graph something happened, which is before and behind what happened.
_PLACES = (
    "Graph execution error",
    "Detected at node",
    "<stack traces",
    "File ",
    "[[",
    "Exception encountered when calling",
)
# Keras prints what happened in bold.
_BOLD = re.compile(r"\x1b\[\d*m")
_SHOWN = 300


def is_lost_peer(error: Exception) -> bool:
    return type(error).__name__ in _PEER_ERRORS


def lasting_cause(error: Exception) -> str | None:
    """Why a worker can never go on; None if it may, once it is started anew."""
    if isinstance(error, MemoryError):
        return "out of memory: take a smaller batch or model"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return cause(error) if type(error).__name__ in _LASTING_ERRORS else None


def cause(error: Exception) -> str:
    """The kind of an error, and the first line of it that says what happened."""
    lines = [line.strip() for line in _BOLD.sub("", str(error)).splitlines()]
    said = [line for line in lines if line and not line.startswith(_PLACES)]
    return f"{type(error).__name__}: {said[0] if said else str(error)}"[:_SHOWN]
