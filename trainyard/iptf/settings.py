"""Where the file-system plugin keeps and finds things, from the environment."""

import os
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from trainyard.content.limits import GIB
from trainyard.content.settings import ContentSettings
from trainyard.protocol.errors import PermanentError


def user_cache() -> Path:
    """The user's folder for what can be fetched or built again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trainyard"


class BadSettingError(PermanentError):
    """A variable of the environment has a value that cannot be used; says which, and why."""


class IptfSettings(BaseSettings):
    """Read from IPTF_SOCKET, _CACHE, _CACHE_BYTES, _MFS, _REFLOG and _RUN."""

    model_config = SettingsConfigDict(env_prefix="IPTF_", extra="ignore", env_ignore_empty=True)

    socket: Path | None = Field(
        default=None, description="the gate to join, instead of starting one"
    )
    cache: Path = Field(
        default_factory=lambda: user_cache() / "iptf", description="folder of verified files"
    )
    cache_bytes: int = Field(default=20 * GIB, gt=0, description="how much the cache may hold")
    mfs: Path | None = Field(
        default=None, description="folder behind iptf://mfs; in the store by default"
    )
    reflog: Path | None = Field(
        default=None, description="the reflog's file; in the store by default"
    )
    run: int | None = Field(default=None, description="the run that reads are recorded under")

    def mfs_in(self, content: ContentSettings) -> Path:
        return self.mfs or content.store / "mfs"

    def reflog_in(self, content: ContentSettings) -> Path:
        return self.reflog or content.store / "reflog.sqlite"


def read_settings() -> tuple[IptfSettings, ContentSettings]:
    """The settings in the environment; raises BadSettingError."""
    try:
        return IptfSettings(), ContentSettings()
    except ValidationError as error:
        prefix = "IPTF_" if error.title == IptfSettings.__name__ else "TRAINYARD_"
        raise BadSettingError(bad_variable(error, prefix)) from error


def bad_variable(error: ValidationError, prefix: str) -> str:
    """Which variable is wrong and why, in a line."""
    first = error.errors()[0]
    name = prefix + "_".join(str(step) for step in first["loc"]).upper()
    return f"{name}: {first['msg']}"
