"""Which request codes are served: asked of running servers and a client, and written into docs/reference/protocol.md.

python -m tests.protocol_page                                       prints the table
python -m tests.protocol_page --write docs/reference/protocol.md    replaces it in that page

Nothing of the code is looked into: a request without fields goes to a name server, a controller, a broker and a client,
and whoever does not answer "request type N not supported" serves its code.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from skyrocket.cli.controller import build_controller
from skyrocket.client import Message, Producer
from skyrocket.config.sections import ControllerConfig
from skyrocket.errors import SkyrocketError
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.requests.catalogue import REQUESTS
from skyrocket.testing import LocalCluster

BEGIN = "<!-- requests: written by `python -m tests.protocol_page --write docs/reference/protocol.md` -->"
END = "<!-- end of requests -->"
ANSWER_SECONDS = 20.0


async def table() -> str:
    """The table as Markdown: served codes, then those that are only known by name."""
    served = await _served()
    lines = ["| Code | Name | Name server | Controller | Broker | Client | Fields |", "|--:|---|---|---|---|---|---|"]
    for code in sorted(code for code in RequestCode if any(code in codes for codes in served)):
        marks = " | ".join("●" if code in codes else "" for codes in served)
        lines.append(f"| {code.value} | {code.name} | {marks} | {_fields(code)} |")
    others = [f"{code.name} ({code.value})" for code in sorted(RequestCode) if not any(code in one for one in served)]
    return (
        "\n".join(
            [*lines, "", f"Known by name, and refused with code 3 unless settings say otherwise: {', '.join(others)}."]
        )
        + "\n"
    )


def _fields(code: RequestCode) -> str:
    kind = REQUESTS.get(code)
    fields = kind.wire_fields if kind is not None else ()
    return " ".join(f"`{field.name}`" if field.required else f"`{field.name}?`" for field in fields)


async def _served() -> list[set[RequestCode]]:
    """The codes of a name server, a controller, a broker and a client."""
    async with LocalCluster() as cluster, _controller() as controller:
        addresses = [cluster.name_server_address, controller, *cluster.broker_addresses.values()]
        return [*(await asyncio.gather(*map(_served_at, addresses))), await _served_by_a_client()]


@contextlib.asynccontextmanager
async def _controller() -> AsyncIterator[str]:
    with TemporaryDirectory() as folder:
        config = ControllerConfig(
            peers="n0-127.0.0.1:0",
            bind_address="127.0.0.1",
            store=f"file:{folder}/state",
            config_store_path=f"{folder}/controller.properties",
        )
        async with build_controller(config) as controller:
            yield str(await controller.start())


async def _served_at(address: str) -> set[RequestCode]:
    host, _, port = address.rpartition(":")
    answers = await asyncio.gather(*(_asked(host, int(port), code) for code in RequestCode))
    return {code for code, is_served in zip(RequestCode, answers, strict=True) if is_served}


async def _asked(host: str, port: int, code: RequestCode) -> bool:
    reader, writer = await asyncio.open_connection(host, port)
    async with contextlib.aclosing(_answers(reader)) as answers:
        writer.write(encode(RemotingCommand(code, opaque=code)))
        answer = await asyncio.wait_for(anext(answers), ANSWER_SECONDS)
    writer.close()
    return not _is_refusal(answer, code)


async def _served_by_a_client() -> set[RequestCode]:
    """A client that takes us for a name server is asked over the connection that it made."""
    served: asyncio.Future[set[RequestCode]] = asyncio.get_running_loop().create_future()

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(encode(RemotingCommand(code, opaque=code)) for code in RequestCode)
        found: set[RequestCode] = set()
        left = set(RequestCode)
        async with contextlib.aclosing(_answers(reader)) as answers:
            async for answer in answers:
                if answer.is_response:
                    code = RequestCode(answer.opaque)
                    left.discard(code)
                    if not _is_refusal(answer, code):
                        found.add(code)
                if not left:
                    break
        writer.close()
        served.set_result(found)

    async with await asyncio.start_server(ask, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Producer("Shop", f"127.0.0.1:{port}") as producer:
            sending = asyncio.ensure_future(producer.send(Message("Orders", b"?")))
            result = await asyncio.wait_for(served, ANSWER_SECONDS)
            with contextlib.suppress(SkyrocketError):
                await sending
    return result


async def _answers(reader: asyncio.StreamReader) -> AsyncGenerator[RemotingCommand, None]:
    frames = FrameReader()
    while data := await reader.read(1 << 16):
        for command in frames.receive(data):
            yield command


def _is_refusal(answer: RemotingCommand, code: int) -> bool:
    text = f"request type {code} not supported"
    return answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED and text in (answer.remark or "")


def table_of(page: str) -> str:
    """The table that a page has."""
    return page.partition(BEGIN)[2].partition(END)[0].strip() + "\n"


def written_into(page: str, new_table: str) -> str:
    """The page with its table replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page has no place for the table: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{new_table}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.protocol_page", description=__doc__)
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    options = parser.parse_args(arguments)
    text = asyncio.run(table())
    if options.write is None:
        sys.stdout.write(text)
    else:
        options.write.write_text(written_into(options.write.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
