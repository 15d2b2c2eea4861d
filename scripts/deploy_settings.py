"""What a deployment needs to know, from the environment and a parameter file.

TRAINYARD_CURRENCY  address of the market's ERC-20 token, or `native` (the default)
TRAINYARD_OWNER     address that may pause and tune; by default the deploying account
TRAINYARD_PARAMS    TOML file, one key per field of `Params`; by default deployments/params.toml
TRAINYARD_ACCOUNT   brownie account that deploys; a development chain has one of its own
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from eth_utils.address import is_checksum_address, to_checksum_address

from trainyard.protocol.market import NATIVE_CURRENCY, Params

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_PARAMS = ROOT / "deployments" / "params.toml"


class DeploySettingsError(ValueError):
    """A setting is missing or wrong; the message names it and the fix."""


@dataclass(frozen=True, slots=True)
class DeploySettings:
    currency: str
    owner: str | None
    account: str | None
    params: Params


def read_deploy_settings(environment: Mapping[str, str]) -> DeploySettings:
    owner = environment.get("TRAINYARD_OWNER")
    return DeploySettings(
        currency=_currency(environment.get("TRAINYARD_CURRENCY", "native")),
        owner=_address("TRAINYARD_OWNER", owner) if owner else None,
        account=environment.get("TRAINYARD_ACCOUNT"),
        params=_read_params(Path(environment.get("TRAINYARD_PARAMS", DEFAULT_PARAMS))),
    )


def _read_params(path: Path) -> Params:
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise DeploySettingsError(
            f"TRAINYARD_PARAMS: there is no file {path}; start from deployments/params.toml"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise DeploySettingsError(f"TRAINYARD_PARAMS: {path} is no TOML: {error}") from error
    wanted = [field.name for field in fields(Params)]
    problems = [
        *(f"{name} is missing" for name in wanted if name not in values),
        *(f"{name} is unknown" for name in values if name not in wanted),
        *(f"{name} must be a whole number" for name, v in values.items() if not _is_amount(v)),
    ]
    if problems:
        raise DeploySettingsError(f"TRAINYARD_PARAMS: {path}: {'; '.join(problems)}")
    return Params(**values)


def _is_amount(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _currency(text: str) -> str:
    return NATIVE_CURRENCY if text == "native" else _address("TRAINYARD_CURRENCY", text)


def _address(variable: str, text: str) -> str:
    try:
        address = to_checksum_address(text)
    except ValueError:
        raise DeploySettingsError(f"{variable}: {text!r} is no address") from None
    # Mixed case is a checksum: a typo in it would send money to nobody.
    if text.lower() != text and not is_checksum_address(text):
        raise DeploySettingsError(f"{variable}: {text} has a wrong checksum, is it {address}?")
    return address
