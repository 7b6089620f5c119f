"""A model reference means one model, or is refused with what to do about it."""

from typing import Any

import pytest

from camshaft.kernel.catalogue import Catalogue, ModelChoice, ScopeWarning
from camshaft.kernel.errors import Rejection
from camshaft.kernel.models import Model


def _model(provider: str, id: str) -> Model:
    return Model(id=id, provider=provider, api="a", name=id.upper())


CODER, GLM, GATEWAY_GLM = _model("local", "qwen2.5-coder:7b"), _model("zai", "glm-5"), _model("gateway", "zai/glm-5")
OLD, NEW, ALIAS = _model("a", "sonnet-20250101"), _model("a", "sonnet-20260101"), _model("a", "sonnet-4")
HERE, THERE, LONG = _model("here", "shared"), _model("there", "shared"), _model("a/b", "c")
MODELS = (CODER, GLM, GATEWAY_GLM, OLD, NEW, ALIAS, HERE, THERE, LONG)


@pytest.mark.parametrize(
    ("reference", "model", "level"),
    [
        ("qwen2.5-coder:7b", CODER, None),
        ("qwen2.5-coder:7b:low", CODER, "low"),
        ("local/qwen2.5-coder:7b:max", CODER, "max"),
        ("LOCAL/qwen2.5-coder:7b", CODER, None),
        ("glm-5", GLM, None),
        ("zai/glm-5", GLM, None),
        ("gateway/zai/glm-5", GATEWAY_GLM, None),
        ("a/b/c", LONG, None),
        ("there/shared", THERE, None),
    ],
)
def test_exact_references_are_found(reference: str, model: Model, level: str | None) -> None:
    assert Catalogue(models=MODELS).choose(reference) == ModelChoice(model=model, level=level)


@pytest.mark.parametrize(("reference", "model"), [("sonnet", ALIAS), ("SONNET-2", NEW), ("coder", CODER), ("zai/gl", GLM), ("GLM-5", GLM)])
def test_a_part_is_enough_when_asked_for(reference: str, model: Model) -> None:
    assert Catalogue(models=MODELS, is_fuzzy=True).choose(reference) == ModelChoice(model=model)


@pytest.mark.parametrize(("usable", "model"), [({"zai", "gateway"}, GLM), ({"zai"}, GLM), ({"gateway"}, GATEWAY_GLM), (set[str](), GLM)])
def test_named_provider_wins_unless_only_the_other_can_be_used(usable: set[str], model: Model) -> None:
    assert Catalogue(models=MODELS, is_usable=usable.__contains__).choose("zai/glm-5") == ModelChoice(model=model)


def test_id_of_several_providers_is_that_of_the_one_that_can_be_used() -> None:
    assert Catalogue(models=MODELS, is_usable={"there"}.__contains__).choose("shared") == ModelChoice(model=THERE)


@pytest.mark.parametrize(
    ("usable", "hint"),
    [
        ({"here", "there"}, "More than one matching provider is authenticated."),
        (set[str](), "No matching provider is authenticated."),
    ],
)
def test_id_of_several_providers_is_never_picked_by_chance(usable: set[str], hint: str) -> None:
    refused = Catalogue(models=MODELS, is_usable=usable.__contains__).choose("shared")

    assert refused == Rejection(
        f'Model "shared" is ambiguous across providers: here/shared, there/shared. {hint} Use --provider or provider/model.'
    )


def test_provider_restricts_the_choice_whatever_its_case() -> None:
    assert Catalogue(models=MODELS).choose("shared", "HERE") == ModelChoice(model=HERE)


@pytest.mark.parametrize(
    ("reference", "provider", "text"),
    [
        ("nothing", None, 'Model "nothing" not found. Use --list-models to see available models.'),
        ("glm-5:loud", None, 'Model "glm-5:loud" not found. Use --list-models to see available models.'),
        ("glm-5", "nobody", 'Unknown provider "nobody". Use --list-models to see available providers/models.'),
    ],
)
def test_what_is_not_there_is_refused(reference: str, provider: str | None, text: str) -> None:
    assert Catalogue(models=MODELS).choose(reference, provider) == Rejection(text)


def test_invalid_level_is_dropped_with_a_warning_where_that_is_asked_for() -> None:
    chosen = Catalogue(models=MODELS, suffix="lenient").choose("glm-5:loud")

    text = 'Invalid thinking level "loud" in pattern "glm-5:loud". Using default instead.'
    assert chosen == ModelChoice(model=GLM, warning=text)


def test_suffix_stays_part_of_the_id_where_levels_are_given_otherwise() -> None:
    assert isinstance(Catalogue(models=MODELS, suffix="none").choose("glm-5:low"), Rejection)


def test_the_hint_says_what_a_given_key_does_not_do() -> None:
    refused = Catalogue(models=MODELS, has_given_key=True).choose("shared")

    assert isinstance(refused, Rejection)
    assert "--api-key does not choose a provider." in refused.why


@pytest.mark.parametrize(
    ("reference", "provider", "level", "expected"),
    [
        ("new", "HERE", None, ("here/new", None, False)),
        ("here/new", None, None, ("here/new", None, False)),
        ("here/new:high", None, None, ("here/new", "high", True)),
        ("here/new:off", None, None, ("here/new", "off", False)),
        ("new", "here", "low", ("here/new", None, True)),
        ("a/b/new", None, None, ("a/b/new", None, False)),
        ("here/new:loud", None, None, ("here/new:loud", None, False)),
    ],
)
def test_a_known_provider_may_serve_models_that_nobody_listed(
    reference: str, provider: str | None, level: str | None, expected: Any
) -> None:
    made = Catalogue(models=MODELS).choose_or_make(reference, provider, level)

    assert isinstance(made, ModelChoice)
    assert (made.model.reference, made.level, made.model.reasoning) == expected
    assert made.is_custom
    assert made.warning == f'Model "{made.model.id}" not found for provider "{made.model.provider}". Using custom model id.'


@pytest.mark.parametrize(("reference", "provider"), [("new", None), ("shared", None), ("here/", None), ("new", "nobody")])
def test_nothing_is_made_up_without_a_known_provider_and_an_id(reference: str, provider: str | None) -> None:
    catalogue = Catalogue(models=MODELS)

    assert catalogue.choose_or_make(reference, provider) == catalogue.choose(reference, provider)


def _meant(*patterns: str, models: tuple[Model, ...] = MODELS) -> list[tuple[str, str | None]]:
    return [(choice.model.reference, choice.level) for choice in Catalogue(models=models).scope(patterns).choices]


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("a/*", ["a/sonnet-20250101", "a/sonnet-20260101", "a/sonnet-4"]),
        ("A/SONNET-?", ["a/sonnet-4"]),
        ("zai/*", ["zai/glm-5", "gateway/zai/glm-5"]),
        ("gateway/*", []),
        ("gateway/**", ["gateway/zai/glm-5"]),
        ("sonnet-202[56]*", ["a/sonnet-20250101", "a/sonnet-20260101"]),
        ("sonnet-2025010[!1]", []),
        ("*[z-a]*", []),
        ("coder", ["local/qwen2.5-coder:7b"]),
        ("shared", ["here/shared", "there/shared"]),
    ],
)
def test_a_pattern_means_the_models_that_match(pattern: str, meant: list[str]) -> None:
    assert [reference for reference, _level in _meant(pattern)] == meant


def test_patterns_pin_levels_and_the_first_of_two_counts() -> None:
    assert _meant("a/*-4:high", "sonnet:low", "there/shared") == [("a/sonnet-4", "high"), ("there/shared", None)]


def test_an_id_with_brackets_is_an_id_first() -> None:
    million = _model("a", "sonnet[1m]")

    assert _meant("sonnet[1m]", "a/sonnet[1m]:high", models=(*MODELS, million)) == [("a/sonnet[1m]", None)]
    assert _meant("sonnet[1m]:high", models=(*MODELS, million)) == [("a/sonnet[1m]", "high")]


def test_what_is_odd_about_patterns_is_told() -> None:
    scope = Catalogue(models=MODELS).scope(["nothing", "no*", "shared", "glm-5:loud"])

    invalid = 'Invalid thinking level "loud" in pattern "glm-5:loud". Using default instead.'
    several = 'Pattern "shared" matches several providers: here, there. Use provider/id to choose one.'
    assert scope.warnings == (
        ScopeWarning(code="no-match", message='No models match pattern "nothing"', pattern="nothing"),
        ScopeWarning(code="no-match", message='No models match pattern "no*"', pattern="no*"),
        ScopeWarning(code="ambiguous", message=several, pattern="shared"),
        ScopeWarning(code="invalid-thinking-level", message=invalid, pattern="glm-5:loud"),
    )
