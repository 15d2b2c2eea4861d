"""The built page, from the same origin as the API."""

import gzip
import re
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from dapp.errors import ApiError
from dapp.security.answers import problem_response

BUILT = Path(__file__).resolve().parent / "static"
_INDEX, _ASSETS = "index.html", "assets"
_OTHERS = ("api", "ipfs", "healthz", "readyz", "metrics", "relay")
_FOREVER = "public, max-age=31536000, immutable"
_MISSING = "The page is not built. Run 'make page' in the repository; the API is at /api/v1.\n"
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
# The others are compressed in themselves.
_TEXTS = frozenset({".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"})
_MOST_KEPT = 256
_ZERO = re.compile(r"q=0(\.0*)?")


def add_page(app: FastAPI, static: Path | None) -> None:
    """Files of the page; all other paths are its own routes, which the page itself knows."""
    files = _files(static or BUILT)

    async def page(request: Request) -> Response:
        # Looked up among the names that were there at the start: no path leads anywhere else.
        path = request.path_params["path"]
        if path.split("/", 1)[0] in _OTHERS:
            return problem_response(ApiError(404, "not_found", "there is no such route"))
        found = files.get(path)
        if found is not None:
            return await _answer(request, found, path)
        if path.startswith(f"{_ASSETS}/"):
            return problem_response(ApiError(404, "not_found", "there is no such file"))
        if _INDEX not in files:
            return PlainTextResponse(_MISSING, status_code=503)
        return await _answer(request, files[_INDEX], _INDEX)

    app.router.routes.append(Route("/{path:path}", page, methods=["GET", "HEAD"]))


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    return {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }


async def _answer(request: Request, path: Path, name: str) -> Response:
    # Names below `assets` have the hash of what is in them.
    is_hashed = name.startswith(f"{_ASSETS}/")
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    headers = {"Cache-Control": _FOREVER if is_hashed else "no-cache"}
    if path.suffix not in _TEXTS:
        return FileResponse(path, media_type=kind, headers=headers)
    headers["Vary"] = "Accept-Encoding"
    if not _takes_gzip(request.headers.get("accept-encoding", "")):
        return FileResponse(path, media_type=kind, headers=headers)
    body, tag = await run_in_threadpool(_packed, path)
    headers["ETag"] = tag
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(body, media_type=kind, headers=headers)


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return _ZERO.fullmatch(weight.strip()) is None
    return False


def _packed(path: Path) -> tuple[bytes, str]:
    """The file as it is now, compressed, and the tag of that form of it."""
    found = path.stat()
    tag = f'"{found.st_mtime_ns:x}-{found.st_size:x}-gzip"'
    return packed(path, tag), tag


@lru_cache(_MOST_KEPT)
def packed(path: Path, tag: str = "") -> bytes:
    """What is sent of a file to whoever takes gzip; made once for each `tag`."""
    return gzip.compress(path.read_bytes(), 9, mtime=0)
