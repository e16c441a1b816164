# `make demo` and `make test` do everything from a fresh clone: environment, packages, run.
PYTHON ?= python3
VENV ?= .venv
PYTEST ?=
# Most of a test's time is tracing, which keeps one core busy. A file's tests stay together: they share models.
WORKERS ?= 2
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test

demo: $(VENV)/.installed
	$(VENV)/bin/python run.py pretrain

# All tests; `make test PYTEST="-m 'not slow'"` leaves out those over 20 seconds.
test: $(VENV)/.installed-for-tests
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt | $(VENV)/bin/python
	$(PIP) -r requirements.txt
	touch $@

$(VENV)/.installed-for-tests: requirements.txt requirements-dev.txt requirements-parity.txt | $(VENV)/bin/python
	$(PIP) -r requirements-dev.txt
	$(PIP) -r requirements-parity.txt || echo "Without the packages above, the tests that compare with them are skipped."
	touch $@
