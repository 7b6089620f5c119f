"""The setting that keeps images from models."""

from typing import Any

import attrs
import pytest

from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.messages import ImageBlock, blocks_of
from camshaft.kernel.settings import ImageSettings
from tests.actors.running import NO_RETRY, opened

IMAGE = ImageBlock(data="AA==", mime_type="image/png")


@pytest.mark.rule("SET-11", "CTX-34")
@pytest.mark.parametrize(("is_blocked", "asked_with"), [(True, ["text", "text"]), (False, ["text", "image", "image"])])
async def test_models_get_no_images_that_a_setting_blocks_and_the_session_keeps_them(is_blocked: bool, asked_with: list[str]) -> None:
    asked: list[list[str]] = []

    def respond(request: Any) -> Any:
        asked.extend([[block.type for block in message.content] for message in request.messages if message.role == "user"])
        return assistant("ok")

    async with opened([respond], settings=attrs.evolve(NO_RETRY, images=ImageSettings(block_images=is_blocked))) as running:
        await running.seat.prompt("look", images=[IMAGE, IMAGE])

        (user,) = [message for message in running.seat.llm_messages if message.role == "user"]
        assert (asked, [block.type for block in blocks_of(user.content)]) == ([asked_with], ["text", "image", "image"])
