"""What the server says of itself to those who look after it."""

import re
import threading
from pathlib import Path

import pytest

from dapp.indexer.indexing import Indexer
from dapp.routes import operations
from tests.dapp.server import dapp_for, settings_for, wait_for
from tests.dapp.yard import Yard


def test_an_index_that_is_stuck_is_not_ready(
    played: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def look(indexer: Indexer) -> None:
        go.wait(60)

    monkeypatch.setattr(operations, "_LONGEST_LOOK_S", 0.5)
    with dapp_for(settings_for(played, tmp_path)) as client:
        ready = str(client.base_url.join("/readyz"))
        monkeypatch.setattr(client.app.state.services.follower, "_look", look)

        stuck = wait_for(
            lambda: (found := client.get(ready)).status_code == 503 and found, "the refusal"
        )

        # Nothing failed, and as far as is known nothing is missing.
        assert stuck.json()["lag_blocks"] == 0
        (chain,) = (one for one in stuck.json()["checks"] if one["name"] == "chain")
        assert "the chain was not looked at for" in chain["detail"]
        go.set()


def test_words_of_strangers_are_no_series(played: Yard, tmp_path: Path) -> None:
    """Each would be kept for ever."""
    with dapp_for(settings_for(played, tmp_path)) as client:
        for number in range(40):
            assert client.request(f"ODD{number}", "/stats").status_code == 405
        client.post("/stats")

        metrics = client.get(str(client.base_url.join("/metrics"))).text

    methods = re.findall(r'trainyard_dapp_requests_total\{method="([^"]*)"', metrics)
    assert set(methods) == {"GET", "POST", "other"}
