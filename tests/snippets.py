"""What documents show to be typed: Python, and commands of ours with their options."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import typer

from trainyard.cli.app import app

_BLOCK = re.compile(r"^[ ]*```(\w+)\n(.*?)^[ ]*```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:\.venv/bin/)?trainyard [^`]+)`")
_INLINE_PYTHON = re.compile(r"`((?:await )?trainyard\.[^`]+)`")
_PROMPT = re.compile(r"^\s*[$#] ", re.MULTILINE)
# What ends a command for a shell, and what leaves the rest of it to the reader.
_ENDS = {"|", "||", "&", "&&", ";", ">", "<", ">>", "…"}


def blocks(text: str, *kinds: str) -> list[str]:
    """The fenced blocks of these kinds, in order."""
    return [code for kind, code in _BLOCK.findall(text) if kind in kinds]


def inline_python(text: str) -> Iterator[str]:
    """Every `trainyard.…` in a line that is Python; what leaves something out with … is not."""
    for code in _INLINE_PYTHON.findall(text):
        try:
            ast.parse(code)
        except SyntaxError:
            continue
        yield code


def commands(text: str) -> list[str]:
    """Every `trainyard …` that a reader is shown, in a block or in a line, once each."""
    fenced = "\n".join(blocks(text, "sh", "console")).replace("\\\n", " ")
    lines = _PROMPT.sub("", fenced).splitlines()
    found = [*_INLINE.findall(text), *(line for line in lines if "trainyard " in line)]
    return sorted({" ".join(words) for line in found for words in _calls(line)})


def _calls(line: str) -> Iterator[list[str]]:
    """The commands of ours in a line of shell, without what the shell does with them."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        # A quotation that goes on in the next line is nothing that options stand in.
        words = line.split()
    found: list[str] | None = None
    for word in words:
        if found is None and word.removeprefix(".venv/bin/") == "trainyard":
            found = ["trainyard"]
        elif found is not None and word in _ENDS:
            yield found
            found = None
        elif found is not None:
            found.append(shlex.quote(word))
    if found is not None:
        yield found


@cache
def _root() -> Any:
    # Made of all commands' signatures, which takes a while.
    return typer.main.get_command(app)


def check_command(line: str) -> None:
    """That a command is there, and takes the options that it is given."""
    command = _root()
    for word in shlex.split(line)[1:]:
        # Typer's groups are of a click of its own.
        if hasattr(command, "get_command") and not word.startswith("-"):
            found = command.get_command(typer.Context(command), word)
            assert found is not None, f"{word} in {line}"
            command = found
        elif word.startswith("-") and word != "-":
            options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
            options |= {"--help", "--install-completion"}
            assert word.partition("=")[0] in options, f"{word} in {line}"


def check_python(code: str, known: Mapping[str, set[str]]) -> None:
    """That it is Python, and what it calls of ours is there and takes what it is given.

    `known` are our public names, each with the arguments that it may be given by name.
    """
    for node in ast.walk(ast.parse(code)):
        name = _ours(node.func if isinstance(node, ast.Call) else node)
        if name is None:
            continue
        assert name in known, f"trainyard.{name} in {code}"
        if isinstance(node, ast.Call) and known[name]:
            given = {one.arg for one in node.keywords if one.arg is not None}
            assert given <= known[name], f"{given - known[name]} of trainyard.{name} in {code}"


def _ours(node: ast.AST) -> str | None:
    """The name in `trainyard.name`, and in `trainyard.aio.name`."""
    if not isinstance(node, ast.Attribute):
        return None
    place = ast.unparse(node.value)
    return node.attr if place in ("trainyard", "trainyard.aio") else None
