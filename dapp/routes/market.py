"""The market as a whole."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from sqlalchemy import select

import trainyard
from dapp.database.models import Block, ParamsRow
from dapp.reading.statistics import account_view, classes_of, market_stats
from dapp.reading.task import params_of
from dapp.routes.answering import written
from dapp.routes.documented import refusals
from dapp.schemas.market import (
    AccountView,
    ClassPage,
    Config,
    Currency,
    Limits,
    MarketParams,
    MarketStats,
)
from dapp.schemas.values import Address
from dapp.services import ServicesDep
from trainyard.chain.artifacts import load_artifact

router = APIRouter(tags=["market"], responses=refusals())
AddressPath = Annotated[Address, Path(description="an account")]


@router.get("/config", response_model=Config)
def config(services: ServicesDep) -> Response:
    """All that a wallet and the page need to begin."""
    settings = services.settings
    with services.database.reading() as session:
        params, newest = (
            params_of(session),
            session.scalar(select(ParamsRow.id).order_by(ParamsRow.id.desc()).limit(1)),
        )
        head = session.scalar(select(Block).order_by(Block.number.desc()).limit(1))
    found = None
    if params is not None and newest is not None:
        values = {name: getattr(params, name) for name in params.__dataclass_fields__}
        found = MarketParams(id=newest, **values)
    return written(
        Config(
            version=trainyard.__version__,
            chain_id=settings.chain_id,
            chain_name=settings.chain_name,
            rpc_url=settings.wallet_rpc_url,
            explorer_tx_url=settings.explorer_tx_url,
            market=settings.market,
            start_block=settings.start_block,
            currency=Currency(),
            params=found,
            abi=list(load_artifact("ITrainingMarket").abi),
            is_devnet=settings.is_devnet,
            has_faucet=services.faucet is not None,
            gateway_url=settings.gateway_url,
            confirmations=settings.confirmations,
            limits=Limits(
                upload_bytes=settings.upload_bytes,
                multipart_bytes=settings.multipart_bytes,
                json_bytes=settings.json_bytes,
                draft_bytes=settings.draft_bytes,
                drafts=settings.drafts,
                page=100,
            ),
            head_block=None if head is None else head.number,
            head_time=None if head is None else head.time,
        )
    )


@router.get("/stats", response_model=MarketStats)
def stats(services: ServicesDep) -> Response:
    """The market in numbers."""
    with services.database.reading() as session:
        return written(market_stats(session))


@router.get("/classes", response_model=ClassPage)
def classes(services: ServicesDep) -> Response:
    """Environment classes with their free capacity and prices."""
    with services.database.reading() as session:
        return written(classes_of(session))


@router.get("/accounts/{address}")
def account(address: AddressPath, services: ServicesDep) -> AccountView:
    """What an address has in the market."""
    with services.database.reading() as session:
        return account_view(session, address)
