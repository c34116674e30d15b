"""A producer and a consumer beside a plan: a process of its own, which says what it saw.

``python kafka_load.py BOOTSTRAP TOPIC RATE BYTES OUT`` writes records, acknowledged by all replicas
in sync, and reads them, until its input ends. Each is noted in OUT, a line of JSON: when it was
handed over, after how many seconds it was acknowledged, or the error; at last what was not read.
"""

import json
import sys
import threading
import time
from functools import partial
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

SETTLE = 20.0  # seconds that the consumer has to catch up


def stored(bootstrap: str, topic: str, mark: bytes) -> set[int]:
    """Return the numbers of all records that a topic holds."""
    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "afterwards", "enable.partition.eof": True,
        "enable.auto.commit": False,
    })  # fmt: skip
    partitions = reader.list_topics(topic).topics[topic].partitions
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    found, ended, until = set[int](), set[int](), time.monotonic() + 60.0
    while len(ended) < len(partitions) and time.monotonic() < until:
        message = reader.poll(1.0)
        if message is None:
            continue
        if message.error():
            if message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
        elif (key := message.key()) and key.startswith(mark):
            found.add(int(key[len(mark) :]))
    reader.close()
    return found


def main(bootstrap: str, topic: str, rate: float, size: int, out: str) -> None:
    """Produce and consume until the input ends."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    producer = Producer({
        "bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "enable.idempotence": True,
        "delivery.timeout.ms": 60000, "topic.metadata.refresh.interval.ms": 5000,
    })  # fmt: skip
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "beside", "auto.offset.reset": "earliest",
        "enable.auto.commit": True,
    })  # fmt: skip
    consumer.subscribe([topic])
    rows: list[dict[str, object]] = []
    kept: set[int] = set()
    read: set[int] = set()
    faults: list[str] = []

    def consume() -> None:
        last = time.monotonic()
        while not ended.is_set() or (kept - read and time.monotonic() - last < SETTLE):
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                faults.append(str(message.error()))
            elif (key := message.key()) and key.startswith(mark):
                read.add(int(key[len(mark) :]))
                last = time.monotonic()

    mark = f"{time.time_ns()}:".encode()
    reader = threading.Thread(target=consume)
    reader.start()
    number, value = 0, b"x" * size

    def delivered(error: object, message: Message, n: int, at: float) -> None:
        if error is None:
            kept.add(n)
            rows.append({"at": at, "seconds": time.time() - at, "partition": message.partition()})
        else:
            rows.append({"at": at, "error": str(error)})

    begun = time.monotonic()
    while not ended.is_set():
        at = time.time()
        told = partial(delivered, n=number, at=at)
        producer.produce(topic, value, mark + str(number).encode(), on_delivery=told)
        number += 1
        while (left := begun + number / rate - time.monotonic()) > 0:
            producer.poll(min(left, 0.01))
    producer.flush(60)
    reader.join()
    consumer.close()
    late = kept - read
    if late:  # what the group did not hand out may be there
        read |= stored(bootstrap, topic, mark)
    with Path(out).open("w") as file:
        for row in rows:
            print(json.dumps(row), file=file)
        last = {
            "sent": number, "kept": len(kept), "lost": len(kept - read), "late": len(late),
            "faults": faults,
        }  # fmt: skip
        print(json.dumps(last), file=file)


if __name__ == "__main__":
    bootstrap, topic, rate, size, out = sys.argv[1:]
    main(bootstrap, topic, float(rate), int(size), out)
