"""A recorded transcript against our server: what is sent, when, and how what comes is compared.

A command is sent when everything that the recorder had seen before it has come, updates apart: how an answer is cut
into pieces, and how far it had come, is no behaviour. Ids of the transcript stand for ours: the first pair that meets
in the same place belongs together from there on. Times, durations, texts of prompts and descriptions are not compared.
"""

import json
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from tests.extensions_std.frontends.rpc.talking import Process, Record, Talk

FOLDER: Final = Path(__file__).with_name("transcripts")
UPDATES: Final = ("message_update", "tool_execution_update", "bash_execution_update")
ID: Final = re.compile(r"e\d{7}|00000000-0000-7000-8000-\d{12}|.*/?\d{4}-\d\d-\d\dT[\d-]+Z_00000000-0000-7000-8000-\d{12}\.(jsonl|html)")
NOT_COMPARED: Final = {
    "timestamp",
    "estimatedTokensAfter",
    "labelTimestamp",
    "durationMs",
    "wall_time_seconds",
    "baseUrl",
    "constrainedSampling",
    "parameters",
}
RAW: Final = {
    '{"id":"sp","type":"set_session_name","name":"caf\ufffd': b'{"id":"sp","type":"set_session_name","name":"caf\xc3',
    '\ufffd"}\n': b'\xa9"}\n',
    '{"id":"iu","type":"set_session_name","name":"x\ufffdy"}\n': b'{"id":"iu","type":"set_session_name","name":"x\xffy"}\n',
}
"""What the recorder could not write down: halves of a character, and a byte that is none."""
OURS: Final = {"totalFromProvider"}
"""Fields that may be there or not."""


@attrs.frozen
class Exempt:
    """Steps that a rule has other than the reference: which, and what comes instead (nothing, if it is not told)."""

    rule: str
    lines: range
    instead: tuple[Record, ...] = ()
    """Fields that each of our records has."""
    is_sent: bool = attrs.field(default=True, kw_only=True)
    """False: commands among these lines are not sent."""
    then: Record | None = attrs.field(default=None, kw_only=True)
    """Of a command that is refused here: one that is not, so that what follows can be compared."""


@attrs.frozen
class Step:
    """A line of the transcript."""

    number: int
    kind: str
    record: Any = None
    raw: str | None = None
    note: str = ""


@attrs.define
class Tally:
    """How many steps there were, and what became of them."""

    compared: int = 0
    exempted: dict[str, int] = attrs.field(factory=dict)
    skipped: int = 0


def steps_of(name: str) -> list[Step]:
    """The lines of a transcript after its title."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[1:-1]
    read = [json.loads(line) for line in lines]
    return [
        Step(number, each["dir"], each.get("record"), each.get("raw"), each.get("note", "")) for number, each in enumerate(read, start=2)
    ]


@attrs.define(eq=False)
class Replay:
    """One transcript on its way."""

    talk: Talk
    steps: list[Step]
    exempt: tuple[Exempt, ...]
    paths: Mapping[str, str]
    """Folders of the transcript, and ours."""
    tally: Tally = attrs.field(factory=Tally)
    faults: list[str] = attrs.field(factory=list)
    _bound: dict[str, str] = attrs.field(factory=dict)
    _updates: dict[str, list[Record]] = attrs.field(factory=dict)
    """Updates since the last record that is none, by type."""
    _code: int | None = None

    async def run(self) -> None:
        """Sends and compares everything."""
        waiting: list[Step] = []
        for step in self.steps:
            exempt = self._exempt_of(step)
            if step.kind == "out":
                waiting.append(step)
                continue
            await self._expect(waiting)
            waiting = []
            if step.kind == "in":
                if exempt is None or exempt.is_sent:
                    await self._send(step)
                if exempt is None:
                    self.tally.compared += 1
                else:
                    await self._expect([step])
            elif step.kind == "ctl":
                await self._control(step.note)
        await self._expect(waiting)

    def _exempt_of(self, step: Step) -> Exempt | None:
        return next((each for each in self.exempt if step.number in each.lines), None)

    async def _send(self, step: Step) -> None:
        if step.raw is not None:
            await self.talk.server.send(RAW.get(step.raw) or self._ours(step.raw).encode())
        else:
            await self.talk.send(self._translated(step.record))

    def _translated(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._translated(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._translated(each) for each in value]
        return self._bound.get(value, self._ours(value)) if isinstance(value, str) else value

    def _ours(self, text: str) -> str:
        for theirs, ours in self.paths.items():
            text = text.replace(theirs, ours)
        return text

    async def _control(self, note: str) -> None:
        server = self.talk.server
        if note in ("client closes stdin", "stdin EOF while streaming"):
            await server.close()
        elif note.endswith("while streaming") and note.startswith("sig"):
            assert isinstance(server, Process)
            server.process.send_signal(getattr(signal, note.split()[0].upper()))
        elif note == "stdout EOF":
            if any([each.rule == "RPC-12" for each in self.exempt]):
                await server.close()
            more = [each for each in await self.talk.rest() if each["type"] not in UPDATES]
            if more:
                self.faults.append(f"more than the transcript has: {more}")
        elif match := re.fullmatch(r"process exited rc=(-?\d+)", note):
            self._code, theirs = await server.ended(), int(match[1])
            expected = {-2: 130}.get(theirs, theirs)  # RPC-96
            if self._code != expected and not any([each.rule == "RPC-12" for each in self.exempt]):
                self.faults.append(f"exit code {self._code}, expected {expected}")

    async def _expect(self, steps: list[Step]) -> None:
        for step in steps:
            exempt = self._exempt_of(step)
            if exempt is not None:
                self.tally.exempted[exempt.rule] = self.tally.exempted.get(exempt.rule, 0) + 1
                if exempt.lines[0] == step.number:
                    for wanted in exempt.instead:
                        got = await self._next(step)
                        self._compare(wanted, _part(got, wanted), f"line {step.number}, exempted")
                    if exempt.then is not None:
                        await self.talk.send(exempt.then)
            elif step.record["type"] in UPDATES:
                await self._expect_update(step)
            else:
                got = await self._next(step)
                self._compare(step.record, got, f"line {step.number} {step.record['type']}")
                self.tally.compared += 1

    async def _next(self, step: Step) -> Record:
        """The next record that is no update."""
        while (record := await self.talk.next()) is not None:
            if record["type"] not in UPDATES:
                self._updates.clear()
                return record
            self._updates.setdefault(record["type"], []).append(record)
        raise AssertionError(f"the output ended before line {step.number}: {step.record}; faults so far: {self.faults}")

    async def _expect_update(self, step: Step) -> None:
        """One of its kind has come since the last record that is none, or comes now."""
        type = step.record["type"]
        while type not in self._updates:
            record = await self.talk.next()
            assert record is not None and record["type"] in UPDATES, f"line {step.number}: expected an update, got {record}"
            self._updates.setdefault(record["type"], []).append(record)
        told = [_told(each) for each in self._updates[type]]
        if _told(step.record) not in told and type == "message_update":
            while _told(step.record) not in told:
                record = await self.talk.next()
                assert record is not None, f"line {step.number}: the output ended"
                assert record["type"] in UPDATES, f"line {step.number}: no update {_told(step.record)} before {record}; there were {told}"
                self._updates.setdefault(record["type"], []).append(record)
                told.append(_told(record))
        self.tally.compared += 1

    def _compare(self, theirs: Any, ours: Any, where: str) -> None:
        if isinstance(theirs, dict) and isinstance(ours, dict):
            self._compare_objects(theirs, ours, where)
        elif isinstance(theirs, list) and isinstance(ours, list):
            if len(theirs) != len(ours):
                self.faults.append(f"{where}: {len(theirs)} expected, got {len(ours)}: {theirs!r} and {ours!r}")
            for number, (one, other) in enumerate(zip(theirs, ours)):
                self._compare(one, other, f"{where}[{number}]")
        elif isinstance(theirs, str) and isinstance(ours, str):
            self._compare_texts(theirs, ours, where)
        elif isinstance(theirs, float) and isinstance(ours, float | int):
            if abs(theirs - ours) > 1e-12:
                self.faults.append(f"{where}: {theirs} expected, got {ours}")
        elif theirs != ours or (theirs is None) != (ours is None):
            self.faults.append(f"{where}: {theirs!r} expected, got {ours!r}")

    def _compare_objects(self, theirs: Record, ours: Record, where: str) -> None:
        for name in {**theirs, **ours}:
            if name in NOT_COMPARED or name in OURS:
                continue
            if (name in theirs) != (name in ours):
                self.faults.append(
                    f"{where}.{name}: {'missing' if name in theirs else 'not expected'}: {theirs.get(name, ours.get(name))!r}"
                )
            elif name == "sections":
                self._compare(sorted(theirs[name]), sorted(ours[name]), f"{where}.{name}")
            elif name == "toolsAdded":
                self._compare([each["name"] for each in theirs[name]], [each["name"] for each in ours[name]], f"{where}.{name}")
            else:
                self._compare(theirs[name], ours[name], f"{where}.{name}")

    def _compare_texts(self, theirs: str, ours: str, where: str) -> None:
        expected = self._ours(theirs)
        if theirs.endswith("ELIDED") or theirs.startswith("ELIDED"):
            told = theirs.replace("ELIDED", "").strip()
            if not ours.startswith(told):
                self.faults.append(f"{where}: {told!r}… expected, got {ours!r}")
        elif ID.fullmatch(theirs):
            if self._bound.setdefault(theirs, ours) != ours:
                self.faults.append(f"{where}: {theirs!r} is {self._bound[theirs]!r}, got {ours!r}")
        elif expected != ours:
            self.faults.append(f"{where}: {expected!r} expected, got {ours!r}")


def _part(got: Any, wanted: Any) -> Any:
    """What of a record there is a wish about."""
    return {name: _part(got.get(name), wanted[name]) for name in wanted} if isinstance(got, dict) and isinstance(wanted, dict) else got


def _told(update: Record) -> Any:
    """What is compared of an update: what happened to a message, as far as pieces do not matter."""
    return update["assistantMessageEvent"] if update["type"] == "message_update" else update["type"]
