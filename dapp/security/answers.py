"""Every refusal in one form."""

from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from dapp.errors import ApiError
from dapp.schemas.values import Problem, ProblemDetail
from dapp.security.telling import told
from trainyard.content.errors import (
    InvalidCidError,
    InvalidPathError,
    IsADirectoryContentError,
    NotADirectoryContentError,
    NotFoundError,
    UnavailableError,
)
from trainyard.protocol.errors import PermanentError, TrainyardError, TransientError
from trainyard.protocol.manifest.errors import ManifestError

_CODES = {
    400: "malformed",
    401: "signed_out",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    415: "unsupported",
}
_LONGEST = 2_000


def problem_response(error: ApiError) -> JSONResponse:
    detail = ProblemDetail(
        code=error.code,
        message=error.message[:_LONGEST],
        fix=error.fix,
        field=error.field,
        retry_after_s=error.retry_after_s,
    )
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    return JSONResponse(
        Problem(error=detail).model_dump(mode="json"), status_code=error.status, headers=headers
    )


def api_error(error: TrainyardError) -> ApiError:
    """What the layers below raise, as an answer."""
    text = told(error)
    match error:
        case ManifestError():
            return ApiError(422, "invalid_manifest", text, field=error.path or None)
        case InvalidCidError() | InvalidPathError():
            return ApiError(422, "invalid_cid", text, fix="a CID begins with bafy, bafk or Qm")
        case NotFoundError() | NotADirectoryContentError() | IsADirectoryContentError():
            return ApiError(404, "not_found", text)
        case UnavailableError():
            return ApiError(404, "content_unavailable", text, fix="upload it, or name who has it")
        case TransientError():
            return ApiError(503, "unavailable", text, retry_after_s=2.0)
        case PermanentError():
            return ApiError(422, "refused", text)
    return ApiError(503, "unavailable", text, retry_after_s=2.0)


def add_handlers(app: FastAPI) -> None:
    def of_api(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ApiError)
        return problem_response(error)

    def of_ours(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, TrainyardError)
        return problem_response(api_error(error))

    def of_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        found = problem_response(_of_http(error))
        for name, value in (error.headers or {}).items():
            found.headers[name] = value
        return found

    def of_values(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return problem_response(_of_values(error))

    def of_database(request: Request, error: Exception) -> JSONResponse:
        structlog.get_logger().warning("database", reason=type(error).__name__)
        return problem_response(
            ApiError(503, "unavailable", "the database is busy", retry_after_s=1.0)
        )

    app.add_exception_handler(ApiError, of_api)
    app.add_exception_handler(TrainyardError, of_ours)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_values)
    app.add_exception_handler(OperationalError, of_database)


def _of_http(error: HTTPException) -> ApiError:
    detail: Any = error.detail
    if isinstance(detail, dict):
        return ApiError(
            error.status_code, detail["code"], str(detail["message"]), fix=detail.get("fix")
        )
    return ApiError(error.status_code, _CODES.get(error.status_code, "refused"), str(detail))


def _of_values(error: RequestValidationError) -> ApiError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    status, code = (400, "malformed") if first["type"] == "json_invalid" else (422, "invalid")
    reason = str(first["msg"]).removeprefix("Value error, ")
    return ApiError(status, code, f"{where[:200]}: {reason}", field=where[:200])
