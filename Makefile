# These work from a fresh clone: they create the environments and fill them.
PYTHON ?= python3
VENV ?= .venv
PARITY_VENV ?= .venv-parity
SITE_VENV ?= .venv-site
# uv, which fills an environment in a quarter of pip's time. It does not read pip's settings.
UV ?=
PYTEST ?=
# One more than there are cores, since a test keeps one core busy or waits for its own processes. Each worker takes up
# to 3 GB of memory. The tests of a file run in one worker: they share models.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 7 ? cores + 1 : 8)))
PARITY_WORKERS ?= $(WORKERS)
# Most of what is installed is never imported: the first process that imports a module compiles it, and the result is
# kept, whatever the shell says.
install = $(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python,\
  $(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile)
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo data tpu lint check test test-slow test-all goldens parity site

demo: $(VENV)/.installed
	$(VENV)/bin/python run.py pretrain

# The Simple English Wikipedia, 270 MB: the 'wiki/*' of the documentation's commands.
data: $(VENV)/.installed
	test -s wiki/simple.jsonl || $(VENV)/bin/python tools/fetch_text.py tfds:wikipedia/20230601.simple wiki/simple.jsonl

# On a TPU VM. Its TensorFlow is one release behind, and both tensorflow-text and requirements/ would overwrite it.
# It allows any newer libtpu, but with 0.0.52 it aborts on import: functions that it calls are gone.
tpu: $(VENV)/bin/python
	$(call install,$(VENV)) tensorflow-tpu==2.20.0 libtpu==0.0.14
	$(call install,$(VENV)) --no-deps "tensorflow-text==2.20.*"
	grep -hv '^tensorflow\(-text\)\?>' $(filter requirements/%,$(REQUIREMENTS)) | \
	  $(call install,$(VENV)) -r /dev/stdin

# Workers keep all cores busy: threads of their own would only wait for each other. glibc takes memory in large pages:
# 3% less time. Python skips the columns of source lines, which are a tenth of importing TensorFlow.
RUN_WITH = PYTHONNODEBUGRANGES=1 GLIBC_TUNABLES=glibc.malloc.hugetlb=1 TF_NUM_INTRAOP_THREADS=1 \
  TF_NUM_INTEROP_THREADS=1 $(1)/bin/python -m pytest -n $(2) --dist loadfile --no-loadscope-reorder
RUN_TESTS := $(call RUN_WITH,$(VENV),$(WORKERS))

# Style and types.
lint: $(VENV)/.installed-for-tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

check: lint test

# The tests every change must pass; without PyTorch.
test: $(VENV)/.compiled-for-tests
	$(RUN_TESTS) -m "not slow" $(PYTEST)

# The slow tests: whole commands of each kind, kills at random moments, several processes, every code point.
test-slow: $(VENV)/.compiled-for-tests
	$(RUN_TESTS) -m slow $(PYTEST)

# Both in one run, in which the tests of a file share their models.
test-all: $(VENV)/.compiled-for-tests
	$(RUN_TESTS) $(PYTEST)

# What other implementations compute.
goldens: $(PARITY_VENV)/.installed-for-parity
	rm -rf $(PARITY_VENV)/goldens
	$(PARITY_VENV)/bin/python tools/goldens $(PARITY_VENV)/goldens

# Compares with what they compute afresh, and tests that they open files written here. Collecting the other test files
# would take longer than many of these tests.
PARITY_TESTS ?= $$(grep -rlE 'mark\.(parity|live)\b' tests --include='test_*.py')

parity: goldens
	$(call RUN_WITH,$(PARITY_VENV),$(PARITY_WORKERS)) -m "parity or live" --goldens=$(abspath $(PARITY_VENV))/goldens $(PYTEST) $(PARITY_TESTS)

# The documentation as a site, in build/site. A broken link stops the build.
site: $(SITE_VENV)/.installed-for-site
	$(SITE_VENV)/bin/mkdocs build --quiet --strict --config-file tools/site/mkdocs.yml

$(VENV)/bin/python $(PARITY_VENV)/bin/python $(SITE_VENV)/bin/python: %/bin/python:
	$(PYTHON) -m venv $*

REQUIREMENTS := requirements.txt $(addprefix requirements/,core.txt datasets.txt edge.txt hub.txt plots.txt search.txt sentencepiece.txt seq2seq.txt web.txt wikipedia.txt zh.txt)

$(VENV)/.installed: $(REQUIREMENTS) | $(VENV)/bin/python
	$(call install,$(VENV)) -r requirements.txt
	touch $@

$(VENV)/.installed-for-tests: $(REQUIREMENTS) requirements/beam.txt requirements/dev.txt | $(VENV)/bin/python
	$(call install,$(VENV)) -r requirements/dev.txt
	touch $@

# One process compiles what tests import; otherwise each worker would.
$(VENV)/.compiled-for-tests: $(VENV)/.installed-for-tests
	-$(VENV)/bin/python -m pytest --collect-only --quiet >/dev/null
	touch $@

$(PARITY_VENV)/.installed-for-parity: $(REQUIREMENTS) requirements/beam.txt requirements/dev.txt requirements/parity.txt | $(PARITY_VENV)/bin/python
	$(call install,$(PARITY_VENV)) -r requirements/parity.txt
	touch $@

$(SITE_VENV)/.installed-for-site: requirements/site.txt | $(SITE_VENV)/bin/python
	$(call install,$(SITE_VENV)) -r requirements/site.txt
	touch $@
