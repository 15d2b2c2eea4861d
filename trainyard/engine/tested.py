"""What the trained model made of the test records, kept with the run to be shown again."""

from pathlib import Path

from pydantic import ValidationError

from trainyard.engine.journal import Measured, write_whole

TESTED = "tested.json"


def keep_tested(folder: Path, tested: Measured) -> None:
    write_whole(folder / TESTED, tested.model_dump_json().encode())


def read_tested(folder: Path) -> Measured | None:
    """None for a run that was not tested; what cannot be read is found by testing again."""
    try:
        return Measured.model_validate_json((folder / TESTED).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
