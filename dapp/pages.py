"""The built page, from the same origin as the API."""

from pathlib import Path

from fastapi import FastAPI
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
            return _answer(found, path)
        if path.startswith(f"{_ASSETS}/"):
            return problem_response(ApiError(404, "not_found", "there is no such file"))
        if _INDEX not in files:
            return PlainTextResponse(_MISSING, status_code=503)
        return _answer(files[_INDEX], _INDEX)

    app.router.routes.append(Route("/{path:path}", page, methods=["GET", "HEAD"]))


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    return {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }


def _answer(path: Path, name: str) -> FileResponse:
    # Names below `assets` have the hash of what is in them.
    is_hashed = name.startswith(f"{_ASSETS}/")
    return FileResponse(
        path,
        media_type=_TYPES.get(path.suffix, "application/octet-stream"),
        headers={"Cache-Control": _FOREVER if is_hashed else "no-cache"},
    )
