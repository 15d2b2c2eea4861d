"""Energy is estimated from CPU time, by what codecarbon says of the machine, and stays quiet."""

import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from trainyard.engine import energy
from trainyard.engine.costs import Costs
from trainyard.engine.energy import Energy, Meter, Power, find_power, find_watts
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.state import State

# Any look beyond this machine is an error, and the working folder tells what is left behind.
ASK = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        raise RuntimeError(f"{event} {arguments}")
sys.addaudithook(refuse)
from pathlib import Path
from trainyard.engine.energy import find_power
print(find_power(Path("cache", "power.json"), Path("nowhere")).model_dump_json())
"""


def counters(folder: Path, joules: float) -> Path:
    """RAPL's files as Linux shows them, with one processor."""
    zone = folder / "intel-rapl:0"
    zone.mkdir(parents=True, exist_ok=True)
    (zone / "name").write_text("package-0\n")
    (zone / "energy_uj").write_text(f"{int(joules * 1e6)}\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    return folder


def stat(folder: Path, busy_s: float) -> Path:
    """The first line of /proc/stat: half of it users, half the system, and much idling."""
    half = int(busy_s * 50)
    (folder / "stat").write_text(f"cpu  {half} 0 {half} 99999 777 0 0 0 55 0\ncpu0 1 2 3\n")
    return folder / "stat"


def work() -> float:
    """Use some CPU time, and say how much."""
    began = time.process_time()
    while time.process_time() - began < 0.05:
        sum(range(1000))
    return time.process_time() - began


def fail(cores: int) -> Power:
    raise KeyError("TDP")


def test_codecarbon_is_asked_once_without_network_noise_or_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "_look_up", fail)

    asked = subprocess.run(
        [sys.executable, "-c", ASK], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    power = Power.model_validate_json(asked.stdout)
    assert power.by in ("tdp", "default")
    assert 0 < power.core_w < 500
    assert asked.stderr == ""
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert found == {"cache", "cache/power.json"}
    assert find_power(tmp_path / "cache" / "power.json", tmp_path / "nowhere") == power


@pytest.mark.parametrize("kept", ["", "{}", '{"machine": {"processor": "other"}}'])
def test_what_is_kept_of_another_machine_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    monkeypatch.setattr(energy, "_look_up", lambda cores: Power(by="tdp", core_w=7.0))
    path = tmp_path / "power.json"
    path.write_text(kept)

    assert find_power(path, tmp_path) == Power(by="tdp", core_w=7.0)
    assert '"core_w":7.0' in path.read_text()


def test_watts_are_known_also_where_counters_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "_look_up", lambda cores: Power(by="tdp", core_w=7.0))
    monkeypatch.setattr(energy, "RAPL", counters(tmp_path / "rapl", joules=5))
    path = tmp_path / "power.json"

    assert find_watts(path) == Power(by="tdp", core_w=7.0)
    assert find_power(path, energy.RAPL) == Power(by="rapl", counters=energy.RAPL)


def test_without_codecarbon_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name: None if name == "codecarbon" else find_spec(name),
    )

    assert find_power(tmp_path / "power.json") is None
    assert find_watts(tmp_path / "power.json") is None
    assert Meter(None).take() is None


def test_failing_estimate_fails_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "_look_up", fail)
    hidden = Power(by="rapl", counters=tmp_path / "hidden")

    assert find_power(tmp_path / "power.json", tmp_path) is None
    assert Meter(hidden).take() is None


def test_cpu_time_is_charged_by_the_core() -> None:
    meter = Meter(Power(by="tdp", core_w=40.0))
    used_s = work()

    first, second = meter.take(), meter.take()

    assert first is not None
    assert second is not None
    assert first.by == "tdp"
    assert 40 * used_s <= first.joules < 40 * used_s + 1
    assert second.joules < first.joules / 2


def test_counters_are_shared_by_cpu_time(tmp_path: Path) -> None:
    """Of 30 J in which the machine worked for 100 s, this process has its part."""
    found = find_power(tmp_path / "power.json", counters(tmp_path, joules=5))
    assert found == Power(by="rapl", counters=tmp_path)
    meter = Meter(found, stat(tmp_path, busy_s=200))
    used_s = work()
    counters(tmp_path, joules=35)
    stat(tmp_path, busy_s=300)

    taken = meter.take()

    assert taken is not None
    assert taken.by == "rapl"
    assert taken.joules == pytest.approx(30 * used_s / 100, rel=0.5)


def entry(number: int, sent_bytes: int, taken: Energy | None) -> tuple[Entry, State]:
    state = State({})
    digest = state.hash.hex()
    return Entry(
        number=number, state=digest, step=number, sent_bytes=sent_bytes, energy=taken
    ), state


def test_costs_are_those_of_all_workers(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "peers" / "1"):
        journal = Journal.open(folder, b"{}")
        journal.append(*entry(0, 0, None))
        journal.append(*entry(1, 100, Energy(joules=2.5, by="tdp")))
    (tmp_path / "peers" / "2").mkdir()

    costs = Costs.of(Journal.read(tmp_path))

    assert costs == Costs(sent_bytes=200, energy_j=5.0, energy_by=("tdp",))
