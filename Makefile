# Two commands: `make demo` and `make test`. Each sets up .venv by itself when it must.
PYTHON ?= python3.11
CORES ?= 2
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)

.PHONY: demo evidence test notebooks mutants lint clean

# Three things: a committed network under attack, a training from nothing, and the report of everything that is committed.
demo: $(VENV)/ready
	@if git ls-files --error-unmatch 'results/runs/*/network.rbs' > /dev/null 2>&1; \
	then echo "A committed network, unpacked and attacked again on images that ship with the project:"; suite recheck --scale lite; \
	else echo "No network is committed here: nothing to attack again."; fi
	@echo "Two small networks, trained and attacked from nothing (scale demo, at chance by design):"
	snakemake --cores $(CORES) demo
	@echo "Everything that is committed of scale lite, rendered:"
	suite report --scale lite | tail -n 1
	@echo
	@echo "Open reports/lite/index.html; the row just trained: reports/demo/rows/bn_ablation.a0001.md; what was found: docs/findings.md"

# After a stretch of trainings at scale lite: lets git track what is finished, and renders it; what is left is to look and to commit.
evidence: $(VENV)/ready
	suite keep --scale lite
	suite report --scale lite
	suite findings --scale lite
	python -m docs.notebooks results
	git add reports/lite reports/paper_audit.md docs/findings.md docs/notebooks README.md

test: $(VENV)/ready
	OMP_NUM_THREADS=1 python -m pytest -n $(CORES) --dist worksteal tests

# Runs docs/notebooks on the results that are here, and stores what they print.
notebooks: $(VENV)/ready
	python -m docs.notebooks

# Outside of the tests: small faults, one at a time, that they must notice; prints those that nobody did.
mutants: $(VENV)/ready
	OMP_NUM_THREADS=1 python -m tests.mutants --jobs $(CORES)

lint: $(VENV)/ready
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	snakefmt --check Snakefile workflow
	snakemake --lint

# python3 is accepted where the interpreter has no versioned name; the suite needs 3.11.
$(VENV)/ready: requirements.txt pyproject.toml
	$$(command -v $(PYTHON) || command -v python3) -m venv $(VENV) || { echo "error: no venv module; apt install python3.11-venv"; exit 1; }
	$(BIN)/python -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v == (3, 11) else f"error: Python 3.11 is needed, this is {v[0]}.{v[1]}; set PYTHON=...")'
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# What is committed of results and reports stays.
clean:
	rm -rf $(VENV) build *.egg-info .snakemake logs
	git clean -fdXq results reports
