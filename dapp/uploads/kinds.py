"""What a file looks like, by its name and its first bytes."""

from collections.abc import Sequence

_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM")
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")


def kind_of(name: str, head: bytes) -> str:
    """One of keras, keras_json, npz, npy, csv, tfrecord, image, other."""
    lower = name.lower()
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PK\x03\x04"):
        if lower.endswith(".keras"):
            return "keras"
        return "npz" if lower.endswith(".npz") else "other"
    if head.startswith(_IMAGES) or (lower.endswith(".webp") and head[8:12] == b"WEBP"):
        return "image"
    if lower.endswith(".json"):
        return "keras_json"
    if lower.endswith((".csv", ".tsv")):
        return "csv"
    if lower.endswith((".tfrecord", ".tfrecords")):
        return "tfrecord"
    return "other"


def is_image_name(name: str) -> bool:
    return name.lower().endswith(_IMAGE_SUFFIXES)


def kind_of_folder(names: Sequence[str]) -> str:
    return "tfrecord" if "index.json" in names else "folder"
