"""Writes files that are made from the contracts, or tells which of them are stale."""

import sys
from argparse import ArgumentParser
from pathlib import Path


def write_or_check(folder: Path, files: dict[str, str], *, remake: str) -> None:
    """Make `folder` hold exactly `files`; with `--check` on the command line only compare.

    `remake` is the command that a reader of the error message should run.
    """
    parser = ArgumentParser()
    parser.add_argument("--check", action="store_true", help="write nothing, fail if stale")
    if parser.parse_args().check:
        stale = stale_files(folder, files)
        if stale:
            sys.exit(f"{folder.name}/ is stale ({', '.join(stale)}): run '{remake}' and commit it")
        print(f"{folder.name}/ matches the contracts ({len(files)} files)")
        return
    write_files(folder, files)
    print(f"wrote {len(files)} files to {folder.name}/")


def stale_files(folder: Path, files: dict[str, str]) -> list[str]:
    """Names of files that differ, are missing, or should no longer be there."""
    present = {path.relative_to(folder).as_posix(): path for path in _files_in(folder)}
    differing = {
        name
        for name, text in files.items()
        if name not in present or present[name].read_text() != text
    }
    return sorted(differing | (present.keys() - files.keys()))


def write_files(folder: Path, files: dict[str, str]) -> None:
    for path in _files_in(folder):
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
