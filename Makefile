# The names CI runs. `make demo` and `make test` set everything up themselves, in .venv.
.DEFAULT_GOAL := help
PYTHON ?= python3
UV_VERSION := 0.13.8
VENV := .venv
BIN := $(VENV)/bin
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/$(VENV)
UV := $(BIN)/uv

