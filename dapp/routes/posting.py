"""Posting a task: examples, models, data, manifests, quotes, pre-flight, and the faucet."""

from typing import Annotated

from fastapi import APIRouter, Path

from dapp.errors import not_found
from dapp.posting.describing import layers_of, summary_of
from dapp.posting.examples import add_example, examples
from dapp.posting.manifests import cid_of, document_of
from dapp.posting.models import read_model
from dapp.posting.preflight import preflight
from dapp.posting.quoting import quote
from dapp.previewing.previewing import preview_data
from dapp.routes.documented import refusals
from dapp.routes.tasks import read_manifest
from dapp.schemas import (
    DataPreview,
    Examples,
    ExampleTask,
    FaucetGrant,
    FaucetRequest,
    ManifestView,
    ManifestWrite,
    ModelRequest,
    ModelView,
    Preflight,
    PreflightRequest,
    PreviewRequest,
    Quote,
    QuoteRequest,
)
from dapp.schemas.posting import ManifestRead
from dapp.schemas.values import Hex32
from dapp.services import ServicesDep
from dapp.uploads.quota import note_stored, require_room

router = APIRouter(tags=["posting"], responses=refusals(403, 404, 409, 413, 507))


@router.get("/examples")
def list_examples() -> Examples:
    """Models with data to begin with."""
    return examples()


@router.post("/examples/{name}")
def use_example(
    name: Annotated[str, Path(pattern="^[a-z]{1,20}$", examples=["moons"])], services: ServicesDep
) -> ExampleTask:
    """Put an example's data into the store; its manifest then names it."""
    return add_example(services, name)


@router.post("/models")
def models(given: ModelRequest, services: ServicesDep) -> ModelView:
    """Read a `.keras` file or a Keras JSON, in the sandbox."""
    return read_model(services, given.cid)


@router.post("/data/preview")
def data_preview(given: PreviewRequest, services: ServicesDep) -> DataPreview:
    """Look at a data set, and write it as content that workers can read."""
    return preview_data(services, given)


@router.post("/manifests")
def add_manifest(given: ManifestWrite, services: ServicesDep) -> ManifestView:
    """Validate a manifest, and keep it where workers find it."""
    require_room(services, 0)
    manifest = services.manifests.add(given.manifest)
    note_stored(services, cid_of(manifest.digest), len(manifest.canonical))
    return ManifestView(
        digest=f"0x{manifest.digest.hex()}",
        cid=str(cid_of(manifest.digest)),
        manifest=document_of(manifest),
        summary=summary_of(manifest),
        layers=layers_of(manifest.model),
    )


@router.get("/manifests/{digest}")
def get_manifest(digest: Hex32, services: ServicesDep) -> ManifestRead:
    """The manifest of a digest, or why it cannot be read."""
    return read_manifest(services, digest)


@router.post("/quotes")
def quotes(given: QuoteRequest, services: ServicesDep) -> Quote:
    """Terms with good defaults, and what they mean."""
    return quote(services, given)


@router.post("/preflight")
def check_before(given: PreflightRequest, services: ServicesDep) -> Preflight:
    """Everything that can go wrong, looked at before the wallet opens."""
    return preflight(services, given)


@router.post("/faucet")
def faucet(given: FaucetRequest, services: ServicesDep) -> FaucetGrant:
    """Money to try a devnet out with."""
    if services.faucet is None:
        raise not_found("this chain has no faucet")
    return services.faucet.grant(given.address)
