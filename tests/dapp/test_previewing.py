"""Data of strangers, read in the sandbox: what is answered, and what is refused."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.dapp.server import Client, dapp_for, settings_for
from tests.dapp.yard import Yard
from worker_agent.limits import Limits
from worker_agent.sandbox import Sandbox

_TABLE = "a,b,kind\n" + "\n".join(f"{n},{n / 2},{'x' if n > 5 else 'y'}" for n in range(10))


@pytest.fixture(scope="module")
def client(played: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    settings = settings_for(played, tmp_path_factory.mktemp("dapp"))
    with dapp_for(settings, confinement=Sandbox(Limits(wall_s=60.0))) as found:
        yield found


def upload(client: Client, name: str, data: bytes) -> str:
    return str(client.post("/content", files={"file": (name, data)}).json()["cid"])


def look(client: Client, cid: str, **more: Any) -> Any:
    answer = client.post("/data/preview", json={"cid": cid, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_table_is_asked_for_again_by_its_own_columns(client: Client) -> None:
    """As the page does when another part is kept for the test; workers know it as `label`."""
    cid = upload(client, "table.csv", _TABLE.encode())
    first = look(client, cid)
    assert (first["target"], first["predicted"]) == ("label", "kind")
    assert first["predictable"] == ["a", "b", "kind"]

    again = look(client, cid, target=first["predicted"], test_percent=20)

    assert (again["records"], again["test"]["records"]) == (8, 2)
    assert look(client, cid, target="a")["predicted"] == "a"
    refused = client.post("/data/preview", json={"cid": cid, "target": first["target"]})
    assert refused.status_code == 422


def test_labels_that_do_not_fit_are_refused_and_not_changed(client: Client) -> None:
    file = io.BytesIO()
    np.savez(file, x=np.zeros((2, 3), np.float32), y=np.array([0, 2**32 + 1]))

    answer = client.post("/data/preview", json={"cid": upload(client, "data.npz", file.getvalue())})

    assert answer.status_code == 422
    assert "4294967297 does not fit 32 bits" in answer.json()["error"]["message"]
