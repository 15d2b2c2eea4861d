"""What the API refuses, each with its status, its code and what to do about it."""

from trainyard.protocol.errors import PermanentError


class SettingsError(PermanentError):
    """A setting is missing or cannot be; the message names the variable and says what to set."""


class ApiError(Exception):
    """An answer that is not 2xx."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        fix: str | None = None,
        field: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.fix, self.field, self.retry_after_s = fix, field, retry_after_s


def not_found(message: str, fix: str | None = None) -> ApiError:
    return ApiError(404, "not_found", message, fix=fix)


def invalid(message: str, *, field: str | None = None, fix: str | None = None) -> ApiError:
    return ApiError(422, "invalid", message, field=field, fix=fix)


def unavailable(message: str, *, retry_after_s: float = 2.0) -> ApiError:
    return ApiError(503, "unavailable", message, retry_after_s=retry_after_s)
