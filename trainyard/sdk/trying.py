"""What verified states make of the records to validate with, computed on this machine.

A trace commits to states, and no figure is in it: what workers tell of their epochs is their word.
But the states at the ends of epochs are under the root on chain, so their validation can be had
from nothing but the result. TensorFlow is needed for this, and imported where it is.
"""

import math
from collections.abc import Iterable
from typing import Any

from trainyard.content.names import ContentPath
from trainyard.datasets import load_arrays
from trainyard.engine.claims import ClaimedRun
from trainyard.engine.counting import Counters
from trainyard.engine.state import WEIGHTS, State
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest, Source
from trainyard.sdk.epochs import states_at_ends
from trainyard.sdk.market import Market
from trainyard.sdk.showing import Show

# Of records, and of all states that are fetched for it: for a figure nobody waits for more.
_MOST_BYTES = 512 << 20
_ITEM_BYTES = 8

Figures = dict[str, float]


def tried_here(
    market: Market,
    manifest: Manifest,
    run: ClaimedRun,
    last: State,
    epochs: Iterable[int],
    show: Show,
) -> dict[int, Figures]:
    """Figures of validation by epoch, for those of `epochs` whose last state is in the trace.

    Without the records, or with too many of them, there are none: `show` is told why, for a result
    is not to be lost for a figure.
    """
    source = None if manifest.training.validation is None else manifest.training.validation.source
    places = states_at_ends(manifest.plan, epochs, Counters.of(last).step)
    if source is None or not places:
        return {}
    why = _why_not(source, last, len(places))
    if why is not None:
        show.say(f"nobody told of validation, and it is not computed here: {why}")
        return {}
    try:
        return _figures(market, manifest, run, last, places, source)
    except TrainyardError as error:
        show.say(f"nobody told of validation, and it cannot be computed here: {error}")
        return {}


def _why_not(source: Source, state: State, states: int) -> str | None:
    if source.kind != "npz":
        return "its records are no arrays"
    of_record = sum(math.prod(one.shape) * _ITEM_BYTES for one in source.features.values())
    if of_record * source.records > _MOST_BYTES or state.size * states > _MOST_BYTES:
        return f"it would take more than {_MOST_BYTES >> 20} MiB of records or states"
    return None


def _figures(
    market: Market,
    manifest: Manifest,
    run: ClaimedRun,
    last: State,
    places: dict[int, int],
    source: Source,
) -> dict[int, Figures]:
    from trainyard.engine.program import build
    from trainyard.engine.transplanting import compiled_for
    from trainyard.engine.variables import assign, named_variables

    arrays = load_arrays(market.content, ContentPath.parse(source.path), most_bytes=_MOST_BYTES)
    inputs = [arrays[name] for name in source.inputs]
    weight = None if source.weight is None else arrays[source.weight]
    # One of its own: the caller's model has the weights of the result, and keeps them.
    program = build(manifest)
    variables = named_variables(program)
    model: Any = compiled_for(manifest, program)
    found: dict[int, Figures] = {}
    for epoch, number in places.items():
        state = last if number == run.last else State.load(run.published.state(number))
        assign(variables, state, WEIGHTS)
        given = inputs[0] if len(inputs) == 1 else inputs
        figures = model.evaluate(
            given, arrays[source.label], sample_weight=weight, verbose=0, return_dict=True
        )
        found[epoch] = {f"val_{name}": float(value) for name, value in figures.items()}
    return found
