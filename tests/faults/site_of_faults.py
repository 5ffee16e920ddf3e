"""Where the fault matrix takes place: a provider, other bad addresses, a shell, and the count of what is open."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import socket
import ssl
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from clients import CLIENTS

from mmsp_nb import AutoLLMClient, loop, tools
from mmsp_nb.testing import FakeProvider
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy

__all__ = ["CLIENTS", "KEY", "Screen", "Site"]

KEY = "k-test-of-the-matrix"
PATIENCE = 10.0
"""Seconds that what is closing has to be closed."""


class Site:
    """Everything that the cells of the matrix share. A context manager."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Site:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._stack.enter_context(
            _environment(IPYTHONDIR=str(self._folder), MMSP_NB_LIVE="1", MMSP_MODEL="demo", MMSP_REQUESTS="")
        )
        self._stack.enter_context(_names_that_are_nowhere())
        self.provider = self._stack.enter_context(FakeProvider())
        self.tls = self._stack.enter_context(_tls_server(self._folder))
        self.closing = self._stack.enter_context(_closing_server())
        self.deaf = self._stack.enter_context(_deaf_server())
        self.shell, self.screen = self._stack.enter_context(_shell())
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def client(self, client_type: str, place: str = "/good", address: str = "", **options: Any) -> AutoLLMClient:
        """A client of the provider, or of another address. ``options`` are the transport's."""

        async def at_once(seconds: float) -> None:
            pass

        settings: dict[str, Any] = {"timeout": 20.0, "retries": RetryPolicy(1, base=0.001), "sleep": at_once}
        base = address or self.provider.url(place)
        transport = Transport(**{**settings, **options})
        return AutoLLMClient("a-model", KEY, base + CLIENTS[client_type][1], client_type, transport=transport)

    def counts(self) -> dict[str, int]:
        """What is open: tasks of the background loop, threads, sockets of this process, the server's own included."""
        return {
            "tasks": loop.submit(_tasks()).result(10),
            # a pool keeps the threads it has, and the shell its own
            "threads": sum(not each.name.startswith(("asyncio_", "ThreadPool")) for each in threading.enumerate()),
            "sockets": _sockets(),
        }

    def left_over(self, before: dict[str, int]) -> dict[str, int]:
        """What there is more of than ``before``, once everybody had time to close."""
        deadline = time.monotonic() + PATIENCE
        while True:
            now = self.counts()
            more = {key: now[key] - before[key] for key in before if now[key] > before[key]}
            if not more or time.monotonic() > deadline:
                return more
            gc.collect()  # what was dropped in a cycle counts once that was found
            time.sleep(0.005)


def _sockets() -> int:
    """Open sockets of this process. Where the system lists files of a process that is far quicker than psutil."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return len(psutil.Process().net_connections("inet"))
    count = 0
    for each in list(folder.iterdir()):
        with contextlib.suppress(OSError):
            count += str(each.readlink()).startswith("socket:")
    return count


async def _tasks() -> int:
    import asyncio

    return len(asyncio.all_tasks())


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    proxies = {name: None for name in os.environ if name.lower().endswith("_proxy")}
    keys = {name: None for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL")) or name == "CLIENT_TYPE"}
    before = {name: os.environ.get(name) for name in [*values, *proxies, *keys]}
    for name in [*proxies, *keys]:
        del os.environ[name]
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _names_that_are_nowhere() -> Iterator[None]:
    """``*.invalid`` is looked up nowhere: the answer is the resolver's, without asking one."""
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if str(host).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, *args, **options)

    socket.getaddrinfo = getaddrinfo
    try:
        yield
    finally:
        socket.getaddrinfo = real


@contextlib.contextmanager
def _served(each: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server on a port of its own that hands each connection to ``each``, then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                each(connection)

    thread = threading.Thread(target=serve, name="bad server", daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE)


@contextlib.contextmanager
def _closing_server() -> Iterator[str]:
    with _served(lambda connection: None) as port:
        yield f"https://127.0.0.1:{port}"


@contextlib.contextmanager
def _deaf_server() -> Iterator[str]:
    """An address whose connections never come about: its queue is full, and nobody takes from it."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def _tls_server(folder: Path) -> Iterator[str]:
    """A server whose certificate nobody has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(folder))

    def greet(connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        with context.wrap_socket(connection, server_side=True) as wrapped:
            wrapped.recv(1)

    with _served(greet) as port:
        yield f"https://127.0.0.1:{port}"


def _certificate(folder: Path) -> tuple[Path, Path]:
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    certfile, keyfile = folder / "cert.pem", folder / "key.pem"
    certfile.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    keyfile.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certfile, keyfile


class Screen:
    """What stands in the outputs of the cells: displays by their ids, the last update of each."""

    def __init__(self) -> None:
        self._shown: dict[Any, str] = {}
        self._written = io.StringIO()

    def publish(self, data: Any, metadata: Any = None, *, transient: Any = None, **options: Any) -> None:
        key = (transient or {}).get("display_id") or object()
        self._shown[key] = "\n".join(str(data.get(kind, "")) for kind in ("text/plain", "text/html"))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        with contextlib.redirect_stdout(self._written), contextlib.redirect_stderr(self._written):
            yield

    def clear(self) -> None:
        self._shown.clear()
        self._written = io.StringIO()

    @property
    def text(self) -> str:
        return "\n".join([*self._shown.values(), self._written.getvalue()])


@contextlib.contextmanager
def _shell() -> Iterator[tuple[Any, Screen]]:
    """A shell of this process that takes itself for a kernel's, so that answers are drawn as in a notebook."""
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    screen = Screen()

    class Publisher(DisplayPublisher):
        def publish(self, data: Any, metadata: Any = None, **options: Any) -> None:
            screen.publish(data, metadata, **options)

        def clear_output(self, wait: bool = False) -> None:
            pass

    InteractiveShell.clear_instance()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shell = InteractiveShell.instance(colors="NoColor")
    shell.history_manager.enabled = False
    atexit.unregister(shell.atexit_operations)  # its folder is gone by then
    shell.display_pub = Publisher(parent=shell)
    registered = dict(tools.registry._tools)
    tools.registry._tools.clear()
    with screen.watching():
        shell.run_line_magic("load_ext", "mmsp_nb")
    shell.kernel = object()
    shell.run_cell("import asyncio; await asyncio.sleep(0)")  # the loop that it awaits on is kept
    try:
        yield shell, screen
    finally:
        with screen.watching():
            shell.run_line_magic("unload_ext", "mmsp_nb")
        tools.registry._tools.update(registered)
        InteractiveShell.clear_instance()
