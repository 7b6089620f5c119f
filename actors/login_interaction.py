"""What a login and the person talk with: questions and notices (MOD-78).

A host hands a `LoginInteraction` to a login of an extension. To end a login it cancels the task that runs it; whoever shows
the questions is cancelled with it.
"""

from typing import Literal, Protocol

import attrs

from camshaft.actors.misuse import ExtensionMisuse
from camshaft.kernel import shapes

PromptKind = Literal["text", "secret", "select", "manual_code"]
NoticeKind = Literal["info", "auth_url", "device_code", "progress"]


@shapes.frozen(kw_only=True)
class LoginOption:
    """One of several answers."""

    id: str
    """What is answered with."""
    label: str
    description: str | None = None


@shapes.frozen(kw_only=True)
class LoginPrompt:
    """A question to the person."""

    kind: PromptKind
    """`secret` is not shown while it is typed; `manual_code` is what a page that was opened gave the person to paste."""
    message: str
    placeholder: str | None = None
    options: tuple[LoginOption, ...] = ()
    """Of a `select`; it is answered with the id of one of them."""

    def __attrs_post_init__(self) -> None:
        if (self.kind == "select") != bool(self.options):
            count = len(self.options)
            raise ExtensionMisuse(f"login prompt of kind {self.kind!r} with {count} options; a select has some, others have none")


@shapes.frozen(kw_only=True)
class LoginNotice:
    """Something that the person is told."""

    kind: NoticeKind
    message: str | None = None
    """Of `info` and `progress`."""
    url: str | None = None
    """Of `auth_url`: the page to open."""
    instructions: str | None = None
    """What to do there."""
    user_code: str | None = attrs.field(default=None, repr=False)
    """Of `device_code`: what to type at `verification_uri`."""
    verification_uri: str | None = None
    open_browser_on_confirm: bool = False
    copy_code_on_confirm: bool = False
    interval_seconds: float | None = None
    """How often the login looks whether the person is done."""
    expires_in_seconds: float | None = None

    def __attrs_post_init__(self) -> None:
        needed = {"info": ("message",), "progress": ("message",), "auth_url": ("url",), "device_code": ("user_code", "verification_uri")}
        missing = [name for name in needed[self.kind] if getattr(self, name) is None]
        if missing:
            raise ExtensionMisuse(f"login notice of kind {self.kind!r} without {missing[0]}")


class LoginInteraction(Protocol):
    """What a host implements."""

    async def prompt(self, prompt: LoginPrompt) -> str:
        """The person's answer. Cancelled with the login."""
        ...

    def notify(self, notice: LoginNotice) -> None:
        """Tells the person; returns at once."""
        ...
