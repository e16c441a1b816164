# `make demo`, `make test` and `make parity` do everything from a fresh clone: environment, packages, run.
PYTHON ?= python3
VENV ?= .venv
PARITY_VENV ?= .venv-parity
PYTEST ?=
# Most of a test's time is tracing, which keeps one core busy. A file's tests stay together: they share models.
WORKERS ?= 2
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test parity

demo: $(VENV)/.installed
	$(VENV)/bin/python run.py pretrain

# All tests, without PyTorch; `make test PYTEST="-m 'not slow'"` leaves out those over 20 seconds.
test: $(VENV)/.installed-for-tests
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST)

# The tests that compare with other implementations, on what these compute now, and whether they open what ours writes.
parity: $(PARITY_VENV)/.installed-for-parity
	rm -rf $(PARITY_VENV)/goldens
	$(PARITY_VENV)/bin/python tools/goldens $(PARITY_VENV)/goldens
	$(PARITY_VENV)/bin/python -m pytest -m "parity or live" --goldens=$(abspath $(PARITY_VENV))/goldens $(PYTEST)

$(VENV)/bin/python $(PARITY_VENV)/bin/python: %/bin/python:
	$(PYTHON) -m venv $*

REQUIREMENTS := requirements.txt $(addprefix requirements/,core.txt datasets.txt hub.txt plots.txt zh.txt)

$(VENV)/.installed: $(REQUIREMENTS) | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP_INSTALL) -r requirements.txt
	touch $@

$(VENV)/.installed-for-tests: $(REQUIREMENTS) requirements/dev.txt | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP_INSTALL) -r requirements/dev.txt
	touch $@

$(PARITY_VENV)/.installed-for-parity: $(REQUIREMENTS) requirements/dev.txt requirements/parity.txt | $(PARITY_VENV)/bin/python
	$(PARITY_VENV)/bin/python $(PIP_INSTALL) -r requirements/parity.txt
	touch $@
