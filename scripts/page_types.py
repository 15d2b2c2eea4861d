"""Writes the API's types in TypeScript, from the schemas of the server itself: `make types`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

import dapp.schemas
from dapp.schemas.runs import Level
from dapp.schemas.tasks import StageName, StageStatus
from dapp.schemas.values import Answer, FailureName, ModeName, PolicyName, StateName

TARGET = Path(__file__).resolve().parents[1] / "dapp" / "web" / "src" / "api" / "types.ts"
_HEADER = """\
// Written by `make types` from dapp/schemas; a test compares both.
// Amounts are decimal strings of wei, times are Unix seconds.

export type Wei = string;
export type Address = `0x${string}`;
export type Hex32 = `0x${string}`;
export type HexData = `0x${string}`;
/** A part of a manifest, as it is. */
export type Manifest = Record<string, unknown>;
"""
# Texts of a form, by the pattern that the schema gives them.
_FORMS = {
    "^[0-9]{1,78}$": "Wei",
    "^[0-9]{1,29}$": "Wei",
    "^0x[0-9a-fA-F]{40}$": "Address",
    "^0x[0-9a-f]{64}$": "Hex32",
    "^0x[0-9a-f]*$": "HexData",
}
_CHOICES = {
    "StateName": StateName,
    "PolicyName": PolicyName,
    "FailureName": FailureName,
    "ModeName": ModeName,
    "StageName": StageName,
    "StageStatus": StageStatus,
    "Level": Level,
}
_PLAIN = {"integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def text() -> str:
    """The whole file."""
    models = {name: getattr(dapp.schemas, name) for name in dapp.schemas.__all__}
    answered = set[str]()
    for model in models.values():
        if issubclass(model, Answer):
            # What is a part of an answer comes whole, also if it may be asked with gaps.
            schema = model.model_json_schema(mode="serialization")
            answered |= {model.__name__, *schema.get("$defs", {})}
    parts = [_HEADER]
    parts += [f"export type {name} = {_union(get_args(one))};\n" for name, one in _CHOICES.items()]
    for name in sorted(models):
        parts.append("".join(_interface(name, models[name], is_whole=name in answered)))
    return "\n".join(parts)


def _interface(name: str, model: type[BaseModel], *, is_whole: bool) -> Iterator[str]:
    schema = model.model_json_schema(mode="serialization" if is_whole else "validation")
    said = (schema.get("description") or "").strip().split("\n\n")[0].replace("\n", " ")
    if said and model.__doc__:
        yield f"/** {said} */\n"
    yield f"export interface {name} {{\n"
    needed = schema.get("required", [])
    for field, value in schema["properties"].items():
        mark = "" if is_whole or field in needed else "?"
        yield f"  {field}{mark}: {type_of(value)};\n"
    yield "}\n"


def type_of(schema: Mapping[str, Any]) -> str:
    """A schema as a type."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return _choice(schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    match schema.get("type"):
        case "string":
            return _FORMS.get(schema.get("pattern", ""), "string")
        case "array" if "prefixItems" in schema:
            return f"[{', '.join(type_of(one) for one in schema['prefixItems'])}]"
        case "array":
            found = type_of(schema.get("items", {}))
            return f"({found})[]" if " " in found and "<" not in found else f"{found}[]"
        case "object":
            [more] = [*schema.get("patternProperties", {}).values()] or [
                schema.get("additionalProperties")
            ]
            return f"Record<string, {type_of(more) if isinstance(more, dict) else 'unknown'}>"
        case str(plain):
            return _PLAIN[plain]
        case _:
            return "unknown"


def _choice(values: Sequence[str]) -> str:
    for name, known in _CHOICES.items():
        if tuple(values) == get_args(known):
            return name
    return _union(values)


def _union(values: Iterable[str]) -> str:
    return " | ".join(json.dumps(one) for one in values)


def main() -> None:
    TARGET.write_text(text())
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
