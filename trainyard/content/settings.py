"""Where content is kept and sought, from the environment, and the wiring that follows from it."""

from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.kubo import KuboStore
from trainyard.content.ports import BlockSource, ContentStore


def default_store() -> Path:
    return Path.home() / ".local" / "share" / "trainyard" / "content"


class ContentSettings(BaseSettings):
    """Read from TRAINYARD_STORE, _KUBO, _GATEWAYS, _TIMEOUT_S and _HEDGE_S."""

    model_config = SettingsConfigDict(env_prefix="TRAINYARD_", extra="ignore")

    store: Path = Field(default_factory=default_store, description="folder of the embedded store")
    kubo: str | None = Field(
        default=None, description="address of a Kubo node's RPC, to keep content there"
    )
    gateways: str = Field(
        default="", description="trustless gateways to fetch from, separated by commas"
    )
    timeout_s: float = Field(default=30.0, gt=0, description="how long a source may be silent")
    hedge_s: float = Field(
        default=2.0, ge=0, description="when to ask a second source beside the first"
    )

    @field_validator("store")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @property
    def gateway_addresses(self) -> list[str]:
        return [address.strip() for address in self.gateways.split(",") if address.strip()]


def open_content(settings: ContentSettings) -> Content:
    """The content plane that the settings describe."""
    timeout_s = settings.timeout_s
    sources: list[BlockSource] = [
        GatewaySource(address, timeout_s=timeout_s) for address in settings.gateway_addresses
    ]
    store: ContentStore
    if settings.kubo is None:
        store = EmbeddedStore(settings.store)
    else:
        store = KuboStore(settings.kubo, timeout_s=timeout_s)
    return Content(store, sources, hedge_s=settings.hedge_s)
