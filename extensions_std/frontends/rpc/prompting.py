"""Commands that make the conversation go on, or stop (RPC-60 to RPC-73)."""

import trio

from camshaft.actors.api import encode
from camshaft.actors.host import AgentSettled, AgentStart, AutoRetryEnd, Event
from camshaft.extensions_std.frontends.rpc.acting import Acting
from camshaft.extensions_std.frontends.rpc.records import NOTHING, command_id
from camshaft.extensions_std.frontends.rpc.requests import BashRequest, CompactRequest, NoFields, PromptRequest, QueueRequest
from camshaft.extensions_std.frontends.rpc.state_records import bash_record

SOURCE = "rpc"
"""What `input` handlers are told of where a text comes from."""


async def prompt(acting: Acting, request: PromptRequest) -> object:
    """Answers when it is accepted, before the first event of its run (RPC-25); is over when the run has settled."""
    told = trio.Event()

    def accepted(what: str | Exception) -> None:
        told.set()
        if isinstance(what, Exception):
            acting.refuse(what)
        else:
            acting.answer({"disposition": what})

    receipt = await acting.seat.submit(
        request.message, images=request.images, streaming_behavior=request.streaming_behavior, source=SOURCE, preflight=accepted
    )
    if receipt.disposition == "deferred":  # `agent_settled` is being told: it is served when that is over
        await told.wait()
    await receipt.wait()
    return NOTHING


async def steer(acting: Acting, request: QueueRequest) -> object:
    """Queues; does not start a run (RPC-66)."""
    return {"disposition": await acting.seat.steer(request.message, images=request.images, source=SOURCE)}


async def follow_up(acting: Acting, request: QueueRequest) -> object:
    """As `steer`."""
    return {"disposition": await acting.seat.follow_up(request.message, images=request.images, source=SOURCE)}


async def abort(acting: Acting, _request: NoFields) -> object:
    """Answers when everything is idle (RPC-28, RPC-69)."""
    await acting.seat.abort()
    return NOTHING


async def clear_queue(acting: Acting, _request: NoFields) -> object:
    """The texts that waited (RPC-44)."""
    cleared = acting.seat.clear_queue()
    return {"steering": list(cleared.steering), "followUp": list(cleared.follow_up)}


async def abort_retry(acting: Acting, _request: NoFields) -> object:
    """Answers when the wait has ended, before the run settles (RPC-71)."""
    if not acting.seat.is_waiting_to_retry:
        return NOTHING
    ended = trio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, AutoRetryEnd | AgentStart | AgentSettled):
            acting.answer()
            ended.set()

    unsubscribe = acting.seat.subscribe(hear)
    try:
        acting.seat.cancel_retry()
        await ended.wait()
    finally:
        unsubscribe()
    return NOTHING


async def compact(acting: Acting, request: CompactRequest) -> object:
    """Ends a run first, which is not resumed (RPC-72)."""
    return encode(await acting.seat.compact(request.custom_instructions))


async def bash(acting: Acting, request: BashRequest) -> object:
    """Runs beside everything else; what it prints is told under the id of the command (RPC-75 to RPC-80)."""
    named = command_id(acting.id)
    return bash_record(await acting.seat.user_bash(request.command, exclude_from_context=request.exclude_from_context, command_id=named))


async def abort_bash(acting: Acting, _request: NoFields) -> object:
    """Ends all of them (RPC-78)."""
    acting.seat.abort_bash()
    return NOTHING
