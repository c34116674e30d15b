"""Processes of a system under test: on one core, in a folder, gone when the test is."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CORE = max(os.sched_getaffinity(0))
ASIDE = ["taskset", "-c", str(CORE), "nice", "-n", "5"]
"""Keeps a system on one core, behind whatever else is asked of the machine."""

HERE = Path(__file__).parent
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

LEASH = ["sh", "-c", '"$@" & cat; kill -KILL $! 0', "leash"]
"""Ends a process, and all that it starts, when its input is closed, as when the test is gone.

Some processes begin a session of their own, so that they are named beside their group.
"""


class CallFailed(AssertionError):
    """A tool of the system that returned something other than 0."""


def call(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    cwd: Path | None = None,
    given: str | None = None,
) -> str:
    """Run a tool to its end and return what it printed."""
    ran = subprocess.run(
        [*map(str, argv)], env=env, input=given or "", cwd=cwd, timeout=timeout,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode:
        said = f"{ran.stdout[-1500:]}\n{ran.stderr[-1500:]}".strip()
        raise CallFailed(f"{' '.join(map(str, argv))}: exit {ran.returncode}\n{said}")
    return ran.stdout


def until(what: str, holds: Callable[[], object], *, timeout: float, pause: float = 0.5) -> None:
    """Wait until something holds; it may fail to answer on the way."""
    end = time.monotonic() + timeout
    last: object = None
    while time.monotonic() < end:
        try:
            last = holds()
        except (CallFailed, subprocess.TimeoutExpired, OSError) as error:
            last = error
        else:
            if last:
                return
        time.sleep(pause)
    raise AssertionError(f"{what}: not within {timeout:.0f} s; last seen: {last}")


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens on now."""
    taken = [socket.socket() for _ in range(count)]
    try:
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]
    finally:
        for one in taken:
            one.close()


class Daemons:
    """Processes by name, each with a log of its own in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen] = {}

    def start(
        self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> None:
        """Start a process, which is to stay in the foreground."""
        with (self.folder / f"{name}.out").open("ab") as out:
            self.running[name] = subprocess.Popen(
                [*LEASH, *ASIDE, *map(str, argv)], env=env, stdout=out, stderr=out,
                stdin=subprocess.PIPE, cwd=self.folder, start_new_session=True,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """End a process and all that it started, as a failing machine would."""
        self.running.pop(name).communicate()

    def stop(self) -> None:
        """End all of them and remove the folder: nothing here is kept, no orderly end is needed."""
        for name in [*self.running]:
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)


class JavaProgram:
    """A program of ours that runs parts of a system in one process, and takes commands."""

    def __init__(
        self,
        name: str,
        jars: Path,
        folder: Path,
        options: Sequence[str],
        *words: object,
        within: Sequence[str] = (),
    ) -> None:
        self.classes = f"{folder / 'classes'}:{jars}/*"
        sources = [HERE / "Commands.java", HERE / f"{name}.java"]
        call(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", folder / "classes", *sources])
        with (folder / "out").open("ab") as out:
            self.process = subprocess.Popen(
                [*ASIDE, *within, *JAVA, *options, "-cp", self.classes, name, *map(str, words)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, text=True,
            )  # fmt: skip
        assert self._line() == "ready"

    def do(self, *words: object) -> str:
        """Give one command; its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self._line()
        assert not answer.startswith("error"), (words, answer)
        return answer

    def stop(self) -> None:
        self.process.communicate(timeout=60)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()
