"""Content by CID: what is there, and how it gets there."""

from typing import Annotated, Literal

from pydantic import Field

from dapp.schemas.values import Answer, CidText, Question, Seconds


class ContentEntry(Answer):
    name: str
    cid: CidText
    kind: Literal["file", "directory", "symlink"]
    size: int


class ContentStat(Answer):
    cid: CidText
    kind: Literal["file", "directory", "symlink"]
    size: int
    # Of a folder.
    entries: list[ContentEntry] = Field(default_factory=list)
    # Whether more entries were left out.
    is_cut: bool = False


class Uploaded(Answer):
    """What was stored, read back and found to be what the CID says."""

    cid: CidText
    size: int
    files: int
    # What it looks like: keras, keras_json, npz, npy, csv, tfrecord, image, folder, other.
    kind: str
    name: str


class UploadStart(Question):
    """A file that comes in pieces. `sha256` is checked at the end if it is given."""

    name: Annotated[str, Field(min_length=1, max_length=255, examples=["data.npz"])]
    size: Annotated[int, Field(ge=0, le=2**50, examples=[10_485_760])]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$", examples=["ab" * 32])] | None = None


class UploadState(Answer):
    id: str
    name: str
    size: int
    # How many bytes are there: the `Upload-Offset` of the next PATCH.
    offset: int
    expires_at: Seconds
    # Set when all of it is there and stored.
    uploaded: Uploaded | None = None
