"""How many blocks to ask about at once: fewer when a node refuses, more again when it does not."""

from dataclasses import dataclass

_GROWTH = 2


@dataclass(slots=True)
class Span:
    most: int = 2_000
    size: int = 0

    def __post_init__(self) -> None:
        self.size = self.size or self.most

    def shrink(self) -> bool:
        """Halve it; False if it cannot be smaller."""
        if self.size == 1:
            return False
        self.size //= _GROWTH
        return True

    def grow(self) -> None:
        self.size = min(self.size * _GROWTH, self.most)
