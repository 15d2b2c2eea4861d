"""`trainyard quote` and `post`: a task from a manifest, from a `.keras` file and data, or from a
file of Python that defines both."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError
from trainyard.cli.market import Site, at_market

if TYPE_CHECKING:
    from trainyard.protocol.manifest import Manifest, Model
    from trainyard.sdk.market import Market
    from trainyard.sdk.posting import Offer

_SCRIPT_S = 120


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be trained, and on which terms."""

    source: Path
    data: str | None
    target: str | None
    validation: str | None
    files: tuple[Path, ...]
    script_s: int | None
    # Without what nobody has said.
    shape: dict[str, Any]
    verify: str | None
    budget: str | None
    reward: str | None
    deadline: int | None


def _wanted(
    source: Annotated[
        Path,
        typer.Argument(
            help="A manifest (.json), a model (.keras), or a script (.py) that defines 'model' and "
            "'data'.",
            dir_okay=False,
        ),
    ],
    data: Annotated[
        str | None, typer.Option(help="With a model: an .npz file, or the CID of a data set.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The array or feature that is to be learned.")
    ] = None,
    validation: Annotated[
        str | None, typer.Option(help="With a model: data to validate with, as --data.")
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            help="With a script: a file that it reads, found beside it; repeatable.",
            dir_okay=False,
        ),
    ] = None,
    script_s: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"With a script: seconds that it may take to run; else {_SCRIPT_S}."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="With a model: passes over the data; else 1.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="With a model: records of one step, of all workers; else 32."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With a model: how many train; else 1.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="With a model: single, sync, rounds or async.")
    ] = None,
    local_steps: Annotated[
        int | None,
        typer.Option(min=1, help="In mode rounds: steps of each worker between two meetings."),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(help="In mode rounds: none, float16 or int8, for what workers send."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="With a model: of weights and order; else 1.")
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option(
            help="audit:K, replicate:M or score:TARGET; mode async needs the last.", metavar="HOW"
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help='The most that may be locked, such as "0.5 ETH".')
    ] = None,
    reward: Annotated[
        str | None, typer.Option(help='For each worker, such as "0.1 ETH"; else what others pay.')
    ] = None,
    deadline: Annotated[
        int | None, typer.Option(min=1, help="Seconds that training may take.")
    ] = None,
) -> _Wanted:
    rounds = _said(local_steps=local_steps, compression=compression)
    shape = _said(
        epochs=epochs,
        batch_size=batch,
        workers=workers,
        mode=mode,
        seed=seed,
        rounds=rounds or None,
    )
    return _Wanted(
        source,
        data,
        target,
        validation,
        tuple(file or ()),
        script_s,
        shape,
        verify,
        budget,
        reward,
        deadline,
    )


def _said(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _wanting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a task that is not posted yet."""
    shared = inspect.signature(_wanted).parameters
    site, _, *own = inspect.signature(command).parameters.values()

    @wraps(command)
    def run(site: Site, **given: Any) -> None:
        command(site, _wanted(**{name: given.pop(name) for name in shared}), **given)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            site,
            *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*shared.values(), *own)),
        ]
    )
    return run


@at_market
@_wanting
def quote(
    site: Site,
    wanted: _Wanted,
    rehearse: Annotated[
        bool, typer.Option(help="Train one batch in the sandbox, to know how long it takes.")
    ] = True,
) -> None:
    """Say what a task would cost and take, how surely a cheat is found, and the worst case.

    Nothing is paid. Examples: 'trainyard quote manifest.json',
    'trainyard quote model.keras --data train.npz --epochs 5 --workers 2',
    'trainyard quote train.py --epochs 5'.
    """
    from trainyard.sdk.quoting import quote_for

    _check(wanted)
    with site.open() as market:
        found = quote_for(market, _offer(market, wanted), with_rehearsal=rehearse)
    site.output.result(found.document(), found.lines())


@at_market
@_wanting
def post(
    site: Site,
    wanted: _Wanted,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before money is locked.")
    ] = False,
) -> None:
    """Post a task: its data into content, its escrow into the market. Prints its number.

    Without --yes it asks first, unless --budget says what may be spent. A model's training begins
    with fresh weights; 'trainyard.fit' in Python goes on from those that it has. A script is run in
    the sandbox: it has no network, no keys, and no files but itself and those of --file.

    Examples: 'trainyard post manifest.json --yes', 'trainyard post train.py --epochs 5',
    'trainyard post model.keras --data train.npz --epochs 5 --budget "0.5 ETH"'.
    """
    from trainyard.protocol.telling import amount
    from trainyard.sdk.posting import post as posted

    _check(wanted)
    with site.open() as market:
        offer = _offer(market, wanted)
        cost = amount(offer.terms.escrow)
        if not yes and wanted.budget is None:
            if site.output.as_json:
                raise WrongUseError(f"up to {cost} would be locked: say --yes, or give a --budget")
            typer.confirm(f"Lock up to {cost} for this task?", abort=True, err=True)
        number = posted(market, offer).number
    document = {
        "task": number,
        "escrow_wei": str(offer.terms.escrow),
        "manifest": offer.manifest.digest.hex(),
        "segments": offer.terms.segments,
    }
    lines = [f"task {number} is posted, {cost} are locked", f"follow it: trainyard watch {number}"]
    site.output.result(document, lines)


def _offer(market: "Market", wanted: _Wanted) -> "Offer":
    from dataclasses import replace

    from trainyard.sdk.posting import check_budget, offer_for
    from trainyard.sdk.wishing import seconds_of, verification_of, wei_of

    manifest = _manifest(market, wanted)
    wish = verification_of(wanted.verify, manifest.training.mode)
    if wanted.reward is not None:
        wish = replace(wish, reward=wei_of(wanted.reward, "reward"))
    if wanted.deadline is not None:
        wish = replace(wish, train_for=seconds_of(wanted.deadline))
    offer = offer_for(market, manifest, wish)
    check_budget(offer.terms, None if wanted.budget is None else wei_of(wanted.budget))
    return offer


def _check(wanted: _Wanted) -> None:
    """What does not go together is told before anything is asked."""
    for path in (wanted.source, *wanted.files):
        if not path.is_file():
            raise WrongUseError(f"{path}: there is no such file")
    kind = wanted.source.suffix
    if kind not in (".json", ".keras", ".py"):
        raise WrongUseError(
            f"{wanted.source}: give a manifest (.json), a model (.keras) or a script (.py)"
        )
    named = _said(data=wanted.data, target=wanted.target, validation=wanted.validation)
    if kind == ".json" and named:
        raise WrongUseError(f"a manifest names its data itself: leave {_options_of(named)} out")
    if kind == ".json" and wanted.shape:
        raise WrongUseError(
            f"a manifest says itself how it is trained: leave {_options_of(wanted.shape)} out, or "
            f"change {wanted.source.name}"
        )
    if kind == ".keras" and wanted.data is None:
        raise WrongUseError("a model needs --data: an .npz file, or the CID of a data set")
    if kind == ".py" and wanted.data is None and wanted.validation is not None:
        raise WrongUseError(
            "with --validation give --data as well; else the script's 'data' has both"
        )
    if kind == ".py" and wanted.data is None and wanted.target is not None:
        raise WrongUseError("--target goes with --data; else the script's 'data' has the target")
    if kind != ".py" and wanted.files:
        raise WrongUseError("--file is for what a script (.py) reads")
    if kind != ".py" and wanted.script_s is not None:
        raise WrongUseError("--script-s is for how long a script (.py) may run")


def _options_of(shape: dict[str, Any]) -> str:
    """The options by which somebody has said this."""
    names = (*(name for name in shape if name != "rounds"), *shape.get("rounds", ()))
    return " and ".join(f"--{name.removesuffix('_size').replace('_', '-')}" for name in names)


def _manifest(market: "Market", wanted: _Wanted) -> "Manifest":
    from trainyard.protocol.manifest import Manifest
    from trainyard.sdk.composing import Shape, compose_sections

    if wanted.source.suffix == ".json":
        return Manifest.parse(wanted.source.read_bytes())
    found = _of_script(wanted) if wanted.source.suffix == ".py" else _of_model(market, wanted)
    shape = Shape(**wanted.shape)
    return compose_sections(
        market.content,
        found.model,
        found.training,
        found.x,
        found.y,
        shape,
        validation_data=found.validation,
        sample_weight=found.weight,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """Sections of a manifest, and data as `trainyard.fit` takes it."""

    model: "Model"
    training: dict[str, Any]
    x: Any
    y: Any
    validation: Any = None
    weight: Any = None


def _of_model(market: "Market", wanted: _Wanted) -> _Found:
    from trainyard.sdk.model_sections import sections_of

    model, training = sections_of(wanted.source, market.confinement())
    return _with_data(wanted, model, training)


def _of_script(wanted: _Wanted) -> _Found:
    from trainyard.face import script_sandbox
    from trainyard.sdk.scripts import script_of

    script = script_of(
        wanted.source,
        script_sandbox(wanted.script_s or _SCRIPT_S),
        files=wanted.files,
        has_data=wanted.data is None,
    )
    train, tried = script.train, script.validation
    if train is None:
        return _with_data(wanted, script.model, script.training)
    validation = None
    if tried is not None:
        weights = () if tried.weight is None else (tried.weight,)
        validation = (tried.x, tried.y, *weights)
    return _Found(script.model, script.training, train.x, train.y, validation, train.weight)


def _with_data(wanted: _Wanted, model: "Model", training: dict[str, Any]) -> _Found:
    """A model with the data of the command line."""
    from trainyard.sdk.model_sections import arrays_of

    def read(given: str) -> tuple[Any, Any]:
        path = Path(given)
        if path.exists():
            return arrays_of(path, model.inputs, wanted.target)
        return given, wanted.target

    x, y = read(wanted.data or "")
    tried = None if wanted.validation is None else read(wanted.validation)
    return _Found(model, training, x, y, tried)
