"""What the transport tests share."""

import asyncio
from contextlib import asynccontextmanager

from mmsp_nb.transport.wire import WireRequest


def post(url, **options):
    return WireRequest(
        "POST", url, options.pop("headers", {"Authorization": "Bearer sk-secret-0123456789"}), b"{}", **options
    )


async def read(transport, request, **options):
    """All events of one exchange."""
    async with await transport.send(request, client="TestClient", **options) as response:
        return [event async for event in response.events()]


@asynccontextmanager
async def tcp_server(talk):
    """The port of a server that waits for some bytes, calls ``talk(writer)`` and hangs up."""
    running = set()

    async def serve(reader, writer):
        running.add(asyncio.current_task())
        await reader.read(65536)
        talk(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*running, return_exceptions=True)
