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
    async with transport.open(request, client="TestClient", **options) as response:
        return [event async for event in response.events()]


@asynccontextmanager
async def raw_server(talk):
    """A server that reads one request on each connection and then leaves the writing to ``talk(writer)``."""
    running = set()

    async def serve(reader, writer):
        running.add(asyncio.current_task())
        try:
            await reader.readuntil(b"\r\n\r\n")
            await talk(writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        await asyncio.gather(*running, return_exceptions=True)
