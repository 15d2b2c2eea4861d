"""How a command ends when something is wrong: one line on stderr, and an exit code."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from trainyard.cli.output import printable, silence_stdout
from trainyard.protocol.errors import PermanentError, TrainyardError


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    WRONG_USE = 2
    UNAVAILABLE = 3
    CORRUPT = 4
    # Nothing is wrong, and not all is proven: bits of another class of machine, or a receipt that
    # nobody signed.
    UNPROVEN = 5
    INTERRUPTED = 130
    # As a shell counts a program that SIGPIPE ended.
    PIPE_CLOSED = 141


class WrongUseError(PermanentError):
    """Arguments that do not go together, or name nothing."""


EXIT_CODES_HELP = (
    "Exit codes: 0 done; 1 failed; 2 wrong use, such as a bad CID, path or argument; "
    "3 not found or unavailable; 4 corrupt content; 5 an audit that proves nothing; "
    "130 interrupted."
)


def exit_code(error: TrainyardError) -> ExitCode:
    """The exit code that tells a script what kind of error this is."""
    # Imported here: only who fails pays for it.
    from trainyard.content import errors as content
    from trainyard.datasets.errors import CorruptRecordError, DatasetError
    from trainyard.engine.errors import CorruptDataError, DataError, OtherRunError, WrongAuditError
    from trainyard.protocol.manifest.errors import ManifestError

    match error:
        case content.UnavailableError():
            return ExitCode.CORRUPT if error.corrupt else ExitCode.UNAVAILABLE
        case (
            content.CorruptBlockError()
            | content.MalformedBlockError()
            | CorruptRecordError()
            | CorruptDataError()
            | OtherRunError()
        ):
            return ExitCode.CORRUPT
        case content.NotFoundError() | content.BlockNotFoundError() | content.SourceError():
            return ExitCode.UNAVAILABLE
        case (
            WrongUseError()
            | content.InvalidCidError()
            | content.InvalidPathError()
            | content.NotADirectoryContentError()
            | content.IsADirectoryContentError()
            | DatasetError()
            | DataError()
            | ManifestError()
            | WrongAuditError()
        ):
            return ExitCode.WRONG_USE
    return ExitCode.FAILED


def fix_for(error: TrainyardError) -> str:
    """What to do about it, where the error's own text leaves that open."""
    from trainyard.content import errors as content

    match error:
        case content.UnavailableError() if error.corrupt:
            return "; 'trainyard content verify --gateway ADDRESS' replaces it from there"
        case content.UnavailableError():
            return "; name somebody who has it with --gateway ADDRESS"
        case content.NotFoundError():
            return "; 'trainyard content ls' and 'pin --list' show what is there"
        case content.IsADirectoryContentError():
            return "; list it with 'ls', or write it to disk with 'get'"
        case content.InvalidCidError():
            return "; a CID begins with bafy, bafk or Qm"
    return ""


@contextmanager
def telling_failures(as_json: bool = False) -> Iterator[None]:
    """Turn what goes wrong inside into a line and an exit code; no user sees a traceback."""
    try:
        yield
    except TrainyardError as error:
        said = "; ".join((str(error) + fix_for(error), *getattr(error, "__notes__", ())))
        raise _told(said, exit_code(error), as_json) from error
    except BrokenPipeError as error:
        silence_stdout()
        raise typer.Exit(ExitCode.PIPE_CLOSED) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        said = f"{where}{error.strerror or error}; check the path and its permissions"
        said = "; ".join((said, *getattr(error, "__notes__", ())))
        raise _told(said, ExitCode.FAILED, as_json) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(ExitCode.INTERRUPTED) from error


def _told(message: str, code: ExitCode, as_json: bool) -> typer.Exit:
    if as_json:
        print(json.dumps({"error": message, "exit_code": int(code)}), flush=True)
    print(f"trainyard: {printable(message)}", file=sys.stderr)
    return typer.Exit(code)
