"""Report the versions of the installation, and compile kernels ahead of time."""
