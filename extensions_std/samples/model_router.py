"""A sample: the model `router/auto`, which sends easy prompts to a small model and hard ones to a large one.

The small model judges each prompt in one word, outside the conversation; what follows on a prompt, such as the results
of tools, stays with the model that began it, so that its cache is used. If an answer failed, the large model has to do it.
`--router-small` and `--router-large` name the models as provider/id; without them they are the cheapest and the dearest
that can be used.

Load it with `camshaft -e model_router.py --model router/auto`. What it decided for a prompt is the router's state, an entry of the
session: it follows the branch, and a session that is opened again goes on with it. What judging cost is a `usage` entry.
"""

from typing import Final

from camshaft.actors.api import ExtensionAPI, ExtensionContext, Model, ModelFailed, Route, RouteRequest, UserMessage, VirtualModel, text_of

SMALL: Final = "router-small"
LARGE: Final = "router-large"
JUDGE: Final = "Is the following request hard, so that only the best model should answer it? Say one word: easy or hard."


def setup(api: ExtensionAPI) -> None:
    """Registers the model and the flags."""
    api.register_flag(SMALL, type="string", description="Model for easy prompts, as provider/id")
    api.register_flag(LARGE, type="string", description="Model for hard prompts, as provider/id")

    async def route(request: RouteRequest, ctx: ExtensionContext) -> Route:
        small, large = chosen(ctx, api.get_flag(SMALL), 0), chosen(ctx, api.get_flag(LARGE), -1)
        if request.reason == "direct":
            return Route(model=small)
        if request.reason == "retry":
            return Route(model=large, state="hard")
        if request.reason == "continuation" and request.state is not None:
            return Route(model=large if request.state == "hard" else small)
        verdict = await judged(request, ctx, small)
        return Route(model=large if verdict == "hard" else small, state=verdict)

    levels = ("off", "low", "medium", "high")
    api.register_virtual_model(VirtualModel(provider="router", id="auto", name="Router", thinking_levels=levels, route=route))


def chosen(ctx: ExtensionContext, reference: object, place: int) -> Model:
    """The model that a flag names; without it the one at this place of those that can be used, by price. Raises LookupError."""
    usable = sorted([model for model in ctx.model_registry.get_available() if not model.is_virtual], key=lambda model: model.cost.output)
    named = ctx.model_registry.resolve(str(reference)) if reference else None
    if reference and named is None or not usable:
        raise LookupError(f"router/auto: no model {reference or 'that can be used'}")
    return named or usable[place]


async def judged(request: RouteRequest, ctx: ExtensionContext, judge: Model) -> str:
    """Whether the last thing that somebody said is `easy` or `hard`; hard, if nobody knows."""
    said = [text_of(message.content) for message in request.messages if isinstance(message, UserMessage)]
    try:
        answer = await ctx.ask_model(said[-1] if said else "", system_prompt=JUDGE, model=judge, thinking_level="off", kind="router")
    except ModelFailed:
        return "hard"
    return "easy" if "easy" in text_of(answer.content).lower() else "hard"
