"""Several tasks of one requester, waited for together."""

import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from trainyard.protocol.ledger.book import Book
from trainyard.sdk.errors import DetachedError
from trainyard.sdk.following import LEAVING, Following, Known
from trainyard.sdk.market import Market
from trainyard.sdk.showing import Show

_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Waited:
    """The market when the tasks are over, and the numbers that they have there.

    A reorganisation of the chain may give a task another one than it was posted with.
    """

    book: Book
    numbers: Mapping[int, int]


def wait_for(
    market: Market, known: Mapping[int, Known], titles: Mapping[int, str], show: Show
) -> Waited:
    """Wait until all of these tasks are over, in whichever way; each is told by its title.

    Ctrl-C detaches: the tasks go on.
    """
    leaving = LEAVING.get() or threading.Event()
    followings: dict[int, Following] = {}

    def numbers() -> list[int]:
        return [followings[one].number if one in followings else one for one in titles]

    try:
        with ExitStack() as parts:
            for number, one in known.items():
                say = partial(_say, show, titles[number])
                following = Following(market, number, one, say=say)
                followings[number] = parts.enter_context(closing(following))
            left = dict(followings)
            while True:
                for number, following in list(left.items()):
                    sight = following.look()
                    if sight is None:
                        continue
                    for line in sight.sentences:
                        show.say(f"{titles[number]}: {line}")
                    if sight.is_over:
                        del left[number]
                    else:
                        following.end_what_nobody_took(sight.task)
                if not left:
                    return Waited(market.read().book, dict(zip(titles, numbers(), strict=True)))
                if leaving.wait(_LOOK_S):
                    raise DetachedError(*numbers(), predicts=True)
    except KeyboardInterrupt:
        raise DetachedError(*numbers(), predicts=True) from None


def _say(show: Show, title: str, line: str) -> None:
    show.warn(f"{title}: {line}")
