"""`trainyard content verify` and `stat`: what is kept, whether it is whole, and what it takes."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.content import parse_path
from trainyard.cli.failing import ExitCode
from trainyard.cli.output import Bar, size_text
from trainyard.cli.place import Place, at_place

if TYPE_CHECKING:
    from trainyard.content.checking import Fault
    from trainyard.content.cid import Cid
    from trainyard.content.content import Content, Report

_CURE = (
    "give --gateway ADDRESS of somebody who has it; or, if you have the original, run "
    "'trainyard content verify --discard' and add it again"
)


@at_place
def verify(
    place: Place,
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]", help="What to verify; all pinned trees if not given."),
    ] = None,
    discard: Annotated[
        bool,
        typer.Option(
            help="Put damaged blocks aside that nobody else has, so that adding the original again "
            "replaces them."
        ),
    ] = False,
) -> None:
    """Read every block again; a damaged one is named, and replaced where a source has it.

    Examples: 'trainyard content verify', 'trainyard content verify bafy… --gateway http://…'.
    """
    from trainyard.content.checking import discard_damaged
    from trainyard.content.names import ContentPath

    wanted = [parse_path(text) for text in path or ()]
    faults: dict[Cid, Fault] = {}
    blocks = size = elsewhere = discarded = 0
    with place.content() as content, place.output.progress("verifying") as bar:
        pins = content.store.pins()
        roots = [content.stat(one).cid for one in wanted] if wanted else sorted(pins)
        for root in roots:
            checkup = content.verify(
                ContentPath(root), keep=root in pins, progress=_after(size, bar)
            )
            blocks, size = blocks + checkup.blocks, size + checkup.bytes
            elsewhere += checkup.elsewhere
            faults |= {fault.cid: fault for fault in checkup.faults}
            if discard:
                discarded += discard_damaged(content.store, checkup)
        where = content.store.name
    lost = [fault for fault in faults.values() if not fault.healed]
    lines = [_fault_text(fault, where) for fault in faults.values()]
    said = f"{blocks} blocks of {len(roots)} trees, {size_text(size)}"
    place.output.result(
        {
            "trees": len(roots),
            "blocks": blocks,
            "bytes": size,
            "blocks_elsewhere": elsewhere,
            "faults": [_fault_document(fault) for fault in faults.values()],
            "discarded": discarded,
            "whole": not lost,
        },
        [*lines, f"{'NOT WHOLE' if lost else 'whole'}: {said}"],
    )
    if lost:
        damaged = any(fault.ailment != "missing" for fault in lost)
        raise typer.Exit(ExitCode.CORRUPT if damaged else ExitCode.UNAVAILABLE)


def _after(done: int, bar: Bar) -> "Report":
    """One bar for several trees: it goes on where the last one ended."""
    return lambda state: bar(replace(state, done=done + state.done))


@at_place
def stat(
    place: Place,
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="A tree; the whole store if not given.")
    ] = None,
) -> None:
    """Show what content holds (logical bytes) against what its blocks take (physical bytes).

    Examples: 'trainyard content stat', 'trainyard content stat bafy…'.
    """
    with place.content() as content:
        document = _tree(content, path) if path is not None else _store(content)
    logical, physical = document["logical_bytes"], document["physical_bytes"]
    document["ratio"] = round(logical / physical, 4) if physical else None
    place.output.result(document, _stat_lines(document))


def _tree(content: "Content", text: str) -> dict[str, Any]:
    path = parse_path(text)
    entry = content.stat(path)
    measured = content.measure(path)
    return {
        "cid": str(entry.cid),
        "kind": str(entry.kind),
        "files": measured.files,
        "logical_bytes": measured.logical_bytes,
        "blocks": measured.blocks,
        "physical_bytes": measured.physical_bytes,
    }


def _store(content: "Content") -> dict[str, Any]:
    from trainyard.content.names import ContentPath

    pins = content.store.pins()
    files = logical = 0
    for root in sorted(pins):
        waiting = [ContentPath(root)]
        entry = content.stat(waiting[0])
        if entry.kind == "file":
            files, logical, waiting = files + 1, logical + entry.size, []
        while waiting:
            for child in content.ls(waiting.pop()):
                if child.kind == "directory":
                    waiting.append(ContentPath(child.cid))
                elif child.kind == "file":
                    files, logical = files + 1, logical + child.size
    usage = content.store.usage()
    return {
        "store": content.store.name,
        "pins": len(pins),
        "files": files,
        "logical_bytes": logical,
        "blocks": usage.blocks,
        "physical_bytes": usage.bytes,
    }


def _stat_lines(document: dict[str, Any]) -> list[str]:
    shown = {
        **document,
        "logical_bytes": f"{document['logical_bytes']}  ({size_text(document['logical_bytes'])})",
        "physical_bytes": f"{document['physical_bytes']}  "
        f"({size_text(document['physical_bytes'])})",
        "ratio": "-" if document["ratio"] is None else f"{document['ratio']:.2f}",
    }
    return [f"{name.replace('_', ' '):<15} {value}" for name, value in shown.items()]


def _fault_text(fault: "Fault", store: str) -> str:
    said = f"{fault.cid} is {fault.ailment} in {store}: "
    if fault.healed:
        return said + f"replaced from {fault.source}"
    if fault.source is not None:
        return said + f"{fault.source} has it; fetch it with 'trainyard content pin {fault.cid}'"
    return said + f"no source has it; {_CURE}"


def _fault_document(fault: "Fault") -> dict[str, Any]:
    return {
        "cid": str(fault.cid),
        "ailment": str(fault.ailment),
        "source": fault.source,
        "healed": fault.healed,
    }
