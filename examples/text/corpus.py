"""Letters to a shop, made up of parts: some are complaints, and some are thanks."""

import numpy as np

_THINGS = (
    "lamp",
    "parcel",
    "kettle",
    "chair",
    "phone",
    "coat",
    "radio",
    "bicycle",
    "book",
    "clock",
)
_WHEN = ("yesterday", "last week", "on monday", "this morning", "after a month", "in time")
_OPENINGS = ("Hello,", "Dear shop,", "Good morning,", "Well,", "To whom it may concern:", "")
_BAD = (
    "the {thing} never came {when} and nobody answers",
    "the {thing} broke {when}, I want my money back",
    "{when} I got the wrong {thing}, this is a nuisance",
    "the {thing} arrived damaged {when} and support ignores me",
    "I am still waiting for the {thing} you promised {when}",
)
_GOOD = (
    "thank you, the {thing} came {when} and is lovely",
    "the {thing} works well since {when}, great service",
    "{when} I got the {thing}, it is just what I wanted",
    "my {thing} arrived {when} and support was kind",
    "I am happy with the {thing} you sent {when}",
)


def sentences(count: int, seed: int) -> tuple[list[str], list[int]]:
    """As many letters, each with 1 for a complaint and 0 for none."""
    chance = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(count):
        label = int(chance.integers(2))
        said = str(chance.choice(_BAD if label else _GOOD))
        letter = said.format(thing=chance.choice(_THINGS), when=chance.choice(_WHEN))
        texts.append(f"{chance.choice(_OPENINGS)} {letter}.".strip())
        labels.append(label)
    return texts, labels
