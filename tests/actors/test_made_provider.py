"""Provider objects from parts: one implementation for all models, or one by API id."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from camshaft.actors.api import Model, make_provider
from camshaft.actors.host import ExtensionMisuse
from camshaft.kernel.stream import Ended, Started
from tests.actors.running import Running
from tests.actors.test_provider_registrations import doing

MODELS = (
    Model(id="a", provider="x", api="one"),
    Model(id="b", provider="x", api="two"),
    Model(id="p", provider="x", api="i", type="image"),
)


async def answer(_request: Any, _signal: Any) -> AsyncIterator[Any]:
    yield Started()
    yield Ended("stop")


def asked(**parts: Any) -> list[tuple[str, str | None]]:
    async def test(running: Running) -> list[tuple[str, str | None]]:
        registry = running.seat.model_registry
        results = [await registry.complete(model, "hi") for model in registry.get_models_of_type("chat", "acme")]
        return [(each.stop_reason, each.error_message) for each in results]

    made: list[tuple[str, str | None]] = doing(
        test, lambda api: api.register_provider(make_provider(id="acme", name="Acme", models=MODELS, **parts))
    )
    return made


@pytest.mark.rule("PRV-16")
def test_one_implementation_answers_for_all_models() -> None:
    assert asked(api=answer) == [("stop", None)] * 2


@pytest.mark.rule("PRV-16")
def test_a_model_whose_api_is_not_in_the_map_ends_with_an_error() -> None:
    assert asked(api={"one": answer}) == [("stop", None), ("error", 'Provider acme has no API implementation for "two"')]


@pytest.mark.rule("PRV-16", "STR-43")
def test_images_are_made_by_their_part() -> None:
    async def test(running: Running) -> Any:
        (model,) = running.seat.model_registry.get_models_of_type("image", "acme")
        return (await running.seat.model_registry.generate_images(model, "cat")).output

    made = make_provider(id="acme", models=MODELS, images={"i": lambda request: {"output": [request.input]}})
    assert doing(test, lambda api: api.register_provider(made)) == ("cat",)


@pytest.mark.rule("PRV-16")
@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({}, '^Provider acme: at least one of "api", "images", or "classifiers" is required.$'),
        ({"images": {}}, '^Provider acme: at least one of "api", "images", or "classifiers" is required.$'),
        ({"api": 3}, "api of provider 'acme'"),
        ({"api": {"one": 3}}, r"api\['one'\] of provider 'acme'"),
        ({"api": answer, "configured": True}, "configured of provider 'acme'"),
    ],
)
def test_parts_that_make_no_provider_are_refused(parts: dict[str, Any], why: str) -> None:
    with pytest.raises(ExtensionMisuse, match=why):
        make_provider(id="acme", models=MODELS, **parts)


@pytest.mark.rule("PRV-16")
def test_it_is_configured_as_its_function_says() -> None:
    assert not make_provider(id="acme", models=(), api=answer, configured=lambda: False).configured()
    assert make_provider(id="acme", models=(), api=answer).configured()
