"""Data sets by CID: arrays as they are, and records as TFRecord shards, without TensorFlow."""

from trainyard.datasets.arrays import add_arrays, load_arrays
from trainyard.datasets.ordered import Piece, join_pieces, write_piece
from trainyard.datasets.reading import ShardedDataset, open_shards
from trainyard.datasets.records import records_of
from trainyard.datasets.sharding import Sharded, write_shards

__all__ = [
    "Piece",
    "Sharded",
    "ShardedDataset",
    "add_arrays",
    "join_pieces",
    "load_arrays",
    "open_shards",
    "records_of",
    "write_piece",
    "write_shards",
]
