# Everything runs from .venv, which the first target makes from any Python >= 3.11.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo $$p; break; }; done)
VENV := .venv
PY := $(VENV)/bin/python
BENCH := $(PY) -m pytest bench --benchmark-timer=time.thread_time --benchmark-disable-gc \
	--benchmark-columns=min,median,rounds --benchmark-sort=fullname --benchmark-group-by=group
# A file of tests stays in one process; each kernel is compiled by whichever needs it first.
SPREAD := -n auto --dist loadfile --no-loadscope-reorder -p no:benchmark
READY := $(VENV)/.ready

# Tests start hundreds of processes, each of which would compile the package's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long live live-kafka live-helix live-opensearch live-swift live-nats live-ceph live-rabbitmq explore versions lint bench figures bench-quality bench-growth bench-peers bench-compare bench-notebooks \
	gates gates-slowed small-bounds small-python replay notebooks docs browser wheels package release check clean

help:
	@echo "make demo           place the replicas of a large cluster and show what came of it"
	@echo "make test           every feature, in some minutes; the same examples every time"
	@echo "make test-long      what takes longer: soaks, all golden files, all scenarios, more seeds"
	@echo "make explore        make test with fresh examples, ten times as many"
	@echo "make versions       the oldest and the newest numba and numpy, Pythons at hand"
	@echo "make lint           formatting, style, types, and which floor may import which"
	@echo "make bench          speed: CPU time of the thread, warm"
	@echo "make figures        write what was measured last into docs/figures.md"
	@echo "make bench-quality  how good the answers are, as tables"
	@echo "make bench-growth   how the time of the main calls grows with the sizes"
	@echo "make bench-peers    other systems on the same input, where they are installed"
	@echo "make bench-notebooks  each notebook with no compiled kernels on disk, against two minutes"
	@echo "make bench-compare  the two runs of make bench that were stored last"
	@echo "make notebooks      bring notebooks in step with their scripts, and run each of them"
	@echo "make docs           the site in build/docs; notebooks are executed if their cells have changed"
	@echo "make browser        the page of a report in Chromium, which must be installed"
	@echo "make wheels         dist: the wheel, and for each Python here one with compiled kernels"
	@echo "make package        the wheel, installed in an environment of its own and used from an empty folder"
	@echo "make release        wheels, each checked, and a tag"
	@echo "make live           real systems on loopback: built, levelled, broken, mended; installs what is missing"
	@echo "make live-kafka     the same with Kafka 4 alone"
	@echo "make live-helix     the same with Apache Helix alone"
	@echo "make live-opensearch  the same with OpenSearch alone"
	@echo "make live-swift     the same with Swift alone"
	@echo "make live-nats      the same with NATS alone"
	@echo "make live-ceph      the same with Ceph alone"
	@echo "make live-rabbitmq  the same with RabbitMQ alone"
	@echo "make check          all of it, as .ci/run does"

# An install that was broken off leaves .unfinished behind, and is begun anew.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv was found: make PYTHON=..." >&2; exit 1; }
	@if [ -e $(VENV)/.unfinished ] || ! $(PY) -c "" 2>/dev/null; then \
		echo "making $(VENV) with $(PYTHON)"; \
		rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.unfinished && $(PYTHON) -m venv $(VENV); \
	fi
	@touch $(VENV)/.unfinished
	$(PY) -m pip install --disable-pip-version-check --quiet -c constraints.txt --upgrade pip
	$(PY) -m pip install -c constraints.txt --build-constraint constraints.txt -e . --group dev
	@rm $(VENV)/.unfinished && touch $@

# What users install, and no more; an environment for development has it, too.
demo:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv was found: make PYTHON=..." >&2; exit 1; }
	@if ! $(PY) -c "import evenkeel" 2>/dev/null; then \
		echo "making $(VENV) with $(PYTHON)" && $(PYTHON) -m venv $(VENV) \
		&& $(PY) -m pip install --disable-pip-version-check --quiet -c constraints.txt --upgrade pip \
		&& $(PY) -m pip install --disable-pip-version-check --quiet -c constraints.txt \
			--build-constraint constraints.txt -e .; \
	fi
	$(PY) -m evenkeel demo

test: $(READY)
	$(PY) -m pytest $(SPREAD) -m "not long and not notebook and not browser"

test-long: $(READY)
	$(PY) -m pytest $(SPREAD) -m "long and not notebook and not browser"

# What cannot be installed here is named, and what needs it is left out.
LIVE := $(PY) -m pytest -m live -s -rs

# Apart from all else: it installs packages of Debian, Maven and Go, and starts daemons on loopback.
live: $(READY)
	$(LIVE) tests/live

live-kafka: $(READY)
	$(LIVE) tests/live/test_kraft.py

live-helix: $(READY)
	$(LIVE) tests/live/test_helix.py

live-opensearch: $(READY)
	$(LIVE) tests/live/test_opensearch.py

live-swift: $(READY)
	$(LIVE) tests/live/test_swift.py

live-nats: $(READY)
	$(LIVE) tests/live/test_nats.py

live-ceph: $(READY)
	$(LIVE) tests/live/test_ceph.py tests/live/test_ceph_tools.py

live-rabbitmq: $(READY)
	$(LIVE) tests/live/test_rabbitmq.py

explore: $(READY)
	HYPOTHESIS_PROFILE=explore $(PY) -m pytest -m "not long and not notebook and not browser"

versions: $(READY)
	.ci/versions $(PY)

lint: $(READY)
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	$(PY) -m mypy
	$(PY) -m pytest tests/house/test_floors.py

bench: $(READY)
	$(BENCH) -m "not quality and not gate" --benchmark-autosave

figures: $(READY)
	$(PY) -m bench.table

bench-growth: $(READY)
	$(PY) -m bench.growth

bench-peers: $(READY)
	$(PY) -m bench.peers

bench-notebooks: $(READY)
	$(PY) -m bench.notebooks

bench-compare: $(READY)
	$(PY) -m bench.compare

bench-quality: $(READY)
	$(BENCH) -m quality

gates: $(READY)
	$(BENCH) -m gate

gates-slowed: $(READY)
	$(BENCH) -m gate --slowed

browser: $(READY)
	$(PY) -m pip install --disable-pip-version-check --quiet -c constraints.txt --group browser
	$(PY) -m pytest -m browser

# The newest numba and the one before it.
NUMBAS ?= 0.68.1 0.68.0

wheels: $(READY)
	NUMBAS="$(NUMBAS)" .ci/wheels $(PY) dist

release: $(READY)
	NUMBAS="$(NUMBAS)" .ci/release $(PY)

package: $(READY)
	.ci/package $(PY)

small-bounds: $(READY)
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest $(SPREAD) -m small

small-python: $(READY)
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest $(SPREAD) -m small

replay: $(READY)
	$(PY) -m tests.conformance tests/data/golden

notebooks: $(READY)
	$(PY) -m jupytext --quiet --sync notebooks/*.py
	$(PY) -m pytest tests/house/test_notebooks.py

# Every warning fails.
docs: $(READY)
	$(PY) -m docs.run_notebooks
	$(PY) -m sphinx --fail-on-warning --keep-going --quiet --jobs auto docs build/docs

check:
	.ci/run

clean:
	rm -rf $(VENV) build docs/gallery *.egg-info
	find solver kernels tests bench -name __pycache__ -prune -exec rm -rf {} +
