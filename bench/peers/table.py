"""The figures of each solver, and the file that holds them."""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

STORED = Path(__file__).parent.parent.parent / ".benchmarks" / "peers.json"
HEAD = (
    f"{'input':34} {'who':38} {'CPU s':>8} {'wall s':>8} {'broken':>7} {'moves':>7} "
    f"{'bound':>7} {'max/mean':>9}"
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One contestant on one input, judged by our audit; what makes no sense for it is None."""

    input: str
    who: str
    cpu: float
    wall: float
    broken: int | None = None
    moves: int | None = None
    bound: int | None = None
    max_over_mean: float | None = None
    note: str = ""

    def __str__(self) -> str:
        counts = (self.broken, self.moves, self.bound)
        cells = [" " * 7 if count is None else f"{count:7,}" for count in counts]
        level = "" if self.max_over_mean is None else f"{self.max_over_mean:9.4f}"
        seconds = f"{self.cpu:8.3f} {self.wall:8.3f}"
        return f"{self.input:34} {self.who:38} {seconds} {' '.join(cells)} {level:9} {self.note}"


def store(peer: str, rows: list[Row]) -> None:
    """Keep the rows of a peer, in the place of those before."""
    STORED.parent.mkdir(exist_ok=True)
    kept = json.loads(STORED.read_text()) if STORED.exists() else {}
    kept[peer] = {
        "datetime": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "load_average": os.getloadavg(),
        "rows": [asdict(row) for row in rows],
    }
    STORED.write_text(json.dumps(kept, indent=1) + "\n")
