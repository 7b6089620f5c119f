"""Extensions to load: folders of two modules, as people write them."""

from pathlib import Path
from typing import Final

_MAIN: Final = '''"""An extension."""

import json
import re

from .words import WORDS, counted


async def execute(_id, params, _signal, _on_update, _ctx):
    return {{"content": [{{"type": "text", "text": json.dumps(counted(params.get("text", "")))}}]}}


def setup(api):
    seen = []
    parameters = {{"type": "object", "properties": {{"text": {{"type": "string"}}}}}}
    api.register_tool({{"name": "count_{number}", "description": "Counts words", "parameters": parameters, "execute": execute}})
    api.register_command("count-{number}", lambda arguments, ctx: seen.append(re.sub("x", "y", arguments)))
    api.register_flag("count-{number}", type="boolean")
    for event in ("session_start", "turn_end", "tool_call"):
        api.on(event, lambda event, ctx: seen.append(WORDS))
'''
_WORDS: Final = '''"""Words."""

WORDS = {{"extension": {number}}}


class Counter:
    """Counts."""

    def __init__(self):
        self.words = {{}}

    def add(self, word):
        self.words[word] = self.words.get(word, 0) + 1


def counted(text):
    counter = Counter()
    for word in text.split():
        counter.add(word)
    return counter.words
'''


def write_extensions(folder: Path, count: int) -> None:
    """`extension_0`, `extension_1`, … in the folder."""
    for number in range(count):
        own = folder / f"extension_{number}"
        own.mkdir(parents=True)
        (own / "__init__.py").write_text(_MAIN.format(number=number), encoding="utf-8")
        (own / "words.py").write_text(_WORDS.format(number=number), encoding="utf-8")
