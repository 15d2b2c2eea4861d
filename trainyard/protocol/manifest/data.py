"""Where records are, how many, and what each one has."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from trainyard.protocol.manifest.errors import MisfitError
from trainyard.protocol.manifest.values import Dtype, Name, Shape, Strict, Tensor

_CID = r"(?:b[a-z2-7]{20,200}|Qm[1-9A-HJ-NP-Za-km-z]{44}|z[1-9A-HJ-NP-Za-km-z]{20,200})"
_PATH = re.compile(rf"ipfs://{_CID}((?:/[A-Za-z0-9_.-]{{1,255}}){{0,16}})")
_MOST_FEATURES = 64
MOST_RECORDS = 1 << 40


def _check_path(path: str) -> str:
    found = _PATH.fullmatch(path)
    if not found:
        raise ValueError(
            f"{path[:80]!r} is no ipfs://<cid> with plain names below it; "
            "add the folder to the content store and give its address"
        )
    if {".", ".."} & set(found[1].split("/")):
        raise ValueError(f"{path[:80]!r} has a step out of its folder in it")
    return path


ContentAddress: TypeAlias = Annotated[str, Field(max_length=2048), AfterValidator(_check_path)]
StateCid: TypeAlias = Annotated[str, Field(pattern=f"^{_CID}$")]


class FeatureSpec(Strict):
    dtype: Dtype
    shape: Shape = ()

    @property
    def tensor(self) -> Tensor:
        return Tensor(self.shape, self.dtype)


class Source(Strict):
    """A set of records by its content address.

    `tfrecord` is a folder that `write_shards` wrote; `npz` is a folder of `.npy` files that
    `add_arrays` wrote, or an `.npz` file.
    """

    kind: Literal["npz", "tfrecord"]
    path: ContentAddress
    records: Annotated[int, Field(ge=1, le=MOST_RECORDS)]
    features: Annotated[dict[Name, FeatureSpec], Field(min_length=1, max_length=_MOST_FEATURES)]
    inputs: Annotated[tuple[Name, ...], Field(min_length=1, max_length=_MOST_FEATURES)]
    # Left out only of records to predict for.
    target: Name | None = None
    weight: Name | None = None

    @model_validator(mode="after")
    def _names_features(self) -> "Source":
        for number, name in enumerate(self.inputs):
            self._check_known(name, "inputs", number)
        if self.target is not None:
            self._check_known(self.target, "target")
        if self.target in self.inputs:
            raise MisfitError(f"{self.target!r} is an input too", "target")
        if self.weight is not None:
            self._check_known(self.weight, "weight")
            found = self.features[self.weight].tensor
            if found not in (Tensor(()), Tensor((1,))):
                raise MisfitError(f"a weight is one float32 a record, not {found}", "weight")
        return self

    @property
    def label(self) -> str:
        """The name of the target, of records that are not there to predict for alone."""
        if self.target is None:
            raise MisfitError("is missing", "target")
        return self.target

    @property
    def used(self) -> tuple[str, ...]:
        """The features that training reads; others are left alone."""
        names = (*self.inputs, self.target, self.weight)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def _check_known(self, name: str, *path: str | int) -> None:
        if name not in self.features:
            known = ", ".join(sorted(self.features))
            raise MisfitError(f"{name!r} is none of the features {known}", *path)


class Data(Strict):
    train: Source
    test: Source | None = None
