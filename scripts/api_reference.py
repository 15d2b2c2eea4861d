"""Writes docs/api.md from the signatures and docstrings of the public names: `make docs`.

The sources are read, not imported: what it takes to run them has no part in what they say.
"""

import ast
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path

import trainyard
import trainyard.spark

TARGET = Path(__file__).resolve().parents[1] / "docs" / "api.md"
_HEADER = """\
# API reference

All that `import trainyard` and `import trainyard.spark` offer, by their own docstrings: written by
`make docs`, and a test compares both. The [SDK](sdk.md) tells what belongs together, the
[tutorial](tutorial.md) where to begin, and the [how-to pages](howto) how to get one thing done.
"""
# What the public functions give and take, by the place where it is defined.
_BESIDE = (
    ("trainyard.sdk.fitting", "Wishes"),
    ("trainyard.sdk.predicting", "PredictWishes"),
    ("trainyard.sdk.histories", "History"),
    ("trainyard.sdk.quoting", "Quote"),
    ("trainyard.sdk.connecting", "connect"),
)
# Where the arguments are named that a function takes beside its own, by their annotation.
_MORE = {
    "Unpack[Wishes]": _BESIDE[0],
    "Unpack[PredictWishes]": _BESIDE[1],
    "Any": _BESIDE[-1],
}
_ERRORS = ("trainyard.protocol.errors", "trainyard.sdk.errors", "trainyard.spark.errors")
_LONGEST = 96

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class UndocumentedError(Exception):
    """A public name without a docstring."""


@dataclass(frozen=True, slots=True)
class Source:
    lines: tuple[str, ...]
    tree: ast.Module

    @classmethod
    def of(cls, code: str) -> "Source":
        return cls(tuple(code.splitlines()), ast.parse(code))

    def named(self, name: str) -> ast.stmt:
        for node in self.tree.body:
            if isinstance(node, _Function | ast.ClassDef) and node.name == name:
                return node
        raise KeyError(name)

    def comment_above(self, node: ast.stmt) -> str:
        """The comment that stands right above a field."""
        found: list[str] = []
        for line in reversed(self.lines[: node.lineno - 1]):
            if not line.strip().startswith("#"):
                break
            found.insert(0, line.strip().removeprefix("#").strip())
        return " ".join(found)


class _Plain(ast.NodeTransformer):
    """Types as readers need them: no patterns and bounds, no names of the module's own."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        is_annotated = isinstance(node.value, ast.Name) and node.value.id == "Annotated"
        return node.slice.elts[0] if is_annotated and isinstance(node.slice, ast.Tuple) else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not node.id.startswith("_"):
            return node
        for one in self._source.tree.body:
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == node.id:
                found: ast.AST = self.visit(deepcopy(one.value))
                return found
        return node


def text() -> str:
    """The whole page."""
    public = trainyard._PLACES
    parts = [_HEADER, "## Functions\n"]
    modules = [name for name, place in public.items() if place == f"trainyard.{name}"]
    classes = []
    for name, place in sorted(public.items()):
        if name in modules:
            continue
        node = source_of(place).named(name)
        if isinstance(node, ast.ClassDef):
            classes.append((place, name))
        else:
            parts += _function(node, f"trainyard.{name}")
    for name in modules:
        parts += _module(name, public[name])
    parts.append("## What they take and give\n")
    errors = {name for place in _ERRORS for name in _classes(place)}
    for place, name in (*_BESIDE, *((p, n) for p, n in classes if n not in errors)):
        node = source_of(place).named(name)
        is_class = isinstance(node, ast.ClassDef)
        full = f"trainyard.{name}" if name in public and is_class else f"{place}.{name}"
        parts += _class(source_of(place), node, full) if is_class else _function(node, full)
    parts += _spark_section()
    parts += _error_section()
    return "\n".join(parts)


@cache
def source_of(module: str) -> Source:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise KeyError(module)
    return Source.of(Path(spec.origin).read_text())


def arguments_of(name: str) -> set[str]:
    """What a public function may be given by name; nothing for what is no function."""
    place = trainyard._PLACES.get(name)
    if place is None or place == f"trainyard.{name}":
        return set()
    node = source_of(place).named(name)
    if not isinstance(node, _Function):
        return set()
    found = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    if node.args.kwarg is not None and node.args.kwarg.annotation is not None:
        # What else it takes is said in full in another place.
        place, name = _MORE[_annotation(node.args.kwarg.annotation)]
        more = source_of(place).named(name)
        if isinstance(more, _Function):
            found |= {one.arg for one in (*more.args.args, *more.args.kwonlyargs)}
        elif isinstance(more, ast.ClassDef):
            fields = (one.target for one in more.body if isinstance(one, ast.AnnAssign))
            found |= {ast.unparse(one) for one in fields}
    return found


def _function(node: ast.stmt, name: str) -> list[str]:
    assert isinstance(node, _Function)
    return [f"### `{name}`\n", _signature(node, name.rpartition(".")[2]), _doc(node, name)]


def _module(name: str, place: str) -> list[str]:
    source = source_of(place)
    names = [
        one.id
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for one in node.targets
        if isinstance(one, ast.Name) and not one.id.startswith("_") and one.id.islower()
    ]
    told = ", ".join(f"`{one}`" for one in names)
    return [f"### `trainyard.{name}`\n", _doc(source.tree, name), f"It has {told}.\n"]


def _class(source: Source, node: ast.stmt, name: str) -> Iterator[str]:
    assert isinstance(node, ast.ClassDef)
    yield f"### `{name}`\n"
    yield _doc(node, name)
    fields = list(_fields(source, node))
    if fields:
        yield "| | | |\n|---|---|---|\n" + "".join(fields)
    for member in node.body:
        if isinstance(member, _Function) and not member.name.startswith("_"):
            yield from _member(member)


def _fields(source: Source, node: ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            plain = _Plain(source).visit(deepcopy(member.annotation))
            shown = ast.unparse(plain).replace("|", "\\|")
            yield f"| `{member.target.id}` | `{shown}` | {source.comment_above(member)} |\n"


def _member(node: _Function) -> Iterator[str]:
    kinds = {ast.unparse(one) for one in node.decorator_list}
    said = ast.get_docstring(node)
    told = f"  \n  {_flat(said)}" if said else ""
    if kinds & {"property", "cached_property"}:
        returns = "" if node.returns is None else f": `{_annotation(node.returns)}`"
        yield f"- `{node.name}`{returns}{told}\n"
    else:
        yield f"- `{node.name}{_arguments(node, skip_first='staticmethod' not in kinds)}`{told}\n"


def _signature(node: _Function, name: str) -> str:
    line = f"{name}{_arguments(node)}"
    if len(line) > _LONGEST:
        inner = "".join(f"    {one},\n" for one in _pieces(node, skip_first=False))
        returns = "" if node.returns is None else f" -> {_annotation(node.returns)}"
        line = f"{name}(\n{inner}){returns}"
    return f"```python\ndef {line}: ...\n```\n"


def _arguments(node: _Function, *, skip_first: bool = False) -> str:
    returns = "" if node.returns is None else f" -> {_annotation(node.returns)}"
    return f"({', '.join(_pieces(node, skip_first=skip_first))}){returns}"


def _pieces(node: _Function, *, skip_first: bool) -> list[str]:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + [*given.defaults]
    found = [_argument(one, value) for one, value in zip(plain, defaults, strict=True)]
    found = found[1:] if skip_first else found
    if given.vararg is not None:
        found.append(f"*{_argument(given.vararg)}")
    elif given.kwonlyargs:
        found.append("*")
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    found += [_argument(one, value) for one, value in pairs]
    if given.kwarg is not None:
        found.append(f"**{_argument(given.kwarg)}")
    return found


def _argument(argument: ast.arg, default: ast.expr | None = None) -> str:
    typed = "" if argument.annotation is None else f": {_annotation(argument.annotation)}"
    if default is None:
        return argument.arg + typed
    return f"{argument.arg}{typed}{' = ' if typed else '='}{ast.unparse(default)}"


def _annotation(node: ast.expr) -> str:
    """As it is meant: without the quotes that only save an import."""
    shown = ast.unparse(node)
    return re.sub(r"^'(.*)'$", r"\1", shown) if isinstance(node, ast.Constant) else shown


def _doc(node: ast.Module | ast.ClassDef | _Function, name: str) -> str:
    said = ast.get_docstring(node)
    if not said:
        raise UndocumentedError(f"{name} is public and has no docstring")
    return f"{cleandoc(said)}\n"


def _flat(said: str) -> str:
    return re.sub(r"\s+", " ", cleandoc(said))


def _classes(place: str) -> list[str]:
    return [one.name for one in source_of(place).tree.body if isinstance(one, ast.ClassDef)]


def _spark_section() -> Iterator[str]:
    yield "## Spark\n"
    for name, place in sorted(trainyard.spark._PLACES.items()):
        full, source = f"trainyard.spark.{name}", source_of(f"trainyard.spark.{place}")
        node = source.named(name)
        if not isinstance(node, ast.ClassDef):
            yield from _function(node, full)
            continue
        yield from _class(source, node, full)
        for member in node.body:
            if isinstance(member, _Function) and member.name == "__init__":
                made = deepcopy(member)
                made.name, made.returns = name, None
                yield from _member(made)


def _error_section() -> Iterator[str]:
    yield "## Errors\n"
    yield "| | is a | |\n|---|---|---|\n" + "".join(
        f"| `{node.name}` | {', '.join(f'`{ast.unparse(base)}`' for base in node.bases)} "
        f"| {_flat(_doc(node, node.name))} |\n"
        for place in _ERRORS
        for node in source_of(place).tree.body
        if isinstance(node, ast.ClassDef)
    )


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it is stale")
    is_check = parser.parse_args().check
    try:
        made = text()
    except UndocumentedError as error:
        sys.exit(str(error))
    if is_check:
        if not TARGET.exists() or TARGET.read_text() != made:
            sys.exit(f"docs/{TARGET.name} is stale: run 'make docs' and commit it")
        print(f"docs/{TARGET.name} says what the docstrings say")
        return
    TARGET.write_text(made)
    print(f"wrote docs/{TARGET.name}")


if __name__ == "__main__":
    main()
