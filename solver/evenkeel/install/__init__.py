"""The installation: its versions, and compiling kernels before they are needed."""
