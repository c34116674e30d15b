"""Other systems on the same input, where they are installed; judged by our audit like ourselves."""
