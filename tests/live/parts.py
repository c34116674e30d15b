"""What the live tests need of the machine: what is missing is installed by name, and named."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import places

BUILT = places.ROOT / "build" / "live"
"""Where parts go that have no place of their own in the system."""

REFUSAL = Path("/usr/sbin/policy-rc.d")
"""While it exits with 101, Debian's packages start no service when they are installed."""


class NotObtainable(pytest.skip.Exception):
    """A part that is not there and cannot be installed here: what needs it is left out, by name."""


def say(text: str) -> None:
    """Tell who watches; pytest shows it with ``-s`` and wherever a test fails."""
    print(f"[live] {text}", flush=True)


def debian(programs: Sequence[str], packages: Sequence[str]) -> None:
    """Install Debian packages unless their programs are there."""
    missing = [one for one in programs if shutil.which(one) is None]
    if not missing:
        return
    named = " ".join(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotObtainable(f"{', '.join(missing)}: needs root and apt-get to install {named}")
    say(f"installing from Debian: {named}")
    with no_services():
        for command in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages],
        ):
            _done(command, os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    still = [one for one in programs if shutil.which(one) is None]
    if still:
        raise NotObtainable(f"{', '.join(still)}: not in {named}")


def maven(name: str, artifacts: Sequence[str], without: Sequence[str] = ()) -> Path:
    """Return a folder with the jars of artifacts ``group:name:version`` and of what they need."""
    folder = BUILT / name
    if not (folder / "pom.xml").exists():
        debian(("java", "mvn"), ("openjdk-17-jre-headless", "maven"))
        say(f"installing from Maven Central: {', '.join(artifacts)}")
        folder.mkdir(parents=True, exist_ok=True)
        left = "".join(map(_coordinates("exclusion"), without))
        needs = "".join(
            _coordinates("dependency", f"<exclusions>{left}</exclusions>")(one) for one in artifacts
        )
        pom = folder / "pom.part"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>live</groupId><artifactId>live</artifactId><version>1</version>"
            f"<packaging>pom</packaging><dependencies>{needs}</dependencies></project>\n"
        )
        copy = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        _done([*copy, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"], os.environ)
        pom.rename(folder / "pom.xml")
    return folder


def _coordinates(tag: str, rest: str = "") -> Callable[[str], str]:
    def written(artifact: str) -> str:
        names = zip(("groupId", "artifactId", "version"), artifact.split(":"), strict=False)
        return f"<{tag}>{''.join(f'<{n}>{v}</{n}>' for n, v in names)}{rest}</{tag}>"

    return written


def pypi(package: str, version: str) -> Path:
    """Return a folder to import a package from, apart from the packages of the checkout."""
    folder = BUILT / "python" / f"{package}-{version}"
    if not folder.exists():
        say(f"installing from PyPI: {package}=={version}")
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        _done([*install, str(folder), f"{package}=={version}"], os.environ)
    return folder


def go(module: str, program: str, version: str) -> Path:
    """Return a program of a Go module, which is built into the checkout if it must be."""
    folder = BUILT / "go" / f"{program}-{version}"
    if not (folder / program).exists():
        if shutil.which("go") is None:
            raise NotObtainable(f"{program}: needs go")
        say(f"building from the Go module: {module}@{version}")
        folder.mkdir(parents=True, exist_ok=True)
        _done(["go", "install", f"{module}@{version}"], os.environ | {"GOBIN": str(folder)})
    return folder / program


def mounts() -> list[str]:
    """Return what runs a command that may mount file systems, which no other process sees."""
    apart = ["unshare", "--mount", *["--map-root-user"] * (os.geteuid() != 0)]
    _done([*apart, "true"], os.environ)
    return apart


@contextmanager
def no_services():
    """Let packages that are being installed start nothing."""
    if REFUSAL.exists():
        yield
        return
    REFUSAL.write_text("#!/bin/sh\nexit 101\n")
    REFUSAL.chmod(0o755)
    try:
        yield
    finally:
        REFUSAL.unlink()


def _done(command: Sequence[str], env) -> None:
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, check=False)
    if ran.returncode:
        raise NotObtainable(f"`{' '.join(command)}` failed: {(ran.stderr or ran.stdout)[-600:]}")
