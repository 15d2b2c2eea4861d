"""`trainyard content`: add, look, read, fetch and keep content by CID."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli.failing import WrongUseError
from trainyard.cli.output import size_text, write_bytes
from trainyard.cli.place import Place, at_place

if TYPE_CHECKING:
    from trainyard.content.chunking import Chunker
    from trainyard.content.names import ContentPath

STDIN = "-"

ContentPathText = Annotated[
    str,
    typer.Argument(
        metavar="PATH", help="CID, or CID/name/…; also ipfs://…, /ipfs/… or iptf://ipfs/…"
    ),
]
ChunkerText = Annotated[
    str,
    typer.Option(
        "--chunker",
        metavar="CHUNKER",
        help="size-262144 (as Kubo), size-1048576, or gear[-AVERAGE], which cuts where the "
        "content says, so that data which shifts keeps its blocks.",
    ),
]
NoPin = Annotated[bool, typer.Option("--no-pin", help="Let the next gc remove it.")]


def parse_path(text: str) -> "ContentPath":
    from trainyard.content.names import ContentPath

    return ContentPath.parse(text)


def parse_chunker(text: str) -> "Chunker":
    from trainyard.content import chunking

    try:
        return chunking.parse_chunker(text)
    except ValueError as error:
        raise WrongUseError(str(error)) from error


@at_place
def add(
    place: Place,
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="A file, a directory, or - for stdin; with --arrays NAME=FILE.npy, once or more.",
        ),
    ],
    arrays: Annotated[
        bool, typer.Option("--arrays", help="Add NumPy arrays, as a directory of .npy files.")
    ] = False,
    chunker: ChunkerText = "size-262144",
    no_pin: NoPin = False,
    name: Annotated[
        str | None, typer.Option(help="Put stdin into a directory, under this name.")
    ] = None,
) -> None:
    """Store content and print its CID.

    Examples: 'trainyard content add photos/', 'trainyard content add --arrays x=x.npy y=y.npy'.
    """
    from trainyard.cli.arrays import open_arrays

    cut = parse_chunker(chunker)
    if not arrays and len(source) != 1:
        raise WrongUseError("add one file or directory at a time; put several into one")
    if name is not None and (arrays or source != [STDIN]):
        raise WrongUseError("a file or directory has a name; --name is for stdin")
    if not arrays and source != [STDIN] and not Path(source[0]).exists():
        raise WrongUseError(f"{source[0]} does not exist")
    opened = open_arrays(source) if arrays else {}
    with place.content() as content, place.output.progress("adding") as bar:
        if arrays:
            from trainyard.datasets.arrays import add_arrays

            built = add_arrays(content, opened, chunker=cut, pin=not no_pin, progress=bar)
        elif name is not None:
            from trainyard.cli.stdin import add_named

            built = add_named(content, name, cut, pin=not no_pin, progress=bar)
        else:
            what = sys.stdin.buffer if source == [STDIN] else Path(source[0])
            built = content.add(what, chunker=cut, pin=not no_pin, progress=bar)
    place.output.note(f"{size_text(built.size)} in {size_text(built.total_bytes)} of blocks")
    path = f"{built.cid}/{name}" if name is not None else str(built.cid)
    place.output.result(
        {
            "cid": str(built.cid),
            "path": path,
            "bytes": built.size,
            "block_bytes": built.total_bytes,
            "pinned": not no_pin,
        },
        [path],
    )


@at_place
def get(
    place: Place,
    path: ContentPathText,
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write; the last name of PATH if not given."),
    ] = None,
) -> None:
    """Write a file or a directory to disk; goes on where an earlier try was cut off.

    Example: 'trainyard content get bafy…/weights.safetensors -o weights.safetensors'.
    """
    wanted = parse_path(path)
    to = target or Path(wanted.names[-1] if wanted.names else str(wanted.root))
    with place.content() as content, place.output.progress("fetching") as bar:
        entry = content.get(wanted, to, progress=bar)
    place.output.result(
        {"cid": str(entry.cid), "kind": entry.kind, "bytes": bar.done, "target": str(to)},
        [f"{to}  {size_text(bar.done)}"],
    )


@at_place
def cat(
    place: Place,
    path: ContentPathText,
    offset: Annotated[int, typer.Option(min=0, help="First byte.")] = 0,
    length: Annotated[int | None, typer.Option(min=0, help="How many bytes.")] = None,
) -> None:
    """Write the bytes of a file to stdout, each verified before it is written.

    Example: 'trainyard content cat bafy…/manifest.json'.
    """
    if place.output.as_json:
        raise WrongUseError("bytes are no JSON; use 'get --json', or 'stat --json'")
    wanted = parse_path(path)
    # A bar would be drawn across the bytes.
    alone = not sys.stdout.isatty()
    with place.content() as content, place.output.progress("reading", wanted=alone) as bar:
        write_bytes(content.cat(wanted, offset, length, progress=bar))


@at_place
def ls(place: Place, path: ContentPathText) -> None:
    """List a directory.

    Example: 'trainyard content ls bafy…'.
    """
    with place.content() as content:
        entries = content.ls(parse_path(path))
    width = max((len(str(entry.size)) for entry in entries), default=0)
    place.output.result(
        {
            "entries": [
                {"name": e.name, "cid": str(e.cid), "kind": e.kind, "bytes": e.size}
                for e in entries
            ]
        },
        [
            f"{e.cid}  {e.size:>{width}}  {e.name}{'/' if e.kind == 'directory' else ''}"
            for e in entries
        ],
    )


@at_place
def pin(
    place: Place,
    path: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]", help="What to keep.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List what is pinned.")] = False,
) -> None:
    """Fetch what is missing of a tree, and keep all of it.

    Examples: 'trainyard content pin bafy…', 'trainyard content pin --list'.
    """
    if show == bool(path):
        raise WrongUseError("give what to pin, or --list")
    wanted = [parse_path(text) for text in path or ()]
    with place.content() as content, place.output.progress("fetching") as bar:
        pinned = [str(content.pin(one, progress=bar)) for one in wanted]
        if show:
            pinned = sorted(str(cid) for cid in content.store.pins())
    place.output.result({"pinned" if not show else "pins": pinned}, pinned)


@at_place
def unpin(place: Place, path: ContentPathText) -> None:
    """Stop keeping a tree; the next gc removes what no other pin needs.

    Example: 'trainyard content unpin bafy…'.
    """
    wanted = parse_path(path)
    with place.content() as content:
        cid = content.stat(wanted).cid if wanted.names else wanted.root
        content.unpin(cid)
    place.output.result({"unpinned": str(cid)}, [str(cid)])


@at_place
def gc(place: Place) -> None:
    """Remove the blocks that no pin needs.

    Example: 'trainyard content gc'.
    """
    with place.content() as content:
        freed = content.gc()
    place.output.result(
        {"removed_blocks": freed.blocks, "removed_bytes": freed.bytes},
        [f"removed {freed.blocks} blocks, {size_text(freed.bytes)}"],
    )
