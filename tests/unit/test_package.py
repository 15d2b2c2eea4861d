"""The package as it is installed: its version, its command and the contracts it ships."""

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

import trainyard
from scripts.compile_contracts import DEPLOYED
from trainyard.chain import ArtifactNotFoundError, load_artifact
from trainyard.cli.app import app


def test_version_is_that_of_the_distribution() -> None:
    assert trainyard.__version__ == version("trainyard")


def test_command_prints_the_version() -> None:
    outcome = CliRunner().invoke(app, ["--version"])

    assert outcome.exit_code == 0
    assert outcome.output == f"trainyard {trainyard.__version__}\n"


@pytest.mark.parametrize("name", DEPLOYED)
def test_deployed_contracts_ship_their_creation_code(name: str) -> None:
    artifact = load_artifact(name)

    assert artifact.name == name
    assert artifact.bytecode is not None
    # Solidity sets up its memory first: PUSH1 0x80, or PUSH2 where immutables need room.
    assert artifact.bytecode[0] in (0x60, 0x61)


def test_interface_covers_all_parts_of_the_market() -> None:
    interface = load_artifact("ITrainingMarket")

    assert interface.bytecode is None
    functions = {entry["name"] for entry in interface.abi if entry["type"] == "function"}
    assert {"deposit", "post", "settle", "challenge"} <= functions


def test_unknown_contract_is_refused_by_name() -> None:
    with pytest.raises(ArtifactNotFoundError, match=r"no contract 'Nothing'.*TrainingMarket"):
        load_artifact("Nothing")
