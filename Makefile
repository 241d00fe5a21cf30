# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# `make demo` shows it, `make test` checks it; both need nothing but Python 3 and make, and say what else they install.
# Everything they make is kept in ${XDG_CACHE_HOME:-~/.cache}/slurm_ops.kubernetes, nothing in this checkout.
#   PYTHON=python3.12   another interpreter (3.11 or newer)
#   ARGS='...'          arguments for pytest, ansible-test, ansible-lint or molecule
#   KEEP=1              make test leaves its sandbox up
#   KUBECONFIG=...      (or K8S_AUTH_*) for demo, live, molecule: a cluster of yours instead of the sandbox

TOOLS := tests/tools
GATES := $(TOOLS)/gates.sh
export ARGS

.DEFAULT_GOAL := help
.PHONY: help demo demo-down test lint format sanity unit live molecule bench sandbox sandbox-down shell pins clean distclean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@sed -n 's/^#   /  /p' $(firstword $(MAKEFILE_LIST))

demo: ## Start the sandbox Kubernetes, deploy Slurm on it and take a tour (root)
	@$(TOOLS)/demo.sh up

demo-down: ## Stop the sandbox; what was built for it stays in the cache (root)
	@$(TOOLS)/demo.sh down

test: ## Everything that CI runs: lint sanity unit live molecule (root)
	@$(GATES) lint sanity unit live molecule --fresh

lint: ## ansible-lint, ruff, mypy, yamllint, shellcheck, documentation and changelog
	@$(GATES) lint

format: ## Let ruff format the Python files and sort their imports
	@$(TOOLS)/with-environment.sh $(TOOLS)/format.sh

sanity: ## ansible-test: sanity (all tests) and units
	@$(GATES) sanity

unit: ## Unit tests, in parallel
	@$(GATES) unit --show

live: ## Tests against real Slurm on two sandboxes, which stay up (root); ARGS=FILE takes one
	@$(GATES) live --show

molecule: ## Molecule: site, idempotence, verify on the sandbox, which stays up (root)
	@$(GATES) molecule --show

bench: ## Measure at 1,000 and 5,000 nodes and write docs/benchmarks.md (root); ARGS='1000' for other sizes
	@$(TOOLS)/bench.sh $(ARGS)

sandbox: ## Just the sandbox Kubernetes of the tests (root)
	@$(TOOLS)/sandbox.sh present

sandbox-down: ## Stop and remove the sandboxes of the tests (root)
	@$(TOOLS)/sandbox.sh absent test && $(TOOLS)/sandbox.sh absent test-2

shell: ## A shell with this checkout's tools and settings
	@$(TOOLS)/with-environment.sh bash -i

pins: ## Write requirements-constraints.txt again, after a change of requirements-dev.txt
	@$(TOOLS)/pins.sh

clean: ## Remove what the checks left in the cache; the sandbox's binaries and images stay
	@$(TOOLS)/clean.sh tests

distclean: ## Stop the sandbox and remove everything from the cache (root)
	@$(TOOLS)/clean.sh everything
