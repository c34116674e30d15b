"""What Helix's strategies refuse, in our words."""


class HelixError(ValueError):
    """The strategy gives no placement at all for this group, as the original gives none."""


class BadTopology(HelixError):
    """The nodes' domains do not make a tree."""


class NoNodes(HelixError):
    """There is no node to draw."""


class NoZones(HelixError):
    """MultiRoundCRUSH needs a tier of fault zones above the nodes."""


class NotEnoughZones(HelixError):
    """MultiRoundCRUSH found too few zones, or no node, for a partition."""


class OutOfTime(HelixError):
    """The time is over, or the caller wants no more."""
