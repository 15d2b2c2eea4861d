"""Several tasks of one requester, waited for together."""

import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing

from trainyard.protocol.ledger.book import Book
from trainyard.sdk.errors import DetachedError
from trainyard.sdk.following import LEAVING, Following
from trainyard.sdk.market import Market
from trainyard.sdk.showing import Show

_LOOK_S = 0.5


def wait_for(market: Market, titles: Mapping[int, str], show: Show) -> Book:
    """The market when all of these tasks are over, in whichever way; each is told by its title.

    Ctrl-C detaches: the tasks go on.
    """
    leaving = LEAVING.get() or threading.Event()
    try:
        with ExitStack() as parts:
            left = {
                number: parts.enter_context(closing(Following(market, number))) for number in titles
            }
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
                    return market.read().book
                if leaving.wait(_LOOK_S):
                    raise DetachedError(*titles, predicts=True)
    except KeyboardInterrupt:
        raise DetachedError(*titles, predicts=True) from None
