"""``python -m tests.corpus``: compare every answer with the recorded ones.

``--record`` writes the answers of today; ``--inputs`` draws and stores the small clusters anew.
The exit status is 1 where an answer differs, is gone or is new.
"""

import argparse
import sys
from collections import Counter

from tests.corpus.answers import answers
from tests.corpus.inputs import store
from tests.corpus.recorded import differing, record

SHOWN = 40


def main(arguments: list[str] | None = None) -> int:
    """Compare, or record."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the answers of today")
    parser.add_argument("--inputs", action="store_true", help="draw the small clusters anew")
    asked = parser.parse_args(arguments)
    if asked.inputs:
        store()
    found = dict(answers())
    if asked.record:
        record(found)
    different = differing(found)
    for name in different[:SHOWN]:
        print(f"differs: {name}")
    kinds = Counter(name.split(" ", 1)[-1] for name in different)
    print(f"{len(found)} answers, {len(different)} differ", dict(kinds.most_common(10)) or "")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
