"""What of this machine's processor decides how sums are rounded."""

import platform
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
# What Eigen, oneDNN and the C library choose their code by.
_DECISIVE = re.compile(r"sse4_[12]|avx.*|fma|fma4|f16c|amx_.*|asimd.*|sve.*|bf16|i8mm")
_SIZE = re.compile(r"(\d+)([KM]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


class Processor(BaseModel):
    """Instructions and caches.

    Eigen cuts products of matrices into blocks that fit the first cache, and adds the blocks up:
    with 16, 32, 48 and 64 KiB set by hand, products of 400 to 3136 terms came out in two to four
    different ways, and the same for any size of the second and third cache. The second is here
    for oneDNN, which may cut by it; the third is shared in ways that a virtual machine hides.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: str
    instructions: tuple[str, ...]
    l1_data_bytes: int
    l2_bytes: int


def read_processor(cpuinfo: Path = _CPUINFO, caches: Path = _CACHES) -> Processor:
    """This machine's, as Linux tells; what another system does not tell is left empty."""
    return Processor(
        architecture=platform.machine(),
        instructions=_instructions(cpuinfo),
        l1_data_bytes=_cache_bytes(caches, "1", "Data"),
        l2_bytes=_cache_bytes(caches, "2", "Unified"),
    )


def processor_name(cpuinfo: Path = _CPUINFO) -> str:
    """What its maker calls it, for people."""
    return _field(cpuinfo, "model name") or platform.processor() or platform.machine()


def _instructions(cpuinfo: Path) -> tuple[str, ...]:
    flags = (_field(cpuinfo, "flags") or _field(cpuinfo, "Features")).split()
    return tuple(sorted({flag for flag in flags if _DECISIVE.fullmatch(flag)}))


def _field(cpuinfo: Path, name: str) -> str:
    """A field of the first processor; those of one machine are alike."""
    if not cpuinfo.exists():
        return ""
    for line in cpuinfo.read_text().splitlines():
        found, _, value = line.partition(":")
        if found.strip() == name:
            return value.strip()
    return ""


def _cache_bytes(caches: Path, level: str, kind: str) -> int:
    for index in sorted(caches.glob("index*")):
        if (_text(index / "level"), _text(index / "type")) == (level, kind):
            match = _SIZE.fullmatch(_text(index / "size"))
            return int(match[1]) * _UNITS[match[2]] if match else 0
    return 0


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""
