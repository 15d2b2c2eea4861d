"""The OpenAPI document: true, with examples, and no request of its kind breaks the server.

Schemathesis needs a younger hypothesis than brownie does, so it runs in an environment of its own,
which `make schemathesis` makes.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dapp.schemas
from scripts import page_types
from tests.dapp.server import Client, dapp_for, settings_for
from tests.dapp.yard import Yard

_REPOSITORY = Path(__file__).resolve().parents[2]
_SCHEMATHESIS = _REPOSITORY / "build" / "schemathesis" / "bin" / "schemathesis"
_S = 900


@pytest.fixture(scope="module")
def client(
    played: Yard, postgres: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """On PostgreSQL, which refuses values that SQLite takes for what it can make of them."""
    with dapp_for(settings_for(played, tmp_path_factory.mktemp("dapp"), postgres())) as found:
        yield found


def test_every_route_says_what_it_gives_and_refuses(client: Client) -> None:
    document = client.json("/openapi.json")

    assert document["info"]["title"] == "Trainyard"
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            assert route["summary"], (method, path)
            assert route.get("description"), (method, path)
            if path.startswith("/api/"):
                assert {"422", "429", "503"} <= route["responses"].keys(), (method, path)


def test_every_body_has_an_example_that_fits_it(client: Client) -> None:
    document, tried = client.json("/openapi.json"), set[str]()
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            bodies = [route.get("requestBody", {}), *route["responses"].values()]
            for content in (body.get("content", {}).get("application/json") for body in bodies):
                if not content or "$ref" not in content.get("schema", {}):
                    continue
                name = content["schema"]["$ref"].rpartition("/")[2]
                model = getattr(dapp.schemas, name.partition("-")[0], None)
                if model is not None:
                    model.model_validate(content["example"])
                    tried.add(name)
                assert content["example"], (method, path)
    assert {"QuoteRequest", "FeedBatch", "SignIn", "Task", "Quote", "ResultView"} <= tried


@pytest.mark.parametrize("path", ["/tasks", "/workers"])
def test_cursors_are_shown_by_one_that_is_taken(client: Client, path: str) -> None:
    """So that requests which are made up from them get as far as the database."""
    asked = client.json("/openapi.json")["paths"][f"/api/v1{path}"]["get"]["parameters"]
    (cursor,) = (one for one in asked if one["name"] == "cursor")
    given = [cursor["schema"], *cursor["schema"].get("anyOf", ())]
    (example,) = {text for one in given for text in one.get("examples", ())}

    client.json(path, cursor=example)


def test_the_page_knows_every_schema(client: Client) -> None:
    """Types of the page are written from `dapp.schemas`: what routes use has to be among them."""
    types = page_types.TARGET.read_text()
    for name in client.json("/openapi.json")["components"]["schemas"]:
        if name.startswith(("Body_", "Rpc")):
            # Of forms, and of the chain itself.
            continue
        assert f"export interface {name.partition('-')[0]} {{" in types, name


def test_the_documented_routes_are_the_promised_ones(client: Client) -> None:
    """API.md is what the page is written by."""
    text = (_REPOSITORY / "dapp" / "API.md").read_text()
    for path in client.json("/openapi.json")["paths"]:
        name = path.removeprefix("/api/v1").split("{")[0].rstrip("/") or "/"
        assert name in text, f"{path} is missing in dapp/API.md"


def test_no_generated_request_breaks_the_server(client: Client) -> None:
    # Streams stay open, and would be waited for.
    command = [
        *(str(_SCHEMATHESIS), "run"),
        f"{client.base_url}openapi.json",
        *("--checks", "not_a_server_error", "--max-examples", "15", "--seed", "1"),
        *("--exclude-path", "/api/v1/events", "--request-timeout", "30", "--phases"),
        "examples,coverage,fuzzing",
        # By one thread: Python 3.11 miscounts the depth of what several of them parse at once.
        *("--workers", "1", "--max-failures", "5", "--warnings", "off"),
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "PYTHONPATH")
    }
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_S, env=environment | {"NO_COLOR": "1"}
    )

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    wanted = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in client.json("/openapi.json")["paths"].items()
        for method in methods
    }
    assert wanted - _asked(client) == {("GET", "/events")}


def _asked(client: Client) -> set[tuple[str, str]]:
    """Each operation that was answered since the server began, as it counts them itself."""
    address = str(client.base_url.join("/metrics"))
    found = re.findall(
        r'trainyard_dapp_requests_total\{method="(\w+)",route="([^"]+)"', client.get(address).text
    )
    return set(found)
