"""What is tested and deployed here is what the Python package ships."""

import pytest
from brownie.project import get_loaded_projects

from scripts.compile_contracts import DEPLOYED
from trainyard.chain import load_artifact


@pytest.mark.parametrize("name", DEPLOYED)
def test_shipped_bytecode_is_what_brownie_deploys(name):
    [project] = get_loaded_projects()

    assert load_artifact(name).bytecode.hex() == project[name].bytecode
