"""Floor 2: judging a placement. Numpy only, so that it can judge the kernels."""
