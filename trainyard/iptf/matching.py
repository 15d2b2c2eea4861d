"""TensorFlow's patterns for file names, which are not quite the shell's."""

import re
from collections.abc import Callable

_SPECIAL = re.compile(r"[*?\[\\]")


def has_wildcard(text: str) -> bool:
    return _SPECIAL.search(text) is not None


def compile_name(pattern: str) -> Callable[[str], bool]:
    """A test whether a whole name matches: `*`, `?`, `[a-z]`, `[^a-z]`, and `\\` to escape."""
    parts, at = [], 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            parts.append(".*")
        elif letter == "?":
            parts.append(".")
        elif letter == "[":
            body, at = _character_class(pattern, at)
            parts.append(body)
        elif letter == "\\" and at < len(pattern):
            parts.append(re.escape(pattern[at]))
            at += 1
        else:
            parts.append(re.escape(letter))
    test = re.compile("".join(parts), re.DOTALL)
    return lambda name: test.fullmatch(name) is not None


def _character_class(pattern: str, at: int) -> tuple[str, int]:
    """The class that begins at `at`, after its bracket, and where it ends."""
    close = pattern.find("]", at + 1)
    if close < 0:
        return re.escape("["), at
    body = pattern[at:close]
    negated = body[:1] in ("^", "!")
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", body[1:] if negated else body)
    try:
        re.compile(f"[{members}]")
    except re.error:  # such as a range that runs backwards: matches nothing
        members = ""
    if not members:
        return "(?!)", close + 1
    return f"[{'^' if negated else ''}{members}]", close + 1
