# `make demo` and `make test` set up all they need in .venv; nothing outside this folder is touched.
# Another Python: make PYTHON=python3.13 test. No compiler: make MERCER_CORE=off test.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-to-run
DEV_STAMP := $(VENV)/.installed-to-develop
# Python sources are used in place; only these need a new build.
BUILT_FROM := pyproject.toml $(wildcard CMakeLists.txt core/* core/*/* src/mercer/engine/opcodes.py)

.PHONY: help demo test lint types docs site bench bench-cuda fuzz fuzz-core clean

help:
	@echo "make demo    fit a model on a table and compare with scikit-learn"
	@echo "make test    run the whole test suite"
	@echo "make lint    style, of the core too, and floors;  make types   mypy;  make docs   examples in the documentation"
	@echo "make site    build the documentation site, with the gallery"
	@echo "make bench   measure against the peers;  make bench-cuda   on an NVIDIA device;"
	@echo "make fuzz HOURS=1   look for bytes, calls and numbers that break it"
	@echo "make clean   remove what was built"

demo: $(RUN_STAMP)
	$(BIN)/mercer demo

# A process for each core, each of one thread: threads of several processes would wait for each other.
test: $(DEV_STAMP)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal

lint: $(DEV_STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(wildcard core/*.* core/*/*.*)
	PYTHONPATH=src $(BIN)/lint-imports

types: $(DEV_STAMP)
	$(BIN)/mypy

docs: $(DEV_STAMP)
	$(BIN)/python -m pytest --doctest-modules --doctest-glob='*.md' src/mercer docs README.md

site: $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	PYTHONPATH=src $(BIN)/python docs/check_site.py docs/_build/html
	@echo "docs/_build/html/index.html"

# Hostile bytes for all readers, guided by coverage where atheris can be installed; hostile calls of the core, where
# there is clang; and numbers against the oracle.
HOURS ?= 1
CLANG ?= $(shell command -v clang++ || command -v clang++-14)
fuzz: $(DEV_STAMP)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python tests/robustness/readers.py --seconds $$($(BIN)/python -c "print($(HOURS) * 1800)") --out fuzz
	$(if $(CLANG),$(MAKE) fuzz-core,@echo "no clang++, and the core is not fuzzed")
	$(BIN)/python tests/robustness/fuzz.py --seconds $$($(BIN)/python -c "print($(HOURS) * 600)") --seed $$(date +%s)

fuzz-core: $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nanobind cmake
	$(BIN)/cmake -S . -B build/fuzz -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=$(CLANG) -DMERCER_FUZZ=ON \
		-DMERCER_OPENMP=OFF -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	$(BIN)/cmake --build build/fuzz --target fuzz_core
	mkdir -p fuzz/corpus/core
	ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=1 build/fuzz/fuzz_core -len_control=0 -entropic=0 -max_len=600 -malloc_limit_mb=100 \
		-max_total_time=$$($(BIN)/python -c "print(int($(HOURS) * 1200))") -artifact_prefix=fuzz/core- fuzz/corpus/core

bench: $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m benchmarks

# KeOps stands beside it where it is installed; it compiles with nvcc.
bench-cuda: $(DEV_STAMP)
	$(BIN)/python -m benchmarks.cuda --write

clean:
	rm -rf $(VENV) build dist docs/_build docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mercer needs Python 3.11 or later; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): $(BUILT_FROM) | $(BIN)/python
	@echo "installing mercer; its native module is compiled first, which takes one to three minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(DEV_STAMP): $(BUILT_FROM) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(RUN_STAMP)
