"""JSON-RPC to the chain's node from the page's own origin: a few methods, and nothing else."""

from typing import Annotated, Any, Literal

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from fastapi import APIRouter
from hexbytes import HexBytes
from pydantic import ConfigDict, Field

from dapp.errors import ApiError, invalid
from dapp.routes.documented import refusals
from dapp.schemas.values import Answer, Question
from dapp.services import Services, ServicesDep
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import NodeRefusedError, RevertedError
from trainyard.chain.quantities import parse_number

router = APIRouter(tags=["chain"], responses=refusals(403))
Method = Literal[
    "eth_blockNumber",
    "eth_call",
    "eth_chainId",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByNumber",
    "eth_getCode",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_maxPriorityFeePerGas",
    "eth_sendRawTransaction",
]
_SEND = "eth_sendRawTransaction"
# What has a node compute.
_TRIED = frozenset({"eth_call", "eth_estimateGas"})
_CALL_FIELDS = frozenset(
    {
        "data",
        "from",
        "gas",
        "gasPrice",
        "input",
        "maxFeePerGas",
        "maxPriorityFeePerGas",
        "nonce",
        "to",
        "type",
        "value",
    }
)
# A block's worth, which no call to the market comes near.
_MOST_GAS = 30_000_000
_REVERTED, _REFUSED = 3, -32000
_LONGEST_RAW = 256 << 10


class RpcRequest(Question):
    """One request; batches are not taken."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: int | str | None = None
    method: Method
    params: Annotated[list[Any], Field(max_length=4)] = Field(default_factory=list)


class _Told(Answer):
    """Of JSON-RPC: fields that say nothing are left out."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=False)


class RpcError(_Told):
    code: int
    message: str
    # What a call reverted with, which the page decodes by the ABI.
    data: str | None = None


class RpcResponse(_Told):
    jsonrpc: Literal["2.0"] = "2.0"
    id: int | str | None
    result: Any = None
    error: RpcError | None = None


@router.post("/rpc", response_model_exclude_unset=True)
def rpc(request: RpcRequest, services: ServicesDep) -> RpcResponse:
    """Pass a request on to the chain; only signed transactions to the market are sent, and only
    its functions are called."""
    params = request.params
    if request.method == _SEND:
        _require_ours(services, params)
    elif request.method in _TRIED:
        params = _bounded_call(services, params)

    def ask(endpoints: Endpoints, _: MarketClient) -> Any:
        return endpoints.call(request.method, *params)

    try:
        result = services.passing.ask(ask)
    except RevertedError as error:
        data = f"0x{error.data.hex()}" if error.data else None
        failure = RpcError(code=_REVERTED, message=str(error), data=data)
        return RpcResponse(id=request.id, error=failure)
    except NodeRefusedError as error:
        code = error.code or _REFUSED
        return RpcResponse(id=request.id, error=RpcError(code=code, message=str(error)))
    if request.method == _SEND:
        services.follower.wake()
    return RpcResponse(id=request.id, result=result)


def _bounded_call(services: Services, params: list[Any]) -> list[Any]:
    """A call of the market with its gas bounded: no code but the market's runs for strangers."""
    call = params[0] if params else None
    # A third parameter would put other code and other money into the state.
    if not isinstance(call, dict) or len(params) > 2:
        raise invalid("give a call, and at most a block", field="body.params")
    if unknown := sorted(call.keys() - _CALL_FIELDS):
        raise invalid(f"a call has no {unknown[0][:40]!r} here", field="body.params")
    if str(call.get("to")).lower() != services.settings.market.lower():
        raise ApiError(403, "other_target", "only the market is called")
    if any(len(str(given)) > _LONGEST_RAW for given in call.values()):
        raise invalid("the call is too long", field="body.params")
    return [call | {"gas": hex(_gas(call.get("gas")))}, *params[1:]]


def _gas(given: Any) -> int:
    if given is None:
        return _MOST_GAS
    try:
        gas = parse_number(given)
    except ValueError:
        raise invalid("gas is a number such as 0x5208", field="body.params") from None
    if gas > _MOST_GAS:
        raise invalid(f"a call has at most {_MOST_GAS:,} gas", field="body.params")
    return gas


def _require_ours(services: Services, params: list[Any]) -> None:
    """The server relays nothing that it cannot verify: what is no transaction, or for others."""
    raw = params[0] if len(params) == 1 else None
    if not isinstance(raw, str) or not raw.startswith("0x") or len(raw) > _LONGEST_RAW:
        raise ApiError(422, "invalid", "give one raw transaction", field="body.params")
    try:
        Account.recover_transaction(raw)
        target = _target(HexBytes(raw))
    except Exception as error:
        # eth_account raises whatever its decoders do: all of it means that it is no transaction.
        raise ApiError(
            422, "invalid", "that is no signed transaction", field="body.params"
        ) from error
    if not services.settings.is_devnet and target != services.settings.market.lower():
        raise ApiError(403, "other_target", "only transactions to the market are passed on")


def _target(raw: HexBytes) -> str:
    if raw[0] < 0x80:
        to = TypedTransaction.from_bytes(raw).as_dict()["to"]
        return f"0x{bytes(to).hex()}"
    raise ApiError(422, "invalid", "only typed transactions (EIP-2718) are passed on")
