"""The recorded answers of the corpus, one to a line: the digest, then the name."""

from pathlib import Path

FILE = Path(__file__).with_name("answers.txt")


def recorded() -> dict[str, str]:
    """Return the digests that are recorded, by name."""
    rows = (line.split(" ", 1) for line in FILE.read_text().splitlines())
    return {name: found for found, name in rows}


def record(found: dict[str, str]) -> None:
    """Write digests."""
    FILE.write_text("".join(f"{one} {name}\n" for name, one in found.items()))


def differing(found: dict[str, str]) -> list[str]:
    """Return the names of answers that differ from the recorded ones, are gone or are new."""
    before = recorded()
    names = {**before, **found}
    return [name for name in names if before.get(name) != found.get(name)]
