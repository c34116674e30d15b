"""Whole calls, as a user makes them: from arrays to an audited result with bounds."""

import pytest

from bench.support.jobs import JOBS, summary


@pytest.mark.parametrize("name", JOBS)
def test_whole_call(benchmark, name):
    job = JOBS[name]
    job.instance()
    result = benchmark.pedantic(job.run, rounds=job.rounds, warmup_rounds=2)
    benchmark.extra_info |= {"title": job.title, "seed": job.seed, **summary(result)}
    assert result.audit.hard == 0
