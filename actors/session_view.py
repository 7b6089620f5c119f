"""The session as extensions see it: to read, and only as long as their generation lasts (SES-89, EXT-47)."""

import os
from collections.abc import Iterable

from camshaft.actors.generation import Checked
from camshaft.actors.runtime import Runtime
from camshaft.kernel import shapes
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.projection import ContextEntry, Projection
from camshaft.kernel.state import SessionState
from camshaft.kernel.tree_nodes import TreeNode, tree_nodes


@shapes.frozen(eq=False)
class SessionView:
    """The session, to read. Every member raises StaleContext once the generation is over."""

    _runtime: Runtime
    _generation: Checked

    @property
    def _live(self) -> Runtime:
        self._generation.check()
        return self._runtime

    @property
    def _state(self) -> SessionState:
        return self._live.state

    def get_cwd(self) -> str:
        """The working directory."""
        return self._live.cwd

    def get_session_dir(self) -> str | None:
        """Folder of the session file; None in memory."""
        file = self._live.session_file
        return None if file is None else os.path.dirname(file)

    def get_session_id(self) -> str:
        """The session's id."""
        return self._state.header.id

    def get_session_file(self) -> str | None:
        """Path of the session file; None in memory."""
        return self._live.session_file

    def get_session_name(self) -> str | None:
        """The session's name, if it has one."""
        return self._state.tree.name

    def get_header(self) -> SessionHeader:
        """The first line of the session."""
        return self._state.header

    def get_leaf_id(self) -> str | None:
        """Id of the current position."""
        return self._state.leaf_id

    def get_leaf_entry(self) -> Entry | None:
        """The entry at the current position."""
        return self._state.leaf_entry

    def get_entry(self, entry_id: str) -> Entry | None:
        """An entry by id, or None."""
        tree = self._state.tree
        position = tree.position(entry_id)
        return None if position is None else tree.entry(position)

    def get_entries(self) -> tuple[Entry, ...]:
        """All entries in file order, without the header. O(session)."""
        return tuple(self._state.tree.entries())

    def get_branch(self, from_id: str | None = None) -> tuple[Entry, ...]:
        """The entries from the root to `from_id` (default: the leaf). O(branch). Empty for an unknown id."""
        state = self._state
        position = state.projection.leaf if from_id is None else state.tree.position(from_id)
        return () if position is None else tuple([state.tree.entry(each) for each in state.tree.branch(position)])

    def get_tree(self) -> tuple[TreeNode, ...]:
        """All branches, from their roots; several roots are possible (RPC-36). O(session)."""
        return tree_nodes(self._state.tree)

    def get_label(self, entry_id: str) -> str | None:
        """The label of an entry, if it has one."""
        return self._state.tree.label(entry_id)

    def build_context_entries(self) -> Iterable[ContextEntry]:
        """The entries in context with the messages they contribute; a lazy view."""
        return self._state.projection.context_entries

    def build_session_projection(self) -> Projection:
        """The projection of the active branch."""
        return self._state.projection
