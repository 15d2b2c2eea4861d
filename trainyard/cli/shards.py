"""`trainyard content shard`: records as TFRecord shards."""

from typing import Annotated

import typer

from trainyard.cli.content import ChunkerText, NoPin, parse_chunker
from trainyard.cli.place import Place, at_place


@at_place
def shard(
    place: Place,
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="FILE.npz, or NAME=FILE.npy, once or more, which also works for arrays larger "
            "than memory. The first axis counts the records.",
        ),
    ],
    shards: Annotated[int, typer.Option(min=1, help="How many TFRecord files.")],
    seed: Annotated[int, typer.Option(min=0, help="Decides each record's shard and place.")],
    chunker: ChunkerText = "size-262144",
    no_pin: NoPin = False,
) -> None:
    """Deal records to TFRecord shards, each a fair sample of all, and print the CID.

    Example: 'trainyard content shard train.npz --shards 8 --seed 1'.
    """
    from trainyard.cli.arrays import open_arrays
    from trainyard.datasets.sharding import write_shards

    cut = parse_chunker(chunker)
    arrays = open_arrays(source)
    with place.content() as content, place.output.progress("sharding") as bar:
        sharded = write_shards(
            content, arrays, shards=shards, seed=seed, chunker=cut, pin=not no_pin, progress=bar
        )
    index = sharded.index
    place.output.note(f"{index.records} records in {len(index.shards)} shards")
    place.output.result(
        {
            "cid": str(sharded.cid),
            "bytes": sharded.built.size,
            "pinned": not no_pin,
            **index.model_dump(mode="json"),
        },
        [str(sharded.cid)],
    )
