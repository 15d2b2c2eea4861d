"""What strangers are told of errors that come from below."""

from trainyard.content.errors import CorruptBlockError, SourceError, StoreError, UnavailableError
from trainyard.protocol.errors import TrainyardError


def told(error: TrainyardError) -> str:
    """What it says, without where this server keeps content and whom it asks for more."""
    match error:
        case UnavailableError() if error.corrupt:
            return f"cannot get {error.cid}: what was sent for it has another hash"
        case UnavailableError():
            return f"cannot get {error.cid}: nobody who was asked has it"
        case CorruptBlockError():
            return f"what was sent for {error.cid} has another hash"
        case SourceError():
            return "who was asked for content gave no usable answer"
        case StoreError():
            return "this server cannot read or write content now"
    return str(error)
