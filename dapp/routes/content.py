"""Content: uploads, and what is behind a CID."""

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, File, Header, Path, Query, Request, Response, UploadFile
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, StreamingResponse

from dapp.errors import ApiError, invalid
from dapp.routes.documented import refusals
from dapp.schemas import ContentEntry, ContentStat, Uploaded, UploadStart, UploadState
from dapp.schemas.values import CidText
from dapp.services import Services, ServicesDep
from dapp.settings import scratch_folder
from dapp.uploads import resumable
from dapp.uploads.quota import note_stored, require_room
from dapp.uploads.storing import MOST_FILES, safe_names, store_file, store_folder
from trainyard.content.content import Content
from trainyard.content.names import ContentPath
from trainyard.content.reading import Entry, EntryKind

router = APIRouter(tags=["content"], responses=refusals(404))
UploadId = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{32}$", examples=["a" * 32])]
_SHOWN_ENTRIES = 1000
_COPY_BYTES = 1 << 20
# As tus has it, and as everybody else does.
_PIECES = ("application/offset+octet-stream", "application/octet-stream")


@router.post("/content", status_code=201, responses=refusals(403, 409, 413, 507))
async def add_content(
    services: ServicesDep,
    file: Annotated[list[UploadFile], File(description="one file, or all files of a folder")],
) -> Uploaded:
    """Store files that come in one request; several make up a folder."""
    if len(file) > MOST_FILES:
        raise invalid(f"at most {MOST_FILES} files at once", field="file")
    return await run_in_threadpool(_add, services, file)


@router.post("/uploads", status_code=201, responses=refusals(403, 413, 507))
def begin_upload(
    given: UploadStart, services: ServicesDep, request: Request, response: Response
) -> UploadState:
    """Begin an upload in pieces, which goes on after a broken line."""
    state = resumable.begin(services, given, request.scope["trainyard.client"])
    response.headers["Location"] = f"/api/v1/uploads/{state.id}"
    response.headers["Upload-Offset"] = "0"
    return state


@router.head("/uploads/{upload_id}")
def upload_offset(upload_id: UploadId, services: ServicesDep) -> Response:
    """Where the next piece begins."""
    return Response(headers=_headers(resumable.state_of(services, upload_id)))


@router.get("/uploads/{upload_id}")
def upload_state(upload_id: UploadId, services: ServicesDep) -> UploadState:
    """How far an upload is, and what it became."""
    return resumable.state_of(services, upload_id)


@router.patch(
    "/uploads/{upload_id}",
    responses={
        200: {"model": UploadState, "description": "That was the last piece"},
        204: {"description": "Kept; more is to come"},
        **refusals(403, 404, 408, 409, 413, 415),
    },
    response_class=Response,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {_PIECES[1]: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def append_upload(
    upload_id: UploadId,
    services: ServicesDep,
    request: Request,
    upload_offset: Annotated[int, Header(ge=0, le=2**50)],
) -> Response:
    """Write the next piece. The last one brings the CID."""
    if request.headers.get("content-type", "").split(";")[0].strip() not in _PIECES:
        raise ApiError(415, "unsupported", f"pieces are of the type {_PIECES[0]}")
    try:
        state = await resumable.append(services, upload_id, upload_offset, request.stream())
    except resumable.WrongOffsetError as error:
        found = {"code": error.code, "message": error.message}
        return JSONResponse(
            {"error": found}, status_code=409, headers={"Upload-Offset": str(error.offset)}
        )
    if state.uploaded is None:
        return Response(status_code=204, headers=_headers(state))
    return JSONResponse(state.model_dump(mode="json"), headers=_headers(state))


@router.delete("/uploads/{upload_id}", status_code=204, responses=refusals(403, 404, 409))
def remove_upload(upload_id: UploadId, services: ServicesDep) -> None:
    """Give an upload up."""
    resumable.remove(services, upload_id)


@router.get("/content/{cid}")
def content_stat(cid: CidText, services: ServicesDep) -> ContentStat:
    """What is behind a CID that is in this server's store."""
    path = ContentPath.parse(cid)
    # What we lack is not looked for elsewhere: whoever asks could keep us at it for ever.
    entry = services.stored.stat(path)
    entries: list[Entry] = []
    if entry.kind is EntryKind.DIRECTORY:
        entries = services.stored.ls(path)
    return ContentStat.model_validate(
        {
            "cid": str(entry.cid),
            "kind": entry.kind.value,
            "size": entry.size,
            "entries": [
                ContentEntry.model_validate(
                    {
                        "name": one.name,
                        "cid": str(one.cid),
                        "kind": one.kind.value,
                        "size": one.size,
                    }
                )
                for one in entries[:_SHOWN_ENTRIES]
            ],
            "is_cut": len(entries) > _SHOWN_ENTRIES,
        }
    )


@router.get("/content/{cid}/raw", response_class=Response)
def content_raw(
    cid: CidText,
    services: ServicesDep,
    filename: Annotated[str, Query(max_length=120, pattern=r"^[A-Za-z0-9_.-]*$")] = "",
) -> Response:
    """The bytes of a file, each block verified before it is sent; always as a download."""
    path = ContentPath.parse(cid)
    return download(services.stored, path, filename or str(path.root))


def download(content: Content, path: ContentPath, name: str) -> Response:
    entry = content.stat(path)
    if entry.kind is not EntryKind.FILE:
        raise ApiError(404, "not_found", "that is no file")

    def pieces() -> Iterator[bytes]:
        for piece in content.cat(ContentPath(entry.cid)):
            yield bytes(piece)

    return StreamingResponse(
        pieces(),
        media_type="application/octet-stream",
        headers={
            "Content-Length": str(entry.size),
            "Content-Disposition": f'attachment; filename="{quote(name)}"',
            "X-Content-Cid": str(entry.cid),
        },
    )


def _add(services: Services, files: list[UploadFile]) -> Uploaded:
    with scratch_folder(services.settings, "multipart-") as name:
        folder = FilePath(name)
        taken: dict[str, FilePath] = {}
        for number, one in enumerate(files):
            path = one.filename or "file"
            safe_names(path)
            if path in taken:
                raise ApiError(409, "twice", f"two files are called {path[:200]!r}")
            taken[path] = folder / str(number)
            _copy(one, taken[path])
        require_room(services, sum(path.stat().st_size for path in taken.values()))
        stored = _store(services.content, folder, taken)
    note_stored(services, stored.cid, stored.size)
    return stored


def _store(content: Content, folder: FilePath, taken: dict[str, FilePath]) -> Uploaded:
    if len(taken) == 1 and "/" not in next(iter(taken)):
        (only, path), *_ = taken.items()
        return store_file(content, path, only)
    tree = folder / "tree"
    tree.mkdir()
    return store_folder(content, tree, taken)


def _copy(source: UploadFile, target: FilePath) -> None:
    with target.open("wb") as file:
        while data := source.file.read(_COPY_BYTES):
            file.write(data)


def _headers(state: UploadState) -> dict[str, str]:
    return {"Upload-Offset": str(state.offset), "Upload-Length": str(state.size)}
