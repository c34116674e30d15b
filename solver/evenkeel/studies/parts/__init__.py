"""Parts: one large cluster solved piece by piece, and judged as a whole."""
