"""Execute a plan folder wave by wave, comparing the system with the plan before each."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Literal

import msgspec

from evenkeel.model.errors import FaultList, InvalidInput, fault_lines
from evenkeel.systems.documents import Document
from evenkeel.systems.folders import held
from evenkeel.systems.folders.carrier import numbered
from evenkeel.systems.folders.form import (
    Command,
    Form,
    WaveForm,
    filled,
    lines_of,
    plain,
    shown,
    values_of,
)
from evenkeel.systems.folders.guarding import State, Verdict, form_of, guard, read_state, record
from evenkeel.systems.registry import find

GRACE = 10.0  # seconds for which an interrupt lets a command end
# signals that end a run, as far as the system has them
ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]

MOST_LINES = 20  # lines of what a command printed last that are shown where it failed
# ``tell(kind, text)``: takes what a run has to say. ``progress`` is a step, ``state`` what a look
# shows in between, ``waiting`` the same now and then, ``note`` what a person should know.
Tell = Callable[[str, str], None]


class Stopped(Exception):
    """A run that cannot go on."""

    def __init__(self, *lines: str, differs: bool = False) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.differs = differs


class FolderRun:
    """The run of a folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str], tell: Tell) -> None:
        faults = FaultList()
        self._folder = folder
        self._form: Form = form_of(faults, folder)
        self._whole = folder / self._form.whole
        self._dump = folder / "dump"
        carrier = find(self._form.format).carrier
        assert carrier is not None
        self._checks = carrier.checks
        self._environment = environment
        self._values = values_of(self._form.settings, environment)
        self._pause, self._patience, self._report, self._tries = (
            _number(faults, name, self._values[name])
            for name in ("PAUSE", "PATIENCE", "REPORT", "TRIES")
        )
        faults.raise_if_any()
        self._say = tell
        # takes where the plan stands after each look
        self.looked: Callable[[Verdict], None] = lambda verdict: None

    @property
    def holds(self) -> str:
        """What the system is left with, "" if nothing is held."""
        return self._form.still if held.files(self._whole) else ""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs of the folder, and of its way back, from beginning."""
        import fcntl

        path = self._whole / "running"
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Stopped("it runs already") from None
            if not path.exists() or not os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                raise Stopped("another run has just ended: begin again")
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def carry_out(self, until: int | None = None) -> Verdict:
        """Order wave after wave, and wait for each; ``until`` is the last one."""
        self.release(first=True)
        self._begin()
        waves, left = len(self._form.waves), self._form.left
        if not waves and left and not self._form.first and not self._form.after:
            self.release()
            raise Stopped(f"there is nothing to run: {left}")
        ordered, idle, began, reported = 0, 0, 0.0, 0.0
        while True:
            verdict = self._looked()
            ended = verdict.word == "finished" or (until is not None and verdict.wave > until)
            if ended:
                break
            text = f"{verdict}".partition(" ")[2]
            if verdict.wave != ordered:
                for note in verdict.notes:
                    self._say("note", note)
                self._say("progress", text)
                if verdict.wave == 1 and verdict.word == "ready":
                    self._inside("before", self._form.before)
                self._order(self._form.waves[verdict.wave - 1], again=verdict.word != "ready")
                ordered, idle, began = verdict.wave, 0, time.monotonic()
                reported = began
                continue
            self._say("state", text)
            idle = 0 if verdict.word == "begun" else idle + 1
            if idle >= self._tries:
                raise Stopped(f"what was ordered does not begin: {text}")
            if time.monotonic() - began > self._patience:
                raise Stopped(
                    f"given up after {self._patience:g} s, what was ordered does not end: {text}"
                )
            if time.monotonic() - reported >= self._report:
                reported = time.monotonic()
                self._say("waiting", text)
            time.sleep(self._pause)
        if verdict.word == "finished":
            self._inside("after", self._form.after)
        self.release()
        if verdict.word != "finished":
            self._say("progress", f"paused: wave {until} of {waves} is done")
            return verdict
        for note in verdict.notes:
            self._say("note", note)
        self._say("progress", f"{verdict}".partition(" ")[2])
        if left:
            raise Stopped(
                f"what the folder holds is done, and not all of the plan: {left}", differs=True
            )
        return verdict

    def ahead(
        self, until: int | None = None, dumps: Sequence[Document] = ()
    ) -> tuple[Verdict, list[str]]:
        """Look at the system or at ``dumps``, and return what would be run, a line each."""
        verdict = self._standing(dumps) if dumps else self._looked()
        for note in verdict.notes:
            self._say("note", note)
        count = len(self._form.waves)
        parts = [] if self._state().begun else [*self._form.first]
        lines = [*lines_of(parts)]
        if verdict.word != "finished":
            lines += lines_of(self._form.hold)
            if self._form.before and verdict.wave == 1 and not self._state().inside:
                lines += ["# inside nodes", *lines_of(self._form.before)]
            for number in range(verdict.wave, min(until or count, count) + 1):
                wave = self._form.waves[number - 1]
                lines += [f"# wave {numbered(number, count)}", *lines_of(wave.commands + wave.ends)]
        if self._form.after and until is None and self._state().inside != "after":
            lines += ["# inside nodes", *lines_of(self._form.after)]
        return verdict, lines

    def release(self, *, first: bool | None = None) -> None:
        """Give back what is held, the last first; with ``first`` only what is of that kind."""
        for file in reversed(held.files(self._whole)):
            if first is None or held.read(file).first == first:
                self._release(file)

    def _release(self, file: Path) -> None:
        hold = held.read(file)
        for command in hold.back:
            try:
                self._do(command, file.parent)
            except Stopped as error:
                name = shown(hold.name)
                raise Stopped(
                    *error.lines, f"{name} is still held: evenkeel run FOLDER --release"
                ) from None
        held.drop(file)

    def _begin(self) -> None:
        state = self._state()
        if not state.begun:
            for command in self._form.first:
                self._do(command)
            record(self._folder, msgspec.structs.replace(state, begun=True))

    def _inside(self, when: Literal["before", "after"], commands: Sequence[Command]) -> None:
        state = self._state()
        if commands and state.inside not in (when, "after"):
            for command in commands:
                self._do(command)
            record(self._folder, msgspec.structs.replace(self._state(), inside=when))

    def _state(self) -> State:
        faults = FaultList()
        state = read_state(faults, self._folder, len(self._form.waves))
        faults.raise_if_any()
        return state

    def _looked(self) -> Verdict:
        """Return where the system is; a dump taken during a change may contradict itself."""
        failed = 0
        while True:
            try:
                verdict = self._look()
            except (Stopped, InvalidInput) as error:
                if isinstance(error, Stopped) and error.differs:
                    raise
                failed += 1
                if failed >= self._tries:
                    lines = error.lines if isinstance(error, Stopped) else fault_lines(error.faults)
                    raise Stopped(*lines, "the system cannot be looked at") from None
                time.sleep(self._pause)
                continue
            return verdict

    def _standing(self, documents: Sequence[Document]) -> Verdict:
        """Return where dumps show the system; raise where that is not as the plan expects it."""
        verdict = guard(self._folder, documents, self._form)
        if verdict.word == "differs":
            for note in verdict.notes:
                self._say("note", note)
            raise Stopped(
                *verdict.differences, "the system is not where the plan expects it: README.md "
                "says how to go on from here, or back", differs=True,
            )  # fmt: skip
        return verdict

    def _look(self) -> Verdict:
        shutil.rmtree(self._dump, ignore_errors=True)
        self._dump.mkdir()
        for command in self._form.look:
            self._do(command)
        verdict = self._standing([Document.load(os.fspath(self._dump))])
        state = self._state()
        done = verdict.waves if verdict.word == "finished" else verdict.wave - 1
        if done != state.done:
            record(self._folder, msgspec.structs.replace(state, done=done))
        self.looked(verdict)
        return verdict

    def _order(self, wave: WaveForm, *, again: bool) -> None:
        """Order a wave; where a run before has begun it, what that has ordered ends first."""
        for command in wave.ends if again else ():
            self._do(command)
        for command in (*self._form.hold, *wave.commands, *wave.ends):
            self._do(command)

    def _do(self, command: Command, base: Path | None = None) -> str:
        """Carry one command out, with all that belongs to it, and return what it printed."""
        if command.where:
            file, text = command.where
            if text not in (self._dump / file).read_text("utf-8", "replace"):
                return ""
        if command.unless is not None and self._meets(command.unless):
            return ""
        if command.hold is not None:
            self._hold(command)
        if command.release:
            kept = held.file_of(self._whole, command.release)
            if kept.exists():
                self._release(kept)
            return ""
        if not command.run:
            return ""
        values = dict(self._values)
        values["FILE"] = os.fspath((base or self._folder).resolve() / command.file)
        return self._tried(command, values)

    def _tried(self, command: Command, values: Mapping[str, str]) -> str:
        words = filled(command, values)
        program = "" if isinstance(words, str) else _program(words[0], self._environment)
        if not program and command.optional:
            return ""
        try:
            if isinstance(words, str):
                raise Stopped(f"{words} is not set: README.md says what it is")
            if not program:
                raise Stopped(f"{shown(words[0])} is not on the PATH")
            output = self._checked(command, [program, *words[1:]])
        except Stopped as error:
            if command.otherwise is None or error.differs:
                raise
            try:
                return self._do(command.otherwise)
            except Stopped as second:
                raise Stopped(*error.lines, *second.lines) from None
        if command.save:
            target = self._dump / command.save
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(output)
        return output.decode("utf-8", "replace")

    def _checked(self, command: Command, words: Sequence[str]) -> bytes:
        """Return what a command prints once its check is met, and wait for that where it does."""
        began = reported = time.monotonic()
        check, failed = self._checks[command.check] if command.check else None, 0
        while True:
            try:
                output = self._called(words)
            except Stopped:
                failed += 1
                if not command.waits or failed >= self._tries:
                    raise
                self._looked()  # a node that has died meanwhile is named
                time.sleep(self._pause)
                continue
            if check is None:
                return output
            answer = check(output.decode("utf-8", "replace"))
            what = " - ".join(filter(None, (command.about, answer.message)))
            if answer.done:
                if answer.message:
                    self._say("note", answer.message)
                return output
            if not command.waits:
                raise Stopped(*_last(output), what)
            self._say("state", what)
            if time.monotonic() - reported >= self._report:
                reported = time.monotonic()
                self._say("waiting", what)
                self._looked()
            if time.monotonic() - began > self._patience:
                raise Stopped(*_last(output), f"given up after {self._patience:g} s: {what}")
            time.sleep(self._pause)

    def _meets(self, command: Command) -> bool:
        output = self._do(msgspec.structs.replace(command, check=""))
        return self._checks[command.check](output).done

    def _called(self, words: Sequence[str]) -> bytes:
        running: subprocess.Popen[bytes] | None = None
        try:
            with _signals_wait():
                running = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, env=self._environment,
                )  # fmt: skip
            output, errors = running.communicate()
        except BaseException:
            if running is None:
                raise
            # what has begun may end, so that nothing is left half done
            with running:
                try:
                    with suppress(subprocess.TimeoutExpired):
                        running.communicate(timeout=GRACE)
                finally:
                    running.terminate()
            raise
        if running.returncode:
            name = " ".join(plain(one) for one in (Path(words[0]).name, *words[1:]))[:400]
            code = running.returncode
            raise Stopped(*_last(output), *_last(errors), f"{name}: failed with exit code {code}")
        return output

    def _hold(self, command: Command) -> None:
        """Record what gives back what a command is about to change, unless it is recorded."""
        hold = command.hold
        assert hold is not None
        if held.file_of(self._whole, hold.name).exists():
            return
        was = ""
        if hold.read is not None:
            answer = self._checks[hold.read.check](
                self._do(msgspec.structs.replace(hold.read, check=""))
            )
            if not answer.done:
                raise Stopped(f"what {shown(hold.name)} is set to cannot be read: {answer.message}")
            was = answer.message
            if was == hold.off:
                self._say(
                    "note", f"{shown(hold.name)} is {shown(was)} already, and will be so at the "
                    "end unless a run of another folder still holds it: give it back there first, "
                    "evenkeel run FOLDER --release",
                )  # fmt: skip
        held.keep(self._whole, self._folder, hold, was)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Handle signals at the end only: one that raises would lose a process that has just begun."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: now for number in ENDING if callable(now := signal.getsignal(number))}
    arrived: list[tuple[int, FrameType | None]] = []
    for number in handlers:
        signal.signal(number, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in arrived[:1]:
            handlers[number](number, frame)


def _program(name: str, environment: Mapping[str, str]) -> str:
    """Return the file of a program, which some packages install without ``.sh``; "" for none."""
    path = environment.get("PATH")
    found = shutil.which(name, path=path) or shutil.which(name.removesuffix(".sh"), path=path)
    return found or ""


def _last(output: bytes) -> list[str]:
    return output.decode("utf-8", "replace").strip().splitlines()[-MOST_LINES:]


def _number(faults: FaultList, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        faults.add(name, text, "must be a number of 0 or more")
    return value
