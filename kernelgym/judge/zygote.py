"""A process that has imported torch and done nothing else, forked once for each candidate.

Importing torch takes seconds, a fork milliseconds. What makes the fork safe: the zygote runs no
torch operator (OpenMP would hang in the child once it had worked in the parent), starts no thread,
touches no GPU. It is started by `kernelgym.judge.process` as `python -m kernelgym.judge.zygote FD`
and serves one grader over a socket: each request brings the candidate's own socket along.

A candidate gets a supervisor between itself and the zygote: where the kernel allows, that puts it
at the head of a process-id namespace, so that whatever it started ends with it. On a GPU there is
no such namespace: CUDA's driver does not start where /proc is another namespace's, and a candidate
that may start no processes needs none.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import selectors
import signal
import socket
import struct
import sys
from types import FrameType

import torch

# Every candidate's first watched operator would import this, and spend more than a second on it.
import torch._dynamo

import kernelgym.judge.candidate
from kernelgym.judge.registrations import registered_before

__all__ = ["EXITED", "START", "main"]

START = struct.Struct("<Q?")  # request: serial number, own pid namespace?; with the socket
EXITED = struct.Struct("<QQi")  # notices: serial number, pid, wait status (-1: has started)

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(control: socket.socket) -> None:
    """Serves fork requests until the grader hangs up, then kills what is left."""
    torch.set_num_threads(1)
    threads = os.listdir("/proc/self/task")
    if len(threads) != 1:
        raise RuntimeError(f"expected one thread before forking, got {len(threads)}")
    registered_before()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    running: dict[int, int] = {}
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)

    def wake(number: int, frame: FrameType | None) -> None:
        os.write(wake_write, b"x")

    signal.signal(signal.SIGCHLD, wake)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is control:
                    request, fds, _, _ = socket.recv_fds(control, START.size, 1)
                    if len(request) < START.size:
                        for pid in running:
                            _signal(pid, signal.SIGTERM)
                        return
                    serial, namespace = START.unpack(request)
                    pid = os.fork()
                    if pid == 0:
                        _supervise(control, fds[0], (wake_read, wake_write), libc, namespace)
                    running[pid] = serial
                    os.close(fds[0])
                    control.sendall(EXITED.pack(serial, pid, -1))
                else:
                    _drain(wake_read)
                    _reap(control, running)


def _reap(control: socket.socket, running: dict[int, int]) -> None:
    """Tells the grader who ended, and ends what the ended ones left behind."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            break
        if pid in running:
            with contextlib.suppress(OSError):  # the grader may have been interrupted
                control.sendall(EXITED.pack(running.pop(pid), pid, status))
    # As subreaper the zygote inherits orphans: a candidate's, where there was no pid namespace.
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        for pid in map(int, children.read().split()):
            if pid not in running:
                _signal(pid, signal.SIGKILL)


def _supervise(
    control: socket.socket,
    fd: int,
    wake: tuple[int, int],
    libc: ctypes.CDLL,
    namespace: bool,
) -> None:
    """Runs in the first child: starts the candidate, waits for it, ends as it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    control.close()
    for pipe_end in wake:
        os.close(pipe_end)
    if namespace:
        _enter_pid_namespace(libc)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _become_candidate(fd)
    os.close(fd)
    signal.signal(signal.SIGTERM, lambda number, frame: _signal(pid, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _enter_pid_namespace(libc: ctypes.CDLL) -> None:
    """Puts the next child at the head of a new pid namespace, where the kernel allows it."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        libc.unshare(_CLONE_NEWPID)
    elif libc.unshare(_CLONE_NEWUSER | _CLONE_NEWPID) == 0:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def _become_candidate(fd: int) -> None:
    code = 1
    try:
        kernelgym.judge.candidate.main(socket.socket(fileno=fd))
        code = 0
    finally:
        os._exit(code)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(fd, 512):
            continue


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
