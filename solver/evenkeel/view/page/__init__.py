"""The page of a result: one file of HTML that needs nothing beside it."""
