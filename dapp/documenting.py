"""The OpenAPI document: with the bodies that routes read by hand, and an example of every body."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

_JSON = "application/json"
_REFERENCE = "#/components/schemas/{model}"
Schemas = Mapping[str, Mapping[str, Any]]


def document_with(app: FastAPI, *models: type[BaseModel]) -> None:
    """Have `app` describe itself with `models` too, which no route of it takes by itself."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title, version=app.version, summary=app.summary, routes=app.routes
            )
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            for model in models:
                schema = model.model_json_schema(ref_template=_REFERENCE)
                schemas |= schema.pop("$defs", {})
                schemas[model.__name__] = schema
            _add_examples(found, schemas)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def example_of(schema: Mapping[str, Any], schemas: Schemas, name: str = "") -> Any:
    """Something that fits: what the schema itself gives as an example, or the plainest value."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], schemas, name)
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {key: example_of(one, schemas, key) for key, one in schema["properties"].items()}
        case "object":
            return {}
        case "array" if "prefixItems" in schema:
            return [example_of(one, schemas, name) for one in schema["prefixItems"]]
        case "array":
            return [example_of(schema["items"], schemas, name)] if schema.get("items") else []
        case "integer":
            return max(1, schema.get("minimum", 1))
        case "number":
            return max(0.5, schema.get("minimum", 0.5))
        case "boolean":
            return schema.get("default", True)
        case "string":
            return schema.get("default") or name.replace("_", " ")
        case _:
            return None


def _add_examples(document: Mapping[str, Any], schemas: Schemas) -> None:
    for methods in document["paths"].values():
        for route in methods.values():
            bodies = [route.get("requestBody", {}), *route["responses"].values()]
            for body in bodies:
                content = body.get("content", {}).get(_JSON)
                if content and content.get("schema"):
                    content.setdefault("example", example_of(content["schema"], schemas))
