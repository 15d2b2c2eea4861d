"""What becomes of what goes wrong once a task is posted."""

from types import SimpleNamespace
from typing import Any, cast

import keras
import pytest

import tests.quiet_web3  # noqa: F401
from tests.engine.nets import manifest_of
from tests.engine.test_transplanting import compiled, sequential
from trainyard.sdk import fitting
from trainyard.sdk.errors import DetachedError, RefusedError
from trainyard.sdk.following import Known
from trainyard.sdk.market import Market
from trainyard.sdk.posting import Posted

POSTED = Posted(7, Known(b"m" * 32, "0x" + "1" * 40))


@pytest.mark.parametrize("part", ["remember", "Following", "shown"])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_whatever_goes_wrong_after_the_post_names_the_task(
    monkeypatch: pytest.MonkeyPatch, part: str, kind: type[BaseException]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise kind("why")

    offer = SimpleNamespace(manifest=manifest_of("mlp"))
    monkeypatch.setattr(fitting, "prepare", lambda *_: offer)
    monkeypatch.setattr(fitting, "post", lambda *_: POSTED)
    monkeypatch.setattr(fitting, part, fail)

    with pytest.raises((OSError, DetachedError)) as found:
        fitting.fit(cast(Market, None), SimpleNamespace(), None, None, {}, verbose=0)

    told = (str(found.value), *getattr(found.value, "__notes__", ()))
    assert any("trainyard.attach(7)" in one for one in told)


def test_a_model_with_another_optimizer_is_not_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    _, manifest = compiled(sequential, "adam")
    monkeypatch.setattr(fitting, "known_task", lambda *_: (POSTED.known, manifest))
    model, _ = compiled(sequential, "sgd")

    with pytest.raises(RefusedError, match=r"trains with Adam, .* compiled with SGD"):
        fitting.attach(cast(Market, None), 7, model, verbose=0)


class Choosy(keras.callbacks.Callback):  # type: ignore[misc]
    def set_model(self, model: Any) -> None:
        raise ZeroDivisionError("no such model")


def test_a_callback_that_refuses_the_model_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[Any] = []
    offer = SimpleNamespace(manifest=manifest_of("mlp"))
    monkeypatch.setattr(fitting, "prepare", lambda *_: offer)
    monkeypatch.setattr(fitting, "post", lambda *given: posted.append(given))

    with pytest.raises(ZeroDivisionError):
        fitting.fit(cast(Market, None), SimpleNamespace(), None, None, {"callbacks": Choosy()})
    with pytest.raises(RefusedError, match="callbacks: 5 is none of Keras'"):
        fitting.fit(cast(Market, None), SimpleNamespace(), None, None, {"callbacks": cast(Any, 5)})

    assert posted == []


def test_where_there_is_no_page_it_is_said_once_that_logs_come_late(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class SeenError(Exception):
        """Enough."""

    def sights() -> None:
        raise SeenError

    offer = SimpleNamespace(manifest=manifest_of("mlp"))
    following = SimpleNamespace(close=lambda: None, sights=sights)
    monkeypatch.setattr(fitting, "prepare", lambda *_: offer)
    monkeypatch.setattr(fitting, "post", lambda *_: POSTED)
    monkeypatch.setattr(fitting, "Following", lambda *_, **__: following)

    for page, verbose, lines in ((None, 2, 1), (None, 0, 0), ("http://page", 2, 0)):
        market = cast(Market, SimpleNamespace(place=SimpleNamespace(page=page)))
        with pytest.raises(SeenError):
            fitting.fit(market, SimpleNamespace(), None, None, {}, verbose=cast(Any, verbose))
        assert capsys.readouterr().err.count("no page") == lines
