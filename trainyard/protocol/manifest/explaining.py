"""What pydantic found, as one sentence with the place, the thing and the nearest alternative."""

from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trainyard.protocol.manifest.alternatives import NEAREST, REASONS
from trainyard.protocol.manifest.errors import ManifestError, MisfitError

_LONGEST_SHOWN = 80
_MOST_READ = 20


def explain(top: type[BaseModel], error: ValidationError) -> ManifestError:
    """The first thing that `error` found wrong with a `top`."""
    errors = error.errors(include_url=False)[:_MOST_READ]
    return _chosen([_told(top, found) for found in errors])


def _chosen(told: list[tuple[str, ManifestError]]) -> ManifestError:
    """The first; where it is one branch of a union, the branch that the author meant."""
    _, first = told[0]
    for kind, error in told:
        if not error.path.startswith(first.path):
            break
        if not kind.endswith("_type"):
            return error
    return first


def _told(top: type[BaseModel], found: ErrorDetails) -> tuple[str, ManifestError]:
    location = found["loc"]
    cause = found.get("ctx", {}).get("error")
    if isinstance(cause, MisfitError):
        location = (*location, *cause.path)
    steps, models = _resolve(top, location)
    if found["type"] == "union_tag_invalid":
        steps.append("type")
    elif found["type"] == "extra_forbidden" and steps[-1:] != [location[-1]]:
        steps.append(location[-1])
    return found["type"], ManifestError(_written(steps), _reason(found, models))


def nearest(name: str, known: list[str]) -> str:
    """What to write instead of `name`: a known reason, the closest name, or all there are."""
    if name in REASONS:
        return REASONS[name]
    for other in NEAREST.get(name, ()):
        if other in known:
            return f"use {other}"
    lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower()[:_LONGEST_SHOWN], lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    return f"there are {', '.join(sorted(known))}"


def _reason(found: ErrorDetails, at: list[type[BaseModel]]) -> str:
    context = found.get("ctx", {})
    match found["type"]:
        case "union_tag_invalid":
            known = [tag.strip().strip("'") for tag in str(context["expected_tags"]).split(",")]
            return _unknown("type", str(context["tag"]), known)
        case "union_tag_not_found":
            return "needs a 'type'"
        case "extra_forbidden":
            known = [field.alias or name for model in at for name, field in _fields(model)]
            return _unknown("field", str(found["loc"][-1]), known)
        case "literal_error":
            known = str(context["expected"]).replace(" or ", ", ").split(", ")
            return _unknown("value", _shown(found["input"]), [name.strip("'") for name in known])
        case "value_error":
            return str(context["error"])
        case "missing":
            return "is missing"
    return f"{found['msg'].removeprefix('Input ')}, not {_shown(found['input'])}"


def _unknown(kind: str, name: str, known: list[str]) -> str:
    shown = name if len(name) <= _LONGEST_SHOWN else name[:_LONGEST_SHOWN] + "…"
    return f"no {kind} {shown!r} is supported; {nearest(name, known)}"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return f"{type(value).__name__} of {len(value)}"
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def _resolve(
    top: type[BaseModel], location: tuple[str | int, ...]
) -> tuple[list[str | int], list[type[BaseModel]]]:
    """The steps that stand in the document, without pydantic's own, and the models at the end."""
    steps: list[str | int] = []
    models = [top]
    for number, step in enumerate(location):
        fields = {field.alias or name: field for model in models for name, field in _fields(model)}
        if isinstance(step, int):
            steps.append(step)
        elif step in fields:
            steps.append(step)
            if number < len(location) - 1:
                models = _models(fields[step].annotation)
        elif tagged := [model for model in models if step in _tags(model)]:
            models = tagged
        elif not _is_internal(step):
            steps.append(step)
    return steps, models


def _is_internal(step: str) -> bool:
    # Steps of pydantic's own, for branches of unions, such as "function-after[…]" or "float".
    return "[" in step or step.removeprefix("constrained-") in ("float", "int", "str")


def _fields(model: type[BaseModel]) -> list[tuple[str, Any]]:
    return list(model.model_fields.items())


def _tags(model: type[BaseModel]) -> tuple[Any, ...]:
    field = model.model_fields.get("type")
    return get_args(field.annotation) if field else ()


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _written(steps: list[str | int]) -> str:
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step[:_LONGEST_SHOWN]}" if path else step[:_LONGEST_SHOWN]
    return path
