"""Code that methods share: compiled clusters, replica counts and stop criteria."""
