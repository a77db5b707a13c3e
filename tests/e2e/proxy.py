"""A TCP proxy that treats what passes as bad networks do. Its own thread; a fault holds for connections that
are there and for new ones until another is set. Directions are the agent's: up are frames, down are acks."""
import asyncio
import contextlib
import socket
import threading
from typing import List, Optional, Set

READ = 16384
TICK_S = 0.05


def free_port() -> int:
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        return at.getsockname()[1]


class Proxy:
    def __init__(self, to: int):
        self.to, self.port = to, free_port()
        self.half_open = False             # nothing comes through, and no side is informed
        self.stalled_down = False          # acknowledgements do not come
        self.bytes_per_s: Optional[float] = None  # up
        self.connections = self.cuts = self.up = self.down = 0
        self.writers: Set[asyncio.StreamWriter] = set()
        self.cut_after: Optional[int] = None  # bytes up, from now on
        self.tasks: List[asyncio.Task] = []
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait(10)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._end)
        self.thread.join(10)

    def cut_all(self) -> None:
        """RST on both sides, in the middle of whatever is under way."""
        self.loop.call_soon_threadsafe(self._cut)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        server = asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=READ)
        self.loop.run_until_complete(server)
        ready.set()
        self.loop.run_forever()

    def _end(self) -> None:
        for one in asyncio.all_tasks(self.loop):
            one.cancel()
        self.loop.call_later(TICK_S, self.loop.stop)

    def _cut(self) -> None:
        for writer in self.writers:
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                           b"\1\0\0\0\0\0\0\0")
            writer.transport.abort()
        self.writers.clear()
        self.cuts += 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to, limit=READ)
        except OSError:
            writer.transport.abort()
            return
        self.writers |= {writer, far_writer}
        self.tasks = [one for one in self.tasks if not one.done()]
        self.tasks += [asyncio.ensure_future(self._pass(reader, far_writer, True)),
                       asyncio.ensure_future(self._pass(far_reader, writer, False))]

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, up: bool) -> None:
        dead = False  # a half-open connection never comes back
        with contextlib.suppress(OSError, ConnectionError):
            while True:
                data = await reader.read(READ if self.bytes_per_s is None or not up else 1)
                while self.half_open or dead or (self.stalled_down and not up):
                    dead |= self.half_open
                    await asyncio.sleep(TICK_S)
                if not data:
                    break
                if up and self.cut_after is not None:
                    self.cut_after -= len(data)
                    if self.cut_after < 0:
                        self.cut_after = None
                        writer.write(data[:len(data) // 2])
                        self._cut()
                        return
                if up and self.bytes_per_s is not None:
                    await asyncio.sleep(len(data) / self.bytes_per_s)
                writer.write(data)
                await writer.drain()
                self.up, self.down = self.up + up * len(data), self.down + (not up) * len(data)
        with contextlib.suppress(OSError, ConnectionError):
            writer.close()
