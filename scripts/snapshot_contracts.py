"""Keeps sizes, ABI and storage layout as text in snapshots/, so that a change shows in a diff."""

from typing import Any

from eth_utils.abi import (
    abi_to_signature,
    event_signature_to_log_topic,
    function_signature_to_4byte_selector,
)

from scripts.check_size import deployable, size_table
from scripts.compile_contracts import DEPLOYED, INTERFACE, ROOT, CompiledContract, compile_contracts
from scripts.generated_files import write_or_check

TARGET = ROOT / "snapshots"


def render_abi(abi: list[dict[str, Any]]) -> str:
    return "".join(f"{line}\n" for line in sorted(_abi_line(entry) for entry in abi))


def _abi_line(entry: dict[str, Any]) -> str:
    kind = entry["type"]
    if kind not in ("function", "event", "error"):
        inputs = ", ".join(_parameter(item) for item in entry.get("inputs", []))
        return f"{kind} ({inputs}) {entry['stateMutability']}"
    signature = abi_to_signature(entry)  # type: ignore[arg-type]
    inputs = ", ".join(_parameter(item) for item in entry["inputs"])
    if kind == "event":
        topic = event_signature_to_log_topic(signature).hex()
        return f"event {entry['name']}({inputs}) 0x{topic}"
    selector = function_signature_to_4byte_selector(signature).hex()
    if kind == "error":
        return f"error {entry['name']}({inputs}) 0x{selector}"
    outputs = ", ".join(_parameter(item) for item in entry["outputs"])
    returns = f" returns ({outputs})" if outputs else ""
    return f"function {entry['name']}({inputs}) {entry['stateMutability']}{returns} 0x{selector}"


def _parameter(item: dict[str, Any]) -> str:
    kind = item["type"]
    if "components" in item:
        members = ", ".join(_parameter(member) for member in item["components"])
        kind = f"({members}){kind.removeprefix('tuple')}"
    indexed = " indexed" if item.get("indexed") else ""
    return f"{kind}{indexed} {item['name']}".rstrip()


def render_storage(layout: dict[str, Any]) -> str:
    """One line per variable, and under it the members of the structs that it reaches."""
    types: dict[str, Any] = layout["types"] or {}
    lines = [_storage_line(entry, types) for entry in layout["storage"]]
    for _, kind in sorted(types.items(), key=lambda pair: str(pair[1]["label"])):
        if "members" not in kind:
            continue
        lines += ["", f"{kind['label']} ({kind['numberOfBytes']} bytes)"]
        lines += [_storage_line(member, types) for member in kind["members"]]
    return "".join(f"{line}\n" for line in lines)


def _storage_line(entry: dict[str, Any], types: dict[str, Any]) -> str:
    kind = types[entry["type"]]
    place = f"{entry['slot']:>4} +{entry['offset']:<3}{kind['numberOfBytes']:>4}"
    return f"{place}  {entry['label']}: {kind['label']}"


def render(contracts: dict[str, CompiledContract]) -> dict[str, str]:
    files = {"sizes.txt": size_table(deployable(contracts)) + "\n"}
    for name in (INTERFACE, *DEPLOYED):
        files[f"abi/{name}.txt"] = render_abi(contracts[name].abi)
    for name in DEPLOYED:
        files[f"storage/{name}.txt"] = render_storage(contracts[name].storage_layout)
    return files


def main() -> None:
    write_or_check(TARGET, render(compile_contracts()), remake="make snapshots")


if __name__ == "__main__":
    main()
