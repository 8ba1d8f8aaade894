# Thin: every target first sees to .venv, then runs one plain command. The README shows the same without make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo demo-full demo-serve run test bench lint

demo: $(READY)
	$(BIN)/coupon-workers demo

demo-full: $(READY)
	$(BIN)/coupon-workers demo --full

demo-serve: $(READY)
	$(BIN)/coupon-workers demo --serve

run: $(READY)
	$(BIN)/coupon-workers up

test: $(READY)
	$(BIN)/pytest -q -n 2

bench: $(READY)
	$(BIN)/python -m bench

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.12")'
	@echo "Setting up .venv, once: about a minute."
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[embedded,dev,bench]'
	@touch $@
