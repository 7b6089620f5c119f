"""What active tools change of the set that is declared to the model (EXPO-20 to EXPO-23).

A tool may have `prepare_loadout`: it sees the set as it is declared, and may word descriptions anew
or keep declarations from the model while the tools stay active, for instance because it offers
them itself. The hooks are asked whenever the active set is applied: when it changes, when a run
starts, and between turns. One that raises is reported, and the others count.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.actor import Failure, guard_now
from camshaft.kernel import codec, shapes
from camshaft.kernel.messages import Message, SystemMessage, ToolDeclaration
from camshaft.kernel.persistent import EMPTY, FrozenDict
from camshaft.kernel.tools import Exposure, Namespace, RegisteredTool, callable_names


@shapes.frozen(kw_only=True)
class Loadout:
    """What `prepare_loadout` is given."""

    declared: tuple[ToolDeclaration, ...]
    """The active tools as their owners describe them, in order."""
    callable: tuple[str, ...]
    """Names of the tools that other tools can call."""
    registered: tuple[str, ...]
    _tools: Mapping[str, RegisteredTool] = attrs.field(repr=False)

    def exposure_of(self, name: str) -> Exposure | None:
        """Who may call a tool; None for one that is not registered."""
        return self._tools[name].definition.exposure if name in self._tools else None

    def namespace_of(self, name: str) -> Namespace | None:
        """The group a tool belongs to, if it has one."""
        return self._tools[name].definition.namespace if name in self._tools else None

    def guidelines_of(self, name: str) -> tuple[str, ...]:
        """The lines a tool adds to the prompt."""
        return self._tools[name].definition.prompt_guidelines if name in self._tools else ()


@shapes.frozen(kw_only=True)
class LoadoutChanges:
    """What `prepare_loadout` may return, as such or as a dict."""

    descriptions: FrozenDict = EMPTY
    """Tool name to the description that is declared instead; the last one counts."""
    hidden_declarations: tuple[str, ...] = ()
    """Tools that stay active and callable, but are declared in no request and named in no prompt."""


@shapes.frozen(kw_only=True)
class Prepared:
    """What all hooks together changed."""

    descriptions: FrozenDict = EMPTY
    hidden: frozenset[str] = frozenset()

    def declared(self, declaration: ToolDeclaration) -> ToolDeclaration:
        """The declaration as it is recorded."""
        text = self.descriptions.get(declaration.name)
        return attrs.evolve(declaration, description=text) if isinstance(text, str) else declaration


UNCHANGED: Final = Prepared()


@shapes.define(eq=False)
class Loadouts:
    """The changes of one generation of extensions, as they were last applied."""

    _failed: Callable[[str, Failure], None]
    """Told of a hook that raised: who owns it, and what."""
    current: Prepared = UNCHANGED

    def apply(self, tools: Mapping[str, RegisteredTool], active: Sequence[str]) -> Prepared:
        """Asks the hooks of the active tools, in order; the same object as before if nothing changed."""
        asked = [tools[name] for name in active if name in tools and tools[name].definition.prepare_loadout is not None]
        made = self._asked(asked, tools, active) if asked else UNCHANGED
        if made != self.current:
            self.current = made
        return self.current

    def _asked(self, asked: Sequence[RegisteredTool], tools: Mapping[str, RegisteredTool], active: Sequence[str]) -> Prepared:
        loadout = Loadout(
            declared=tuple([tools[name].declaration for name in active if name in tools]),
            callable=callable_names(active, tools),
            registered=tuple(tools),
            tools=tools,
        )
        descriptions: dict[str, Any] = {}
        hidden: set[str] = set()
        for tool in asked:
            outcome = guard_now(_changes, tool.definition.prepare_loadout, loadout)
            if isinstance(outcome, Failure):
                self._failed(tool.source_info.path, outcome)
                continue
            descriptions |= outcome.value.descriptions
            hidden |= set(outcome.value.hidden_declarations)
        return Prepared(descriptions=FrozenDict(descriptions), hidden=frozenset(hidden))


def without_hidden(messages: Sequence[Message], hidden: frozenset[str]) -> tuple[Message, ...]:
    """The messages of a request without the declarations of hidden tools."""
    return tuple([_shown(message, hidden) if isinstance(message, SystemMessage) else message for message in messages])


def _shown(message: SystemMessage, hidden: frozenset[str]) -> SystemMessage:
    added = tuple([each for each in message.tools_added or () if each.name not in hidden])
    removed = tuple([each for each in message.tools_removed or () if each.name not in hidden])
    return attrs.evolve(message, tools_added=added or None, tools_removed=removed or None)


def _changes(hook: Callable[[Loadout], Any], loadout: Loadout) -> LoadoutChanges:
    answer = hook(loadout)
    return LoadoutChanges() if answer is None else codec.python(LoadoutChanges, answer)
