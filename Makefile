# Targets, with the names that CI uses. `make demo` and `make test` set everything up in .venv first.
.DEFAULT_GOAL := help
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory

# The first Python that is new enough; override with `make PYTHON=/path/to/python3.12 ...`.
PYTHON ?= $(shell sh .ci/find-python)
UV_VERSION := 0.13.8

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo

export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON := $(BIN)/python
export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_PYTHON := $(BIN)/python
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Sources of the native module; other changes need no new build.
BUILT_FROM := pyproject.toml uv.lock Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml) \
	$(shell find crates/*/src -name '*.rs')

.PHONY: help setup dev check-tools demo test test-rust test-python lint lint-rust lint-python \
	check-long coverage bench docs site playground screenshots docs-update wheel release-check peers clean

help: ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(READY) ## Build everything into .venv (other targets do this if necessary).

$(BIN)/python:
	@sh .ci/check-tools "$(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(UV): | $(BIN)/python
	@test "$$($(UV) --version 2>/dev/null | cut -d' ' -f2)" = $(UV_VERSION) \
		|| $(BIN)/python -m pip install --quiet uv==$(UV_VERSION)

# Bytecode is compiled during the build, so that the first command starts quickly.
$(READY): $(BUILT_FROM) | $(UV)
	@sh .ci/check-tools "$(PYTHON)"
	@echo "Building tcpcast into .venv; the first time takes some minutes."
	@$(UV) sync --quiet --frozen --extra papers --extra plot --extra parquet --extra sweep \
		--extra web --extra mcp --group docs --compile-bytecode
	@$(BIN)/python -m compileall -q python/tcpcast python/tcpcast_papers
	@touch $@ $(DEMO)

# Without the dependencies of tests and docs.
$(DEMO): $(BUILT_FROM) | $(UV)
	@sh .ci/check-tools "$(PYTHON)"
	@echo "Building tcpcast into .venv; the first time takes some minutes."
	@$(UV) sync --quiet --frozen --inexact --no-default-groups --extra plot --extra sweep \
		--compile-bytecode
	@$(BIN)/python -m compileall -q python/tcpcast
	@touch $@

dev: ## After an edit in crates/: rebuild the native module in seconds, with less optimisation.
	@test -e $(READY) || $(MAKE) setup
	@cargo build --quiet --locked --profile quick --package tcpcast-py --features pyo3/extension-module
	@# Replace by a rename, so that running processes keep their loaded module.
	@cp "$$(ls target/quick/lib_native.so target/quick/lib_native.dylib 2>/dev/null)" python/tcpcast/.native.new
	@mv python/tcpcast/.native.new python/tcpcast/_native.abi3.so

check-tools: ## List missing tools.
	@sh .ci/check-tools "$(PYTHON)" && echo "Nothing is missing."

demo: $(DEMO) ## Which queue keeps a call usable during an upload? Predicted, and measured.
	@$(BIN)/python .ci/demo.py

# Rust's tests and lint need no native module: `make -j2 lint test` compiles both in parallel.
test: test-rust test-python ## Run all tests except long ones.

test-rust: | $(BIN)/python
	cargo test --quiet --locked $(TEST_RUST_FLAGS) --workspace --exclude tcpcast-py --lib --tests

test-python: $(READY)
	@# Compile edited files once, instead of in each process that a test starts.
	@$(BIN)/python -m compileall -q python/tcpcast python/tcpcast_papers
	.venv/bin/pytest -m "not long" --numprocesses=auto --dist=worksteal

lint: lint-rust lint-python ## Check format, types and style.

lint-rust: | $(BIN)/python
	@sh .ci/check-tools "$(PYTHON)" lint
	cargo fmt --check
	cargo clippy --quiet --locked --workspace --all-targets -- -D warnings

lint-python: $(READY)
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

check-long: $(READY) peers ## Run the long tests, which reproduce the papers and compare with ns-2.
	.venv/bin/pytest -m long --numprocesses=auto --dist=worksteal
	.venv/bin/pytest -m "not long" tests/agreement/test_peers.py tests/agreement/test_red.py \
		tests/agreement/test_fair_queueing.py tests/captures/test_expert_tools.py
	.venv/bin/pytest -m "not long" --hypothesis-profile=many tests/properties tests/papers
	.venv/bin/tcpcast reproduce kernel --out out/kernel-paper

coverage: $(READY) ## Report line coverage of Python and Rust in out/coverage.
	@sh .ci/check-tools "$(PYTHON)" coverage
	@$(UV) sync --quiet --frozen --inexact --no-install-project --only-group coverage
	@sh .ci/coverage $(BIN)

bench: $(READY) ## Print speed and size with their targets.
	.venv/bin/python -m benches.bench

PLAYGROUND := target/wasm32-unknown-unknown/playground/tcpcast_wasm.wasm

playground: $(READY) ## Build the playground of the docs, if Rust's target wasm32 is installed.
	@if test -d "$$($${RUSTC:-rustc} --print target-libdir --target wasm32-unknown-unknown)"; then \
		cargo build --quiet --locked --profile playground --target wasm32-unknown-unknown \
			--package tcpcast-wasm && \
		.venv/bin/python docs/playground/build.py $(PLAYGROUND) out/playground/playground.js; \
	else \
		rm -rf out/playground; \
		echo "No playground in the docs: it needs \`rustup target add wasm32-unknown-unknown\`."; \
	fi

site: $(READY) playground ## Build the docs as a site into out/site; any warning is an error.
	@.venv/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs -d out/doctrees . out/site
	@echo "Open out/site/index.html."

docs: site ## Build the site, and check the docs: links, commands, outputs, tables; the Rust docs.
	.venv/bin/pytest tests/docs
	cargo test --quiet --locked --workspace --exclude tcpcast-py --doc
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps

screenshots: site ## Take the screenshots of the docs; needs Chromium.
	.venv/bin/python docs/screenshots.py out/site

docs-update: $(READY) ## Update the outputs and figures in the docs.
	.venv/bin/python tests/docs/update.py
	.venv/bin/python docs/agreement_figure.py

# On Linux, zig links with the oldest glibc that Rust supports, also for another processor:
# `make wheel TARGET=aarch64-unknown-linux-gnu`, after `rustup target add` with this name.
wheel: | $(UV) ## Build a wheel, which needs no compiler, into out/wheels.
	@sh .ci/check-tools "$(PYTHON)"
	@$(UV) sync --quiet --frozen --inexact --no-install-project --only-group release
	@PATH="$(BIN):$$PATH" $(BIN)/maturin build --quiet --locked --profile release --out out/wheels \
		$(if $(filter Linux,$(shell uname -s)),--zig --compatibility manylinux2014) \
		$(if $(TARGET),--target $(TARGET))
	@ls -l out/wheels/*.whl

release-check: $(READY) ## Build the files of a release, install them in a clean environment, and check them.
	@$(UV) sync --quiet --frozen --inexact --no-install-project --only-group release
	@sh .ci/release-check $(BIN)/python $(UV)

peers: $(READY) ## Install the programs for comparisons (Debian; root or sudo).
	@$(UV) sync --quiet --frozen --inexact --no-install-project --only-group peers
	sh .ci/install-peers

clean: ## Remove everything that was built.
	rm -rf .venv target out .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find python tests benches -name __pycache__ -prune -exec rm -rf {} +
