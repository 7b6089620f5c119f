"""camshaft: an event-sourced, actor-based agent kernel on Trio.

The public names are `camshaft.actors.host` (hosts and frontends), `camshaft.actors.api`
(extensions, tools, providers) and the data of `camshaft.kernel`. They are imported from there;
importing `camshaft` itself costs nothing.
"""

__version__ = "0.1.0"
