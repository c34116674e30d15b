"""Commands about files: the difference of two, and one in another format."""
