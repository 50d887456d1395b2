"""The service's process: a socket, a pool, and an end that loses nothing."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.judge.pool import JudgePool
from kernelgym.service.access import Access, is_loopback
from kernelgym.service.app import make_app
from kernelgym.service.desk import Desk

__all__ = ["serve"]

_CLOSE_SECONDS = 5


class _Server(uvicorn.Server):
    """Tells the desk of a signal before connections are waited for: some of them wait for it."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self._desk = desk

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # The thread that is interrupted may hold the desk's lock.
        threading.Thread(target=self._desk.begin_stop).start()
        super().handle_exit(sig, frame)


def serve(
    config: JudgeConfig,
    access: Access,
    journal: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    devices: Sequence[str | int] | None = None,
    workers: int | None = None,
    capacity: int = 256,
    max_bytes: int = 8 * 2**20,
    grace: float = 30.0,
    allow_config: bool = False,
    allow_tasks: bool = False,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serves until a SIGTERM or SIGINT, then ends in order.

    At the end no job is taken in any more, running judgements get `grace` seconds, and what has no
    verdict then is judged after the next start with the same journal.

    Args:
        config: How to judge.
        access: Who may ask.
        journal: Where jobs and verdicts are kept.
        host: Address to listen on.
        port: Port; 0 for any that is free.
        devices: See `JudgePool`.
        workers: See `JudgePool`.
        capacity: Jobs that may be unfinished at a time.
        max_bytes: Longest body of a request.
        grace: Seconds that running judgements get at the end.
        allow_config: See `Desk`.
        allow_tasks: See `Desk`.
        started: Called with the service's address when it listens.

    Raises:
        UsageError: The address is taken or is none; it is reached from elsewhere and no token is
            asked for; or the journal is in use or broken.
        ConfigError: See `JudgePool`.
    """
    if access.open and not is_loopback(host):
        raise UsageError(
            f"host: expected a loopback address, or tokens for callers from elsewhere, got {host!r}"
        )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise UsageError(f"expected a free address, got {host}:{port}: {error}") from error
    with listening, JudgePool(config, devices=devices, workers=workers) as pool:
        desk = Desk(
            pool, journal, capacity=capacity, allow_config=allow_config, allow_tasks=allow_tasks
        )
        try:
            names = [judge.device_name for judge in pool.judges]
            app = make_app(desk, access, pool.config, pool.size, names, max_bytes=max_bytes)
            settings = uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_CLOSE_SECONDS,
            )
            # uvicorn hands a signal on to whoever handled it before.
            before = signal.signal(signal.SIGTERM, lambda number, frame: None)
            try:
                if started is not None:
                    shown = f"[{host}]" if ":" in host else host
                    started(f"http://{shown}:{listening.getsockname()[1]}")
                _Server(settings, desk).run(sockets=[listening])
            finally:
                signal.signal(signal.SIGTERM, before)
        finally:
            desk.close(grace)
