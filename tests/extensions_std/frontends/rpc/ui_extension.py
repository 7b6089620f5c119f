"""The extension of the transcript `rpc-extension-ui`, in Python: it asks, shows, fails and refuses in every way."""

import os
import sys
from typing import Any

import trio

from camshaft.actors.api import AbortSignal

FAILING = "CAMSHAFT_TEST_FAILING_TURN_ENDS"


def setup(api: Any) -> None:  # noqa: C901  # one small function a command
    """Registers the commands of the transcript, in its order."""
    told = {"cancel": False}

    def result(value: Any) -> None:
        api.append_entry("result", {"value": "<undefined>" if value is None else value})

    def command(name: str, handler: Any) -> None:
        api.register_command(name, handler, description=f"cmd {name}")

    def limit(arguments: str) -> Any:
        return int(arguments) if arguments else None

    async def sel(arguments: str, ctx: Any) -> None:
        result(await ctx.ui.select("Pick", ["A", "B"], timeout=limit(arguments)))

    async def conf(arguments: str, ctx: Any) -> None:
        result(await ctx.ui.confirm("Sure?", "Really", timeout=limit(arguments)))

    async def inp(_arguments: str, ctx: Any) -> None:
        result(await ctx.ui.input("Name", "placeholder"))

    async def ed(_arguments: str, ctx: Any) -> None:
        result(await ctx.ui.editor("Edit", "pre\nfill"))

    async def fire(_arguments: str, ctx: Any) -> None:
        ui = ctx.ui
        ui.notify("note")
        ui.notify("warn", "warning")
        ui.set_status("k", "text")
        ui.set_status("k")
        ui.set_widget("w", ["l1", "l2"])
        ui.set_widget("w", ["x"], placement="belowEditor")
        ui.set_widget("w", lambda *_: None)
        ui.set_widget("w")
        ui.set_title("T")
        ui.set_editor_text("txt")
        ui.paste_to_editor("pasted")
        ui.set_working_message("working")
        ui.set_footer(None)
        change = ui.set_theme("dark")
        changed = {"success": change.success, "error": change.error}
        shown = {"get": ui.get_editor_text(), "custom": await ui.custom(lambda *_: None) is None, "themes": ui.get_all_themes()}
        found = {"theme": ui.get_theme("x") is None, "set": changed, "exp": ui.get_tools_expanded(), "mode": ctx.mode, "hasUI": ctx.has_ui}
        result({**shown, **found})

    async def abortsel(_arguments: str, ctx: Any) -> None:
        signal = AbortSignal()
        async with trio.open_nursery() as nursery:

            async def later() -> None:
                await trio.sleep(0.1)
                signal.request()

            nursery.start_soon(later)
            result(await ctx.ui.select("Pick", ["A"], signal=signal))

    async def pre(_arguments: str, ctx: Any) -> None:
        signal = AbortSignal()
        signal.request()
        result(await ctx.ui.select("Pick", ["A"], signal=signal))

    async def two(_arguments: str, ctx: Any) -> None:
        answers: dict[str, Any] = {}
        async with trio.open_nursery() as nursery:
            opened = trio.Event()

            async def ask(title: str) -> None:
                if title == "two":
                    await opened.wait()
                else:
                    nursery.start_soon(after)
                answers[title] = await ctx.ui.input(title)

            async def after() -> None:
                opened.set()

            nursery.start_soon(ask, "one")
            nursery.start_soon(ask, "two")
        result([answers["one"], answers["two"]])

    async def boom(_arguments: str, _ctx: Any) -> None:
        raise RuntimeError("boom error")

    async def print_(_arguments: str, _ctx: Any) -> None:
        print("console.log line")
        os.write(1, b"raw stdout write\n")
        print("to stderr", file=sys.stderr)
        await trio.run_process(["echo", "from a child"])

    async def msg(arguments: str, _ctx: Any) -> None:
        api.send_message({"custom_type": "x", "content": "custom hi", "display": True}, trigger_turn=arguments == "t")

    async def bye(_arguments: str, ctx: Any) -> None:
        ctx.shutdown()
        result("requested")

    async def newsess(_arguments: str, ctx: Any) -> None:
        await ctx.new_session()
        result("stale")

    async def cancel(arguments: str, _ctx: Any) -> None:
        told["cancel"] = arguments != "off"

    async def tend(_arguments: str, _ctx: Any) -> None:
        os.environ[FAILING] = "yes"  # the extension is loaded anew for another session, and this stays

    handlers: list[tuple[str, Any]] = [("sel", sel), ("conf", conf), ("inp", inp), ("ed", ed), ("fire", fire), ("abortsel", abortsel)]
    handlers += [("pre", pre), ("two", two), ("boom", boom), ("print", print_), ("msg", msg), ("bye", bye)]
    for name, handler in [*handlers, ("newsess", newsess), ("cancel", cancel), ("tend", tend)]:
        command(name, handler)

    def on_input(event: Any, _ctx: Any) -> Any:
        if event.text == "swallow":
            return {"action": "handled"}
        return {"action": "transform", "text": "changed text"} if event.text == "change" else None

    def on_turn_end(_event: Any, _ctx: Any) -> None:
        if FAILING in os.environ:
            raise RuntimeError("turn_end handler error")

    def before(_event: Any, _ctx: Any) -> Any:
        return {"cancel": True} if told["cancel"] else None

    api.on("session_start", lambda event, _ctx: api.append_entry("started", {"reason": event.reason}) and None)
    api.on("input", on_input)
    api.on("turn_end", on_turn_end)
    api.on("session_before_switch", before)
    api.on("session_before_fork", before)
