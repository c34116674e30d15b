"""Random rings of Swift, with removed devices and short last rows."""

import json
import random
import struct
from typing import Any


def dump(draw: random.Random) -> bytes:
    """Return the unpacked file of a ring."""
    devices = [device(draw, number) for number in range(draw.randint(1, 8))]
    if len(devices) > 1 and draw.random() < 0.4:
        devices[draw.randrange(len(devices))] = None
    known = [one["id"] for one in devices if one] + [65535] * (draw.random() < 0.2)
    power = draw.randint(0, 5)
    parts = 1 << power
    whole, part = draw.randint(1, 4), draw.choice([0, 0, parts // 2])
    count = whole * parts + part
    order = draw.choice(["little", "big", ""])
    head = {"devs": devices, "part_shift": 32 - power, "replica_count": whole + part / parts}
    head |= {"byteorder": order} if order else {}
    head |= {"version": draw.randint(1, 99)} if draw.random() < 0.5 else {}
    text = json.dumps(head, ensure_ascii=draw.random() < 0.5).encode()
    body = struct.pack(f"{'>' if order == 'big' else '<'}{count}H", *draw.choices(known, k=count))
    return struct.pack("!4sHI", b"R1NG", 1, len(text)) + text + body


def device(draw: random.Random, number: int) -> dict[str, Any] | None:
    """Return a device."""
    return {
        "id": number, "region": draw.randint(1, 2), "zone": draw.randint(0, 3),
        "ip": draw.choice([f"10.0.0.{number}", f"fe80::{number}", "host"]), "port": 6200 + number,
        "device": draw.choice(["sdb1", "sd c", "ü"]), "weight": draw.choice([100.0, 33.3, 0.0, 1]),
        "meta": draw.choice(["", "ünd \"x\""]),
    }  # fmt: skip
