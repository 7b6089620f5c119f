"""A sample: the smallest tool.

Load it with `camshaft -e hello.py`. The model can then call `hello`. It keeps nothing.
"""

from camshaft.actors.api import ExtensionAPI


def setup(api: ExtensionAPI) -> None:
    """Registers the tool; its name, description and parameters are those of the function."""
    api.register_tool(hello)


def hello(name: str) -> str:
    """Greets someone by name."""
    return f"Hello, {name}!"
