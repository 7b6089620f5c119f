"""A sample: a list of things to do that the model keeps with a tool, and that `/todos` shows to the person.

The list is part of the history: every call leaves the whole list in the `details` of its result, which no model
sees. What is kept in memory is only a copy of the last one on the branch, read again when a session starts and
when somebody goes to another place in its tree. So each branch has the list it had there, a fork takes it
along, and a session that is opened again goes on with it.

Load it with `camshaft -e todo.py`.
"""

from typing import Annotated, Any, Literal

import attrs

from camshaft.actors.api import (
    CommandContext,
    ExtensionAPI,
    ExtensionContext,
    MessageEntry,
    SessionStartEvent,
    SessionTreeEvent,
    TextBlock,
    ToolResult,
    ToolResultMessage,
    freeze,
)

Action = Annotated[Literal["list", "add", "toggle", "clear"], "What to do with the list"]
Text = Annotated[str | None, "What is to be done, for add"]
Number = Annotated[int | None, "Which one, for toggle"]


@attrs.frozen
class Todo:
    """One thing to do."""

    id: int
    """Counted from 1 in its list."""
    text: str
    done: bool = False


class TodoList:
    """The list at the place of the session where it is now."""

    def __init__(self) -> None:
        self.todos: tuple[Todo, ...] = ()

    def rebuild(self, _event: SessionStartEvent | SessionTreeEvent, ctx: ExtensionContext) -> None:
        """Takes the list from the last result of the tool on the branch; without one it is empty."""
        self.todos = ()
        for entry in ctx.session.get_branch():
            message = entry.message if isinstance(entry, MessageEntry) else None
            if isinstance(message, ToolResultMessage) and message.tool_name == "todo" and not message.is_error:
                self.todos = read(message.details)

    def run(self, action: Action, text: Text = None, id: Number = None) -> ToolResult:
        """Keep a list of things to do: list it, add one with its text, toggle one by its id, or clear them all."""
        self.todos = changed(self.todos, action, text, id)
        details = freeze({"todos": [attrs.asdict(todo) for todo in self.todos]})
        return ToolResult(content=(TextBlock(text=shown(self.todos)),), details=details)

    def show(self, _arguments: str, ctx: CommandContext) -> None:
        """The command."""
        ctx.ui.notify(shown(self.todos))


def read(details: Any) -> tuple[Todo, ...]:
    """The list as a result holds it."""
    return tuple([Todo(**each) for each in details["todos"]])


def changed(todos: tuple[Todo, ...], action: Action, text: Text, id: Number) -> tuple[Todo, ...]:
    """The list afterwards. Raises ValueError for what cannot be done; the model reads why."""
    if action == "add":
        if not text:
            raise ValueError("add needs a text")
        return (*todos, Todo(max([todo.id for todo in todos], default=0) + 1, text))
    if action == "toggle":
        if id not in [todo.id for todo in todos]:
            raise ValueError(f"there is no todo {id}; expected one of {[todo.id for todo in todos]}")
        return tuple([attrs.evolve(todo, done=not todo.done) if todo.id == id else todo for todo in todos])
    return () if action == "clear" else todos


def shown(todos: tuple[Todo, ...]) -> str:
    """The list for people and models."""
    return "\n".join([f"[{'x' if todo.done else ' '}] {todo.id}. {todo.text}" for todo in todos]) or "Nothing to do"


def setup(api: ExtensionAPI) -> None:
    """Registers tool, command and hooks. Calls of one answer run in their order, so that the last result is the list."""
    todos = TodoList()
    api.on("session_start", todos.rebuild)
    api.on("session_tree", todos.rebuild)
    api.tool(name="todo", execution_mode="sequential", prompt_snippet="Keep a list of things to do")(todos.run)
    api.register_command("todos", todos.show, description="Show the list of things to do")
