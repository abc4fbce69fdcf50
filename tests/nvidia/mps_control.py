"""
Stand in for `nvidia-cuda-mps-control` where there is no GPU: `python mps_control.py DIRECTORY [-d]`.

Each start and command is in `DIRECTORY/mps`.
From NVIDIA's manual page nvidia-cuda-mps-control(1) (drivers 470 and 510) and its MPS documentation; lines that users
of drivers 535 to 580 report: a second daemon in one directory, no daemon, `25.0`, a path too long for a socket; that
the file with its number goes when it stops and its socket stays; that a new one takes over such a directory.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

PIPES = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
LOGS = Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps"))
CONTROL = PIPES / "control"
PIDFILE = PIPES / "nvidia-cuda-mps-control.pid"
ABSENT = "Cannot find MPS control daemon process"


def asks(command: str) -> str | None:
    """Give the daemon's answer; None if there is none."""
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(str(CONTROL))
            sock.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: sock.recv(4096), b"")).decode()
        except OSError:
            return None


def starts(log: Path) -> int:
    """`-d`: go on in the background, and return when commands are taken."""
    if asks("get_server_list") is not None:
        print("An instance of this daemon is already running")
        return 1
    PIPES.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    CONTROL.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(CONTROL))
    except OSError:
        print(ABSENT)
        return 1
    listener.listen()
    with log.open("a") as file:
        file.write(f"-d CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', '')}\n")
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            for fd in range(3):
                os.dup2(nothing, fd)
            PIDFILE.write_text(f"{os.getpid()}\n")
            (LOGS / "control.log").write_text("Starting control daemon using socket\n")
            serves(listener, log)
        os._exit(0)
    os.wait()
    while not PIDFILE.exists():
        pass
    return 0


def serves(listener: socket.socket, log: Path) -> None:
    """Be the daemon."""
    percentage, limits = 100.0, {}
    while True:
        sock, _ = listener.accept()
        with sock:
            words = sock.makefile().readline().split()
            if words and words[0] != "get_server_list":
                with log.open("a") as file:
                    file.write(" ".join(words) + "\n")
            match words:
                case ["get_server_list"]:
                    answer = ""
                case ["set_default_active_thread_percentage", value]:
                    percentage, answer = float(value), ""
                case ["get_default_active_thread_percentage"]:
                    answer = f"{percentage}\n"
                case ["set_default_device_pinned_mem_limit", device, value] if (
                    value[-1] in "MG" and value[:-1].isdigit()
                ):
                    limits[device], answer = value, ""
                case ["get_default_device_pinned_mem_limit", device]:
                    answer = f"{limits.get(device, '')}\n"
                case ["quit", *_]:
                    PIDFILE.unlink()
                    os._exit(0)
                case _:
                    answer = f"Unknown command: {' '.join(words)}\n"
            sock.sendall(answer.encode())


def main() -> int:
    """Start the daemon, or pass on to it what is on standard input."""
    log = Path(sys.argv[1]) / "mps"
    if sys.argv[2:] == ["-d"]:
        return starts(log)
    for line in sys.stdin:
        answer = asks(line.strip())
        if answer is None:
            print(ABSENT)
            return 1
        sys.stdout.write(answer)
    return 0


sys.exit(main())
