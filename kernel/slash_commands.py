"""The syntax of commands: a slash, a name up to the first space, and everything behind that space (CMD-1, LOOP-4)."""


def split_command(text: str) -> tuple[str, str] | None:
    """Name and arguments, untrimmed; None if the text is no command. Only U+0020 ends the name."""
    if not text.startswith("/"):
        return None
    name, _, arguments = text[1:].partition(" ")
    return name, arguments
