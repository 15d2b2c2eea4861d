"""The `iptf` command: parses, calls the layer below, prints."""

import json
import os
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trainyard.content.content import Content
from trainyard.content.errors import InvalidPathError, IsADirectoryContentError
from trainyard.content.names import ContentPath
from trainyard.content.settings import ContentSettings, open_content
from trainyard.iptf.build import build_plugin
from trainyard.iptf.codes import Code, code_of
from trainyard.iptf.mfs import Mfs
from trainyard.iptf.reflog import Read, Reflog, Run
from trainyard.iptf.running import reproduce as run_again
from trainyard.iptf.running import run_at_gate, run_program
from trainyard.iptf.service import publish as publish_tree
from trainyard.iptf.settings import BadSettingError, IptfSettings, read_settings
from trainyard.iptf.tree import MFS, MutablePath, Top, Tree, mutable, parse_uri
from trainyard.protocol.errors import TrainyardError

_FAILED, _WRONG_USE, _ABSENT, _CORRUPT = 1, 2, 3, 4
_EXIT_CODES = {
    Code.INVALID_ARGUMENT: _WRONG_USE,
    Code.NOT_FOUND: _ABSENT,
    Code.UNAVAILABLE: _ABSENT,
    Code.DEADLINE_EXCEEDED: _ABSENT,
    Code.DATA_LOSS: _CORRUPT,
}
_CHUNK_BYTES = 1 << 20


class _Programs(typer.core.TyperGroup):
    """Any word that is no command of ours is the program to run."""

    def resolve_command(  # type: ignore[override]
        self, ctx: typer.Context, args: list[str]
    ) -> tuple[str | None, object, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="iptf",
    cls=_Programs,
    help="ipfs:// and iptf:// for TensorFlow: `iptf python train.py …` runs a program unchanged.",
    add_completion=False,
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class _Place:
    """All that a command needs of this machine."""

    content: Content
    tree: Tree
    reflog: Reflog


def _settings() -> tuple[IptfSettings, ContentSettings]:
    try:
        return read_settings()
    except BadSettingError as error:
        _fail(str(error))


@contextmanager
def _here() -> Iterator[_Place]:
    settings, content_settings = _settings()
    # First: a store does not settle in a folder where something else stands already.
    try:
        content = open_content(content_settings)
    except ValueError as error:
        _fail(f"TRAINYARD_KUBO: {error}")
    reflog = Reflog(settings.reflog_in(content_settings))
    try:
        yield _Place(content, Tree(content, Mfs(settings.mfs_in(content_settings))), reflog)
    finally:
        reflog.close()
        content.close()


@app.command(
    context_settings={
        "allow_extra_args": True,
        "allow_interspersed_args": False,
        "ignore_unknown_options": True,
        "help_option_names": [],
    }
)
def run(ctx: typer.Context) -> None:
    """Run a program with ipfs:// and iptf://; `iptf PROGRAM …` is short for it."""
    if not ctx.args:
        _fail("name the program to run, as in `iptf python train.py`")
    joined = _settings()[0].socket
    if joined is not None:
        raise typer.Exit(run_at_gate(ctx.args, joined).exit_code)
    with _here() as here:
        finished = run_program(ctx.args, here.reflog)
    raise typer.Exit(finished.exit_code)


@app.command()
def build() -> None:
    """Compile the plugin now, for the TensorFlow that is installed, and print where it is."""
    print(build_plugin())


@app.command()
def serve(
    folder: Annotated[Path, typer.Argument(help="Folder or file to publish.", exists=True)],
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Add a folder to the store and serve it until Ctrl-C."""
    # The web server takes longer to import than the other commands take to run.
    from trainyard.content.gateway_server import GatewayServer

    with _here() as here:
        cid = here.content.add(folder.absolute()).cid
        with GatewayServer(here.content, port=port) as server:
            if as_json:
                print(json.dumps({"cid": str(cid), "gateway": server.address}), flush=True)
            else:
                call = "listdir" if folder.is_dir() else "stat"
                print(f"CID      {cid}")
                print(f"Gateway  {server.address} (elsewhere: TRAINYARD_GATEWAYS={server.address})")
                print(f'Python   tf.io.gfile.{call}("ipfs://{cid}")', flush=True)
            threading.Event().wait()


@app.command()
def ls(
    uri: Annotated[str, typer.Argument(help="ipfs://<cid>/…, iptf://mfs/… or a CID.")] = MFS,
    as_json: AsJson = False,
) -> None:
    """List a directory, or one file."""
    with _here() as here:
        uri = _uri(uri)
        about = here.tree.stat(uri)
        entries = here.tree.ls(uri) if about.directory else [(uri.rpartition("/")[2], about)]
    if as_json:
        rows = [
            {
                "name": name,
                "kind": "directory" if about.directory else "file",
                "size": about.size,
                "cid": None if about.cid is None else str(about.cid),
            }
            for name, about in entries
        ]
        print(json.dumps(rows))
        return
    for name, about in entries:
        print(f"{'-' if about.directory else about.size:>14}  {name}{'/' * about.directory}")


@app.command()
def cat(uri: Annotated[str, typer.Argument(help="ipfs://<cid>/…, iptf://mfs/… or a CID.")]) -> None:
    """Write a file to standard output."""
    with _here() as here:
        for piece in _pieces(here, _uri(uri)):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


@app.command()
def cp(
    source: Annotated[str, typer.Argument(help="A URI, or a path on this disk.")],
    target: Annotated[str, typer.Argument(help="A path on this disk, or a URI below iptf://mfs.")],
) -> None:
    """Copy a file; from a CID to this disk also a whole directory."""
    with _here() as here:
        if "://" in target:
            _copy_to_mfs(here, source, mutable(target))
            return
        path = Path(target)
        name = source.rstrip("/").rpartition("/")[2]
        path = path / name if path.is_dir() else path
        place = parse_uri(_uri(source))
        if isinstance(place, ContentPath):
            here.content.get(place, path)
        elif isinstance(place, MutablePath) and here.tree.stat(source).directory:
            shutil.copytree(here.tree.mfs.path(place.names), path, symlinks=True)
        else:
            with path.open("wb") as file:
                for piece in _pieces(here, source):
                    file.write(piece)


@app.command()
def publish(
    path: Annotated[str, typer.Argument(help="Path below iptf://mfs, such as mfs/runs.")] = MFS,
    as_json: AsJson = False,
) -> None:
    """Store what stands below iptf://mfs, and print its CID."""
    uri = path if "://" in path else f"{MFS}/{path.lstrip('/').removeprefix('mfs/')}"
    uri = MFS if path == "mfs" else uri
    with _here() as here:
        cid = publish_tree(here.tree, mutable(uri))
    print(json.dumps({"cid": cid, "uri": uri}) if as_json else cid)


@app.command()
def reflog(
    run: Annotated[int | None, typer.Option(help="Only this run.")] = None,
    runs: Annotated[bool, typer.Option("--runs", help="List the runs instead.")] = False,
    pin: Annotated[bool, typer.Option("--pin", help="Fetch and keep all of it.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what was read: every CID, when, by which run, and which bytes."""
    with _here() as here:
        if run is not None:
            here.reflog.run(run)
        if runs:
            _print_runs(here.reflog.runs(), as_json)
            return
        reads = here.reflog.reads(run)
        # The directories above a file too: a run reads by their CID.
        kept = sorted({read.cid for read in reads} | set(_roots(reads)))
        if pin:
            for cid in kept:
                here.content.pin(ContentPath.parse(cid))
    _print_reads(reads, as_json)
    if pin and not as_json:
        print(f"{len(kept)} CIDs are pinned")


@app.command()
def reproduce(
    run: Annotated[int, typer.Argument(help="The run's number, as `iptf reflog --runs` lists it.")],
    mfs: Annotated[
        Path | None, typer.Option(help="Empty folder to keep what the run writes in.")
    ] = None,
) -> None:
    """Run the same command again on the same CIDs; exit code 1 if it then read others."""
    with _here() as here:
        if mfs is not None and mfs.exists() and any(mfs.iterdir()):
            _fail(f"{mfs} is not empty: name a new folder")
        outcome = run_again(run, here.reflog, here.content, mfs and mfs.absolute())
    for uri, cid in outcome.missing:
        print(f"- {cid}  {uri}", file=sys.stderr)
    for uri, cid in outcome.added:
        print(f"+ {cid}  {uri}", file=sys.stderr)
    verdict = "read the same CIDs as" if outcome.same else "did not read the same CIDs as"
    print(f"iptf: run {outcome.second.run} {verdict} run {run}", file=sys.stderr)
    raise typer.Exit(outcome.second.exit_code if outcome.same else _FAILED)


def _roots(reads: Iterable[Read]) -> Iterator[str]:
    for read in reads:
        place = parse_uri(read.uri)
        if isinstance(place, ContentPath):
            yield str(place.root)


def _uri(text: str) -> str:
    """A bare CID with or without a path below it is a URI too."""
    return text if "://" in text else f"ipfs://{text.removeprefix('/ipfs/')}"


def _pieces(here: _Place, uri: str) -> Iterator[bytes | memoryview]:
    place = parse_uri(uri)
    if isinstance(place, Top):
        raise IsADirectoryContentError(f"{uri} is a directory")
    if isinstance(place, ContentPath):
        yield from here.content.cat(place)
        return
    with open(here.tree.mfs.open(place.names), "rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            yield piece


def _copy_to_mfs(here: _Place, source: str, target: MutablePath) -> None:
    local = Path(source)
    if "://" not in source and not local.is_file():
        raise InvalidPathError(f"{source} is no file on this disk")
    # Beside the target, which stays as it was until all is there.
    beside = (*target.names[:-1], f".{secrets.token_hex(8)}.part")
    fd, _ = here.tree.mfs.create(beside, append=False)
    try:
        with open(fd, "wb") as out:
            if "://" in source:
                for piece in _pieces(here, source):
                    out.write(piece)
            else:
                with local.open("rb") as file:
                    shutil.copyfileobj(file, out, _CHUNK_BYTES)
        here.tree.mfs.rename(beside, target.names)
    except BaseException:
        here.tree.mfs.remove_file(beside)
        raise


def _print_runs(runs: list[Run], as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(one) for one in runs]))
        return
    table = Table("run", "started", "exit", "repeats", "folder", "command", box=None)
    for one in runs:
        code = "" if one.exit_code is None else str(one.exit_code)
        repeats = "" if one.reproduces is None else str(one.reproduces)
        command = escape(" ".join(one.command))
        table.add_row(str(one.id), _time(one.started), code, repeats, escape(one.cwd), command)
    _console().print(table)


def _print_reads(reads: list[Read], as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(read) for read in reads]))
        return
    table = Table("run", "time", "bytes", "ranges", "CID", "path", box=None)
    for read in reads:
        ranges = ", ".join(f"{start}-{end}" for start, end in read.ranges[:3])
        ranges += f" and {len(read.ranges) - 3} more" if len(read.ranges) > 3 else ""
        count = str(sum(end - start for start, end in read.ranges))
        path = escape(read.uri)
        table.add_row(str(read.run), _time(read.first_time), count, ranges, read.cid, path)
    _console().print(table)


def _console() -> Console:
    """Never folds a line that goes into a pipe."""
    return Console(width=None if sys.stdout.isatty() else 1000)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _fail(why: str) -> NoReturn:
    print(f"iptf: {why}", file=sys.stderr)
    raise typer.Exit(_WRONG_USE)


def main() -> None:
    try:
        app()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_FAILED)
    except (TrainyardError, OSError) as error:
        print(f"iptf: {error}", file=sys.stderr)
        sys.exit(_EXIT_CODES.get(code_of(error), _FAILED))
