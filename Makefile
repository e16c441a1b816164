# `make demo`, `test`, `test-slow` and `parity` do everything from a fresh clone: environment, packages, run.
PYTHON ?= python3
VENV ?= .venv
PARITY_VENV ?= .venv-parity
PYTEST ?=
# A test keeps one core busy or waits for processes of its own. A file's tests stay together: they share models.
WORKERS ?= 3
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-slow parity

demo: $(VENV)/.installed
	$(VENV)/bin/python run.py pretrain

RUN_TESTS = $(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# What every change must pass, without PyTorch.
test: $(VENV)/.installed-for-tests
	$(RUN_TESTS) -m "not slow" $(PYTEST)

# The tests that take long: whole commands of each kind, kills at random instants, several processes, every code point.
test-slow: $(VENV)/.installed-for-tests
	$(RUN_TESTS) -m slow $(PYTEST)

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
