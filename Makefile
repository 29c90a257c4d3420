# Everything that a developer or CI runs. `make` says what there is.

CARGO ?= cargo
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help test lab lab-all deps bench dist reference clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## Install what the tests need, then run every check and test
	@scripts/test.sh

lab: ## Run tier 1 of the lab, real kernels under QEMU; CASE=name runs what has that in its name
	@scripts/deps.sh $(if $(CASE),lab-all)
	@$(CARGO) xtask lab run $(CASE)

lab-all: ## Run all tiers of the lab, all mutations and the fuzz targets
	@scripts/deps.sh kernels
	@$(CARGO) test --locked --package rtproof-lab --lib -- --ignored
	@$(CARGO) xtask lab run --tier 1 --tier 2 --tier 3 --mutations
	@$(CARGO) xtask fuzz

deps: ## Install what the tests need (apt, as root), or say what is missing
	@scripts/deps.sh

bench: ## Measure rtproof beside its peers (cyclictest, trace-cmd, rtcqs ...); prints ratios
	@scripts/deps.sh
	@$(CARGO) build --locked --release --package rtproof
	@$(CARGO) build --locked --release --package rtproof-bench
	@$(CARGO) build --locked --package rtproof-lab-plant
	@target/release/rtproof-bench
	@target/release/rtproof-bench stats
	@target/release/rtproof-bench long
	@target/release/rtproof-bench causes
	@scripts/bench-audit.sh target/release/rtproof-bench audit

dist: ## Build the static binary with man pages, completions and licences into dist/
	@scripts/dist.sh

reference: ## Rewrite docs/reference from the crates
	@$(CARGO) xtask reference

clean: ## Remove what was built
	@$(CARGO) clean
	@rm -rf dist
