"""The WebAssembly compiler behind the native command line."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

SOLC = Path(__file__).resolve().parents[2] / "scripts" / "solc" / "solc.js"
HEADER = "// SPDX-License-Identifier: Apache-2.0\npragma solidity >=0.8.0;\n"


def solc(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["node", str(SOLC), *arguments], cwd=cwd, input=stdin, capture_output=True, text=True
    )


def standard_json(cwd: Path, sources: dict[str, Any], *arguments: str, **settings: Any) -> Any:
    request = {
        "language": "Solidity",
        "sources": sources,
        "settings": {"outputSelection": {"*": {"*": ["abi", "evm.bytecode.object"]}}, **settings},
    }
    outcome = solc("--standard-json", *arguments, cwd=cwd, stdin=json.dumps(request))
    assert outcome.returncode == 0, outcome.stderr
    return json.loads(outcome.stdout)


def bytecode(answer: Any, source: str, name: str) -> str:
    return str(answer["contracts"][source][name]["evm"]["bytecode"]["object"])


def test_version_has_the_form_that_tools_parse(tmp_path: Path) -> None:
    outcome = solc("--version", cwd=tmp_path)

    assert outcome.returncode == 0
    assert "Version: 0.8." in outcome.stdout
    assert "+commit." in outcome.stdout


def test_standard_json_reads_imports_and_remappings_from_disk(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "Base.sol").write_text(HEADER + "contract Base {}")
    source = HEADER + 'import {Base} from "@base/Base.sol"; contract A is Base {}'

    answer = standard_json(
        tmp_path, {"A.sol": {"content": source}}, remappings=["@base/=lib/"], evmVersion=None
    )

    assert "errors" not in answer
    assert bytecode(answer, "A.sol", "A") != ""


def test_output_follows_a_changed_import(tmp_path: Path) -> None:
    imported = tmp_path / "Base.sol"
    sources = {"A.sol": {"content": HEADER + 'import "./Base.sol"; contract A is Base {}'}}
    imported.write_text(HEADER + "contract Base { uint256 public x = 1; }")
    before = bytecode(standard_json(tmp_path, sources), "A.sol", "A")
    again = bytecode(standard_json(tmp_path, sources), "A.sol", "A")

    imported.write_text(HEADER + "contract Base { uint256 public x = 2; }")
    after = bytecode(standard_json(tmp_path, sources), "A.sol", "A")

    assert before == again
    assert before != after


def test_urls_are_read_from_include_paths(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "B.sol").write_text(HEADER + "contract B {}")

    answer = standard_json(
        tmp_path, {"B.sol": {"urls": ["B.sol"]}}, "--base-path", ".", "--include-path", "vendor"
    )

    assert bytecode(answer, "B.sol", "B") != ""


def test_missing_import_is_an_error_of_the_compiler(tmp_path: Path) -> None:
    answer = standard_json(tmp_path, {"A.sol": {"content": HEADER + 'import "./Nowhere.sol";'}})

    assert "Nowhere.sol" in answer["errors"][0]["formattedMessage"]


def test_combined_json_holds_what_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "A.sol").write_text(HEADER + "contract A { function f() external {} }")

    outcome = solc("A.sol", "--combined-json", "abi,ast,hashes", "--optimize", cwd=tmp_path)

    answer = json.loads(outcome.stdout)
    assert answer["sourceList"] == ["A.sol"]
    assert answer["contracts"]["A.sol:A"]["hashes"] == {"f()": "26121ff0"}
    assert answer["sources"]["A.sol"]["AST"]["nodeType"] == "SourceUnit"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frobnicate"], "unrecognised option '--frobnicate'"),
        (["--evm-version"], "option '--evm-version' needs a value"),
        ([], "no input files given"),
    ],
)
def test_wrong_usage_is_named(arguments: list[str], message: str, tmp_path: Path) -> None:
    outcome = solc(*arguments, cwd=tmp_path)

    assert outcome.returncode == 1
    assert message in outcome.stderr


def test_error_in_a_source_ends_with_failure(tmp_path: Path) -> None:
    (tmp_path / "Bad.sol").write_text(HEADER + "contract {")

    outcome = solc("Bad.sol", "--combined-json", "abi", cwd=tmp_path)

    assert outcome.returncode == 1
    assert "ParserError" in outcome.stderr
