"""Random instances of machine reassignment."""

import random


def dump(draw: random.Random) -> tuple[bytes, bytes]:
    """Return a model and its assignment."""
    resources, machines = draw.randint(1, 3), draw.randint(1, 5)
    services, processes = draw.randint(1, 4), draw.randint(1, 8)
    lines = [[resources], *([draw.randint(0, 1), amount(draw)] for _ in range(resources))]
    lines.append([machines])
    plain = draw.random() < 0.5
    for machine in range(machines):
        own = [draw.randint(0, 2), draw.randint(0, 3)]
        own += [amount(draw) for _ in range(2 * resources)]
        own += [
            0 if other == machine else 7 if plain else amount(draw) for other in range(machines)
        ]
        lines.append(own)
    owner = [draw.randrange(services) for _ in range(processes)]
    lines.append([services])
    for service in range(services):
        others = [one for one in range(services) if one != service]
        needs = draw.sample(others, draw.randint(0, len(others)))
        spread = draw.randint(0, max(owner.count(service), 1))
        lines.append([spread, len(needs), *needs])
    lines.append([processes])
    lines += [[service, *(amount(draw) for _ in range(resources + 1))] for service in owner]
    balances = draw.randint(0, 2)
    lines.append([balances])
    for _ in range(balances):
        lines.append([draw.randrange(resources), draw.randrange(resources), amount(draw)])
        lines.append([amount(draw)])
    lines.append([amount(draw) for _ in range(3)])
    model = "\n".join(" ".join(map(str, line)) for line in lines)
    at = " ".join(str(draw.randrange(machines)) for _ in range(processes))
    return model.encode(), at.encode()


def amount(draw: random.Random) -> int:
    """Return any number that a file may hold."""
    return draw.choice([0, 1, draw.randrange(1000), 2**32 - 1])
