"""Names in directories, and paths below a CID. What could lead out of a folder is refused."""

from dataclasses import dataclass
from urllib.parse import unquote

from trainyard.content.cid import Cid
from trainyard.content.errors import InvalidPathError

_LONGEST_NAME = 255


def check_name(name: str) -> str:
    """`name`, if it can stand in a directory and be written to a disk without leaving it."""
    if name in ("", ".", ".."):
        raise InvalidPathError(f"{name!r} cannot be a name in a directory")
    if "/" in name or "\0" in name:
        raise InvalidPathError(f"the name {name!r} has a slash or a zero byte in it")
    if len(name.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
        raise InvalidPathError(f"the name {name[:40]!r}… has over {_LONGEST_NAME} bytes")
    return name


@dataclass(frozen=True, slots=True)
class ContentPath:
    """A CID and the names below it that lead to a file or directory."""

    root: Cid
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "ContentPath":
        """`<cid>[/name…]`, also behind `ipfs://`, `/ipfs/` or `iptf://ipfs/`."""
        rest = text
        for prefix in ("ipfs://", "iptf://ipfs/", "/ipfs/"):
            if text.startswith(prefix):
                rest = text.removeprefix(prefix)
                break
        root, *names = rest.split("/")
        kept = [name for name in names if name not in ("", ".")]
        return cls(Cid.parse(root), tuple(check_name(name) for name in kept))

    @classmethod
    def parse_url(cls, path: str) -> "ContentPath":
        """The same from the path of a URL, whose names are percent-encoded."""
        parts = [unquote(part, errors="surrogateescape") for part in path.split("/")]
        if any("/" in part for part in parts):
            raise InvalidPathError(f"{path!r} has a slash inside a name")
        return cls.parse("/".join(parts))

    def child(self, name: str) -> "ContentPath":
        return ContentPath(self.root, (*self.names, name))

    def __str__(self) -> str:
        return "/".join([str(self.root), *self.names])
