"""Commands by themselves; those on files and on studies have rooms of their own."""
