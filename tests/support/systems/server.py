"""Server that runs each call of ``evenkeel`` in a fork of a process that has it imported.

Starting Python with all that a run needs takes longer than most runs.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from evenkeel.cli import main
from evenkeel.systems.folders import running
from evenkeel.systems.registry import find
from tests.support import places

LOADED = (running, *map(find, ("ceph", "cockroach", "elasticsearch", "helix", "kafka")),
          *map(find, ("longhorn", "nats", "rabbitmq", "swift")))  # fmt: skip
AT_ONCE = 1 << 16


@cache
def started():
    """The socket of a server that ends when this process does."""
    door = Path(tempfile.mkdtemp(prefix="evenkeel-"), "door")
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.support.systems.server", door], cwd=places.ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdout.readline() == b"ready\n"
    started.running = running  # its input stays open as long as somebody holds it
    return door


def serve(door):
    """Fork for everyone who calls, until the input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(door))
        listening.listen()
        print("ready", flush=True)  # noqa: T201
        while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
            line = listening.accept()[0]
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                answer(line)
                os._exit(0)
            line.close()
    door.unlink()
    door.parent.rmdir()


def answer(line):
    """Run one command with the folder, environment and files of who calls."""
    asked, files, _, _ = socket.recv_fds(line, AT_ONCE, 3)
    while more := line.recv(AT_ONCE):
        asked += more
    words, folder, environment = json.loads(asked)
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = main(words)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    line.send(str(code).encode())


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
