"""What `fit` is given as data, as records in content: arrays, data sets, batches, or a CID."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from trainyard.content.content import Content
from trainyard.content.errors import NotFoundError
from trainyard.content.names import ContentPath
from trainyard.datasets import add_arrays, open_shards, write_shards
from trainyard.datasets.arrays import SUFFIX
from trainyard.datasets.index import INDEX_NAME
from trainyard.datasets.records import NumpyIterable
from trainyard.protocol.manifest.model import Input
from trainyard.sdk.errors import RefusedError

Array = npt.NDArray[Any]
# Any that is one, for a manifest to be tried out with before data is copied.
_NOWHERE = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
_TARGET, _WEIGHT = "target", "weight"
_SEED = 1
INFINITE = -1
# How many records are taken to be there while nobody has counted them.
_UNKNOWN = 1 << 16
# Kept as they are; everything else is made a float32, as Keras does.
_KEPT = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "float32")


@dataclass(frozen=True, slots=True)
class Records:
    """Records that can be put into content: what each has, and how many there are if known."""

    kind: str
    features: Mapping[str, tuple[str, tuple[int, ...]]]
    inputs: tuple[str, ...]
    # None of records to predict for.
    target: str | None
    weight: str | None
    count: int | None
    # Puts them there, and says where they are and how many.
    add: Callable[[Content], tuple[str, int]]
    # For arrays: puts so many of them from one on there alone, and says where they are.
    add_part: Callable[[Content, int, int], str] | None = None

    def source(self, cid: str = _NOWHERE, count: int | None = None) -> dict[str, Any]:
        """The section of a manifest; without a CID, to see whether the rest agrees with it."""
        document: dict[str, Any] = {
            "kind": self.kind,
            "path": cid if cid.startswith("ipfs://") else f"ipfs://{cid}",
            "records": count or self.count or _UNKNOWN,
            "features": {
                name: {"dtype": dtype, "shape": list(shape)}
                for name, (dtype, shape) in self.features.items()
            },
            "inputs": list(self.inputs),
        }
        named = {"target": self.target, "weight": self.weight}
        return document | {key: name for key, name in named.items() if name is not None}


def records_of(
    content: Content, inputs: Sequence[Input], x: Any, y: Any = None, weight: Any = None
) -> Records:
    """What the user gave, whichever of the forms it is."""
    if isinstance(x, str):
        return _stored(content, inputs, x, y, weight)
    if isinstance(x, NumpyIterable):
        _need_nothing_else(y, weight, "a data set")
        return _dataset(inputs, x)
    if hasattr(x, "__getitem__") and hasattr(x, "__len__") and not is_arrays(x):
        _need_nothing_else(y, weight, "a generator of batches")
        return _batched(inputs, [x[0]], lambda: (x[number] for number in range(len(x))))
    if hasattr(x, "__iter__") and hasattr(x, "__len__") and not is_arrays(x):
        _need_nothing_else(y, weight, "a generator of batches")
        return _batched(inputs, *_looked_at(x))
    if isinstance(x, Iterator):
        raise RefusedError(
            "x is a generator without a length, of which nobody knows where it ends: make it a "
            "keras.utils.PyDataset, or a tf.data.Dataset with .take(count)"
        )
    return _arrays(inputs, x, y, weight)


def unlabelled(
    content: Content, inputs: Sequence[Input], x: Any, target: str | None = None
) -> Records:
    """Arrays or records by their CID, of which the inputs alone are taken.

    `target` is a feature of stored records that is no input, where its name is known.
    """
    if isinstance(x, str):
        return _stored(content, inputs, x, target, None, labelled=False)
    return _arrays(inputs, x, None, None, labelled=False)


# Arrays


def is_arrays(x: Any) -> bool:
    if isinstance(x, Mapping | np.ndarray):
        return True
    if isinstance(x, list | tuple):
        return not x or not isinstance(x[0], tuple)
    # Such as those of pandas or a tensor of TensorFlow's.
    return hasattr(x, "__array__")


def _arrays(
    inputs: Sequence[Input], x: Any, y: Any, weight: Any, *, labelled: bool = True
) -> Records:
    if y is None and labelled:
        raise RefusedError("there are no targets: give y")
    columns = dict(
        zip((one.name for one in inputs), inputs_in(inputs, x, is_batch=True), strict=True)
    )
    target = weighing = None
    if labelled:
        target = _free(_TARGET, columns)
        columns[target] = plain(array_of(y, "y"))
    if weight is not None:
        weighing = _free(_WEIGHT, columns)
        columns[weighing] = array_of(weight, "sample_weight", np.float32)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        which = "x and y have" if labelled else "x has"
        raise RefusedError(f"{which} different numbers of records: {lengths}")
    count = next(iter(lengths.values()))
    if not count:
        raise RefusedError("there are no records in x")

    def add(content: Content) -> tuple[str, int]:
        return str(add_arrays(content, columns).cid), count

    def add_part(content: Content, first: int, size: int) -> str:
        part = {name: values[first : first + size] for name, values in columns.items()}
        return str(add_arrays(content, part).cid)

    features = {name: (str(one.dtype), one.shape[1:]) for name, one in columns.items()}
    names = tuple(one.name for one in inputs)
    return Records("npz", features, names, target, weighing, count, add, add_part)


def inputs_in(inputs: Sequence[Input], x: Any, *, is_batch: bool) -> list[Array]:
    """The arrays of the model's inputs, in their order and as the model takes them."""
    if isinstance(x, Mapping):
        missing = [one.name for one in inputs if one.name not in x]
        if missing:
            raise RefusedError(
                f"x has no {' and no '.join(map(repr, missing))}, which the model reads; it has "
                f"{', '.join(map(repr, x))}"
            )
        given = [x[one.name] for one in inputs]
    elif len(inputs) > 1:
        if not isinstance(x, list | tuple) or len(x) != len(inputs):
            names = ", ".join(one.name for one in inputs)
            raise RefusedError(
                f"the model reads {len(inputs)} inputs ({names}): give as many, in a list or by "
                "name in a dict"
            )
        given = list(x)
    else:
        given = [x[0] if isinstance(x, tuple) and len(x) == 1 else x]
    return [
        _fitted(one, array_of(values, "x"), is_batch=is_batch)
        for one, values in zip(inputs, given, strict=True)
    ]


def array_of(given: Any, name: str, dtype: Any = None) -> Array:
    """What was given as an array; RefusedError by its name where it makes none."""
    try:
        found: Array = np.asarray(given, dtype)
    except (ValueError, TypeError) as error:
        raise RefusedError(
            f"{name}: no array can be made of it ({error}): lists need records of one shape, such "
            "as keras.utils.pad_sequences makes of sequences, and numbers in them"
        ) from error
    return found


def _fitted(given: Input, values: Array, *, is_batch: bool) -> Array:
    """Values as an input takes them: Keras would convert them in just this way."""
    shape = values.shape[1:] if is_batch else values.shape
    wanted = tuple(given.shape)
    if shape != wanted and (*shape, 1) == wanted:
        values = values[..., np.newaxis]
    elif shape != wanted:
        raise RefusedError(
            f"x: a record for {given.name!r} has the shape {list(shape)}, and the model takes "
            f"{list(wanted)}"
        )
    if values.dtype.kind not in "biuf":
        raise RefusedError(
            f"x: {given.name!r} has values of {values.dtype}; make numbers of them first"
        )
    return values if str(values.dtype) == given.dtype else values.astype(given.dtype)


def plain(values: Array) -> Array:
    if values.dtype.kind not in "biuf":
        raise RefusedError(f"y has values of {values.dtype}; make numbers of them first")
    if values.dtype == np.bool_:
        return values.astype(np.uint8)
    if str(values.dtype) == "uint64":
        return values.astype(np.int64)
    return values if str(values.dtype) in _KEPT else values.astype(np.float32)


def _free(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    while name in names:
        name += "_"
    return name


# Data sets and generators


def _need_nothing_else(y: Any, weight: Any, what: str) -> None:
    if y is not None:
        raise RefusedError(f"y: {what} brings its targets along; leave y out")
    if weight is not None:
        raise RefusedError(
            f"sample_weight: {what} brings its weights along; leave it out, and have each element "
            "be (inputs, targets, weights)"
        )


def _looked_at(x: Iterable[Any]) -> tuple[Iterable[Any], Callable[[], Iterable[Any]]]:
    """The first batch of an iterable, and all of them.

    Some can be gone through but once: of those the first stays in front of the rest.
    """
    begun = iter(x)
    if iter(x) is not begun:
        return begun, lambda: x
    first = list(islice(begun, 1))
    return first, lambda: _continued(first, begun)


def _continued(first: Iterable[Any], begun: Iterator[Any]) -> Iterator[Any]:
    """What is left of an iterator behind what was taken of it.

    Never by `iter(begun)`, by which some go back to their beginning.
    """
    yield from first
    while True:
        try:
            one = next(begun)
        except StopIteration:
            return
        yield one


def _dataset(inputs: Sequence[Input], dataset: Any) -> Records:
    cardinality = int(dataset.cardinality())
    if cardinality == INFINITE:
        raise RefusedError("x: the data set has no end; cut it with dataset.take(count)")
    return _batched(inputs, dataset.take(1).as_numpy_iterator(), dataset.as_numpy_iterator)


def _batched(
    inputs: Sequence[Input], first: Iterable[Any], batches: Callable[[], Iterable[Any]]
) -> Records:
    """Records from an iterable of batches, or of single records, which the first of them tells."""
    one = next(iter(first), None)
    if one is None:
        raise RefusedError("x: there are no records in it")
    is_batch = is_batch_of(inputs, one)
    names = tuple(each.name for each in inputs)
    target = _free(_TARGET, names)
    example = _row(inputs, one, target, is_batch=is_batch)
    weight = next((name for name in example if name not in (*names, target)), None)
    features = {
        name: (str(values.dtype), values.shape[1:] if is_batch else values.shape)
        for name, values in example.items()
    }

    def rows() -> Iterator[dict[str, Array]]:
        for batch in batches():
            found = _row(inputs, batch, target, is_batch=is_batch)
            if not is_batch:
                yield found
                continue
            for number in range(len(found[target])):
                yield {name: values[number] for name, values in found.items()}

    def add(content: Content) -> tuple[str, int]:
        written = write_shards(content, rows(), shards=1, seed=_SEED)
        return str(written.cid), written.index.records

    return Records("tfrecord", features, names, target, weight, None, add)


def is_batch_of(inputs: Sequence[Input], element: Any) -> bool:
    x = element[0] if isinstance(element, tuple | list) else element
    first = inputs[0]
    value: Any = x.get(first.name) if isinstance(x, Mapping) else x
    if len(inputs) > 1 and isinstance(x, tuple | list):
        value = x[0]
    shape = array_of(value, "x").shape
    # As one input without its last axis of one is still that input.
    return len(shape) == len(first.shape) + 1 or (
        len(shape) == len(first.shape) and shape != tuple(first.shape) and first.shape[-1:] == (1,)
    )


def _row(inputs: Sequence[Input], element: Any, target: str, *, is_batch: bool) -> dict[str, Array]:
    if not isinstance(element, tuple | list) or len(element) not in (2, 3):
        raise RefusedError(
            "x: each of its elements has to be (inputs, targets), or (inputs, targets, weights)"
        )
    found = dict(
        zip(
            (one.name for one in inputs),
            inputs_in(inputs, element[0], is_batch=is_batch),
            strict=True,
        )
    )
    found[target] = plain(array_of(element[1], "x: the targets"))
    if len(element) == 3:
        found[_free(_WEIGHT, found)] = array_of(element[2], "x: the weights", np.float32)
    return found


# What is content already


def _stored(
    content: Content,
    inputs: Sequence[Input],
    address: str,
    y: Any,
    weight: Any,
    *,
    labelled: bool = True,
) -> Records:
    """Records by their CID; `y` names the feature that is the target, `weight` the records' own."""
    path = ContentPath.parse(address)
    for given, name, what in (("y", y, "is the target"), ("sample_weight", weight, "has them")):
        if name is not None and not isinstance(name, str):
            raise RefusedError(f"{given}: for data by its CID, the name of the feature that {what}")
    try:
        content.stat(path.child(INDEX_NAME))
        shards = open_shards(content, path)
        kind, count = "tfrecord", len(shards)
        features = {one.name: (one.dtype, tuple(one.shape)) for one in shards.index.features}
    except NotFoundError:
        kind = "npz"
        features, count = _heads(content, path)
    for given, name in (("y", y), ("sample_weight", weight)):
        if name is not None and name not in features:
            raise RefusedError(
                f"{given}: there is no feature {name!r} in {address}; {_known(features)}"
            )
    names = _named_inputs(inputs, features, (y, weight), labelled=labelled)
    target = y if y is not None or not labelled else _only(features, (*names, weight))
    root = str(path).removeprefix("/ipfs/").removeprefix("ipfs://")
    target = target if labelled else None
    used = {name: features[name] for name in (*names, target, weight) if name is not None}
    shown = used if kind == "npz" else features
    return Records(kind, shown, names, target, weight, count, lambda _: (root, count))


def _heads(content: Content, path: ContentPath) -> tuple[dict[str, tuple[str, Any]], int]:
    """What the arrays of a folder are, by their first bytes."""
    found: dict[str, tuple[str, Any]] = {}
    counts = set[int]()
    for name in content.links(path):
        if not name.endswith(SUFFIX):
            continue
        with content.open(path.child(name)) as file:
            try:
                version = np.lib.format.read_magic(file)
                read = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = read(file)
            except ValueError as error:
                raise RefusedError(f"x: {path}/{name} is no array: {error}") from error
        counts.add(shape[0] if shape else 0)
        found[name.removesuffix(SUFFIX)] = (str(dtype), tuple(shape[1:]))
    if not found or len(counts) != 1:
        raise RefusedError(
            f"x: {path} is neither a sharded data set nor a folder of arrays of one length; "
            "'trainyard content shard' makes one"
        )
    return found, counts.pop()


def _named_inputs(
    inputs: Sequence[Input],
    features: Mapping[str, Any],
    taken: tuple[str | None, str | None],
    *,
    labelled: bool,
) -> tuple[str, ...]:
    """The features that are the model's inputs, where those `taken` are target and weight."""
    names = tuple(one.name for one in inputs)
    if all(name in features for name in names):
        return names
    others = [name for name in features if name not in taken]
    is_clear = taken[0] is not None or not labelled
    if len(inputs) == 1 and is_clear and len(others) == 1:
        return (others[0],)
    raise RefusedError(
        f"x: the model reads {', '.join(map(repr, names))}; {_known(features)}: name the model's "
        "inputs as the features are"
    )


def _only(features: Mapping[str, Any], taken: Sequence[str | None]) -> str:
    rest = [name for name in features if name not in taken]
    if len(rest) != 1:
        raise RefusedError(f"y: which feature is the target? Give its name; {_known(features)}")
    return rest[0]


def _known(features: Mapping[str, Any]) -> str:
    return f"the data has {', '.join(map(repr, sorted(features)))}"
