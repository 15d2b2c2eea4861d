"""Column types that both databases keep exactly."""

from typing import Any

from sqlalchemy import String
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

# As many digits as 2**256 has: all of one length, so that texts sort like numbers.
_DIGITS = 78


class WeiText(TypeDecorator[int]):
    """An amount. SQLite would make a float of a large number, and lose its end."""

    impl = String(_DIGITS)
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        return None if value is None else f"{value:0{_DIGITS}d}"

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        return None if value is None else int(value)
