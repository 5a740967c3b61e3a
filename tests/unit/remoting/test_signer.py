"""A client that signs: every request, and last of all."""

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.protocol.signing import Credentials, Signer, is_signed_with
from skyrocket.remoting.addresses import AddressList
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from tests.unit.remoting.peers import serving
from tests.waiting import until

ASK = GetMaxOffset(topic="T", queue_id=0)


async def test_all_kinds_of_requests_are_signed_after_everything_else_was_added() -> None:
    seen: list[RemotingCommand] = []

    def look(_: Peer, command: RemotingCommand) -> Outcome:
        seen.append(command)
        return command.answer(0, None, {"offset": "1"})

    def add(_: str, command: RemotingCommand) -> None:
        assert command.ext_fields is not None
        command.ext_fields["zone"] = "here"

    router = Router()
    router.register(RequestCode.GET_MAX_OFFSET, look)
    signer = Signer(Credentials("alice", "secret"))
    async with serving(router) as (_, address), RemotingClient(before_send=add, signer=signer) as client:
        await client.call(str(address), ASK)
        await client.call_any(AddressList([str(address)]), ASK)
        await client.call_oneway(str(address), ASK)
        await until(lambda: len(seen) == 3)
    for command in seen:
        assert (command.ext_fields or {})["zone"] == "here"
        assert (command.ext_fields or {})["AccessKey"] == "alice"
        assert is_signed_with(command, "secret")
