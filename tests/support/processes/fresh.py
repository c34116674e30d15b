"""Fork processes from one that has imported only numba, and nothing of the library.

To load numba takes most of the time of a process that is started for a line of code.
"""

import contextlib
import io
import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()


def run(
    code: str, folder: Path, path: Sequence[Path], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in ``folder`` as ``python -c`` would; raise CalledProcessError if it fails."""
    if not CAN_FORK:
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder, env={**environment, "PYTHONPATH": os.pathsep.join(map(str, path))},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload([__name__, f"{__package__}.warm_compiler"])
    receiver, sender = forking.Pipe(duplex=False)
    asked = (sender, code, str(folder), [str(folder), *map(str, path)], dict(environment))
    process = forking.Process(target=_answer, args=asked)
    process.start()
    sender.close()
    status, out, err = receiver.recv()
    process.join()
    if status:
        raise subprocess.CalledProcessError(status, code, out, err)
    return subprocess.CompletedProcess(code, status, out, err)


def _answer(
    sender: Connection, code: str, folder: str, path: list[str], environment: dict[str, str]
) -> None:
    """Run the code in this process, and send back how it ended and what it said."""
    import numba

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    numba.core.config.reload_config()
    sys.path[:0] = path
    status = 0
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        try:
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        except Exception:
            traceback.print_exc()
            status = 1
    sender.send((status, out.getvalue(), err.getvalue()))
