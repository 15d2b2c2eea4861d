"""What a worker's segments take of energy: an estimate, of the processor alone.

The model is codecarbon's for one process: a core in use takes its part of the processor's power.
That power is read from RAPL's counters where they can be read, else looked up in codecarbon's table
by the processor's name, else 4 W a core. A virtual machine that knows the name of its processor and
has few of its cores is charged far too much: compare figures of one machine, not of two.

Codecarbon takes seconds to ask and is asked once a machine, by the process that starts the workers.
Nothing here polls, and nothing touches what is computed.
"""

import importlib.util
import os
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.engine.processor import processor_name

RAPL = Path("/sys/class/powercap/intel-rapl/subsystem")
_STAT = Path("/proc/stat")
_JOULES_A_KWH = 3_600_000.0

Basis: TypeAlias = Literal["rapl", "tdp", "default"]
BASES: dict[Basis, str] = {"rapl": "by RAPL", "tdp": "by TDP", "default": "by 4 W a core"}


class Energy(BaseModel):
    """An estimate, and what it rests on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    joules: float = Field(ge=0, allow_inf_nan=False)
    by: Basis


class Power(BaseModel):
    """What a core in use takes, or where the processor's counters are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: Basis
    core_w: float = Field(default=0.0, ge=0)
    counters: Path | None = None


class Meter:
    """Estimates what this process has used since it was last asked."""

    def __init__(self, power: Power | None, stat: Path = _STAT) -> None:
        self._power, self._stat = power, stat
        self._counted: Callable[[], float] | None = None
        self._used_s = time.process_time()
        self._busy_s = 0.0
        if power is not None and power.counters is not None:
            try:
                self._busy_s = self._busy()
                self._counted = _open_counters(power.counters)
            except Exception:
                # A sandbox may hide them, and a run is not to fail for want of an estimate.
                self._power = None

    def take(self) -> Energy | None:
        """Since the last time; None where nothing is known of this machine."""
        if self._power is None:
            return None
        used_s = time.process_time() - self._used_s
        self._used_s += used_s
        if self._counted is None:
            return Energy(joules=used_s * self._power.core_w, by=self._power.by)
        # The counters are the whole processor's, so others pay for their part of its time.
        busy_s = self._busy() - self._busy_s
        self._busy_s += busy_s
        share = min(1.0, used_s / busy_s) if busy_s > 0 else 1.0
        return Energy(joules=self._counted() * share, by=self._power.by)

    def _busy(self) -> float:
        """How long all cores of this machine together have worked."""
        _, *ticks = self._stat.read_text().split("\n")[0].split()
        user, nice, system, _, _, *rest = map(int, ticks)
        # Of the rest, guests are counted as users already.
        return (user + nice + system + sum(rest[:3])) / os.sysconf("SC_CLK_TCK")


class _Machine(BaseModel):
    """All that the answer depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    processor: str
    cores: int
    codecarbon: str


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    machine: _Machine
    power: Power


def find_power(cache: Path | None = None, counters: Path = RAPL) -> Power | None:
    """What codecarbon takes this machine for; None without codecarbon, or if it cannot say."""
    if importlib.util.find_spec("codecarbon") is None:
        return None
    if any(os.access(path, os.R_OK) for path in counters.glob("intel-rapl*:*/energy_uj")):
        return Power(by="rapl", counters=counters)
    return find_watts(cache)


def find_watts(cache: Path | None = None) -> Power | None:
    """What a core in use takes, also where counters could be read.

    For whoever knows how long processes have worked, and did not look at the counters meanwhile.
    """
    if importlib.util.find_spec("codecarbon") is None:
        return None
    cache = cache or _cache()
    machine = _Machine(
        processor=processor_name(),
        cores=os.cpu_count() or 1,
        codecarbon=metadata.version("codecarbon"),
    )
    kept = _read(cache)
    if kept is not None and kept.machine == machine:
        return kept.power
    try:
        power = _look_up(machine.cores)
    except Exception:
        return None
    _keep(cache, _Kept(machine=machine, power=power))
    return power


def _look_up(cores: int) -> Power:
    from codecarbon.core.cpu import DEFAULT_POWER_PER_CORE, TDP
    from codecarbon.core.util import count_physical_cpus

    _be_quiet()
    tdp_w = TDP().tdp
    # What it says of a processor that it does not know.
    if tdp_w is None or tdp_w == DEFAULT_POWER_PER_CORE * cores:
        return Power(by="default", core_w=float(DEFAULT_POWER_PER_CORE))
    return Power(by="tdp", core_w=tdp_w * count_physical_cpus() / cores)


def _open_counters(folder: Path) -> Callable[[], float]:
    """Gives the joules that the whole processor took since the last call."""
    from codecarbon.core.cpu import IntelRAPL
    from codecarbon.core.units import Time

    _be_quiet()
    counters: Any = IntelRAPL(rapl_dir=str(folder))
    counters.start()
    since = time.monotonic()

    def counted() -> float:
        nonlocal since
        passed_s = time.monotonic() - since
        since += passed_s
        found = counters.get_cpu_details(Time(passed_s))
        kwh = sum(value for name, value in found.items() if "Energy Delta" in name)
        return float(kwh) * _JOULES_A_KWH

    return counted


def _be_quiet() -> None:
    """After the import, which sets its own level.

    It warns of each machine that it does not know, as most virtual ones are.
    """
    import logging

    logging.getLogger("codecarbon").setLevel(logging.CRITICAL)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore relative paths.
    folder = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return folder / "trainyard" / "power.json"


def _read(path: Path) -> _Kept | None:
    """What is kept there; a damaged file is as good as none."""
    try:
        return _Kept.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _keep(path: Path, kept: _Kept) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(kept.model_dump_json())
        unfinished.replace(path)
    except OSError:
        # Then it is asked again the next time.
        unfinished.unlink(missing_ok=True)
