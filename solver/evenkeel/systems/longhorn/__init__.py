"""Longhorn: its resources and its replica auto-balance."""

from evenkeel.methods.registry import BUDGETS, Method

METHODS = (
    Method(
        "longhorn",
        "evenkeel.systems.longhorn.auto_balance.method:longhorn",
        "Longhorn's replica auto-balance, volume by volume or as one plan for all of them",
        "evenkeel.systems.longhorn.auto_balance.settings:Longhorn",
        limits=BUDGETS,
        starts=False,
        begins=2e-6,
        refresh="evenkeel.systems.longhorn.auto_balance.method:refresh_payload",
        fixed_membership=True,
        warmup="volumes",
    ),
)
