"""Where the file-system plugin keeps and finds things, from the environment."""

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from trainyard.content.limits import GIB
from trainyard.content.settings import ContentSettings


def user_cache() -> Path:
    """The user's folder for what can be fetched or built again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trainyard"


class IptfSettings(BaseSettings):
    """Read from IPTF_SOCKET, _CACHE, _CACHE_BYTES, _MFS, _REFLOG and _RUN."""

    model_config = SettingsConfigDict(env_prefix="IPTF_", extra="ignore")

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
