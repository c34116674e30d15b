"""Apache Helix: its records, CRUSH, MultiRoundCRUSH, CRUSH-ed and WAGED."""

from evenkeel.methods.registry import Method

METHODS = (
    Method(
        "helix_crush",
        "evenkeel.systems.helix.crush.method:helix_crush",
        "Apache Helix's CRUSH, bit for bit",
        "evenkeel.systems.helix.options:Crush",
        begins=4e-7,
        warmup="zones",
    ),
    Method(
        "helix_multiround",
        "evenkeel.systems.helix.crush.method:helix_multiround",
        "Apache Helix's MultiRoundCRUSH, bit for bit or repaired",
        "evenkeel.systems.helix.options:MultiRound",
        begins=4e-7,
        warmup="zones_or_repaired_multiround",
    ),
    Method(
        "helix_crushed",
        "evenkeel.systems.helix.crush.method:helix_crushed",
        "Apache Helix's CRUSH-ed, bit for bit or repaired, on any base strategy",
        "evenkeel.systems.helix.options:Crushed",
        begins=4e-7,
        warmup="zones_or_repaired_crushed",
    ),
    Method(
        "helix_auto",
        "evenkeel.systems.helix.crush.method:helix_auto",
        "Apache Helix's card dealing on a given placement, blind to fault zones",
        "evenkeel.systems.helix.options:Auto",
        begins=4e-7,
        warmup="zones",
    ),
    Method(
        "helix_waged",
        "evenkeel.systems.helix.waged:helix_waged",
        "Apache Helix's WAGED in all its scopes, bit for bit",
        "evenkeel.systems.helix.options:Waged",
        begins=1e-6,
        refresh="evenkeel.systems.helix.waged:refresh_payload",
        warmup="zones_in_every_scope",
    ),
)
