# SPDX-License-Identifier: Apache-2.0
# Every step that people and automation take. `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# Built with the workspace and run as it is: `cargo run` would build it again with other features.
TARGET = $(shell $(CARGO) metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
TESTBED = $(TARGET)/debug/vdo-testbed
# Says what is missing before anything else is built: it has no dependencies, and is compiled in seconds.
LOAD = $(CARGO) build --quiet --locked --package vdo-load && "$(TARGET)/debug/vdo-load"
DEMO := .demo
GO_MIN := 1.26

# Steps share one target folder and two cores.
.NOTPARALLEL:
.PHONY: help files operator-image soak demo demo-stop check test test-all test-minors test-builds conformance real-vcenter mutants advisories bench generate manifests bundle catalog olm build image release publish matrix docs lint clean rust go deploy undeploy deploy-k8s-cluster

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: rust go ## Start a control plane, nodes and a vCenter on this machine and install the drivers into them (FROM=manifests, helm or rancher: take them over)
	@echo "== test bed: the first time this takes some minutes"
	@$(CARGO) build --workspace --bin vdo-testbed
	@echo "== operator and vdoctl, and beside them the programs of the test bed"
	@set -m; "$(TESTBED)" build --demo & programs=$$!; set +m; \
	trap 'kill -- -$$programs 2>/dev/null || true' EXIT; \
	$(CARGO) build --workspace; wait $$programs
	@echo "== image of the operator"
	@tests/operator-image.sh "$(TARGET)"
	@echo "== demonstration"
	@"$(TESTBED)" demo --dir $(DEMO) $(if $(FROM),--from $(FROM))

demo-stop: rust ## End what `make demo` started
	@if [ -x "$(TESTBED)" ]; then "$(TESTBED)" down --dir $(DEMO); else echo "nothing was started"; fi

deploy: rust ## Build the operator's image, load it into the kind, k3d or minikube cluster of the current context and install it (a remote cluster: VDO_IMAGE=… or VDO_REGISTRY=…)
	@$(LOAD) cluster

undeploy: ## Remove the operator from that cluster, unless there is a VDOConfig
	@deploy/deploy.sh undeploy

deploy-k8s-cluster: rust ## Build the image, carry it over SSH to the nodes (VDO_NODES="user@host …") and install it: K8S_MASTER_IP, K8S_MASTER_SSH_USER, perhaps K8S_MASTER_SSH_PWD in the environment
	@[ '$(origin K8S_MASTER_SSH_PWD)' != 'command line' ] || { \
		echo "Put K8S_MASTER_SSH_PWD into the environment: arguments of make can be read by every user of this machine" >&2; exit 2; }
	@$(LOAD) nodes

files: ## List the source files, each with its purpose
	@git ls-files 'src/*.rs' 'crates/*/src/*.rs' ':!*tests.rs' | while read -r file; do \
		printf '%s: %s\n' "$$file" "$$(sed -n 's|^//! ||p; T; q' "$$file")"; done

check: rust lint ## Check quickly: format, lints, dependencies, unit tests and the tests of the pure core
	@tests/run.sh check

test: rust go lint advisories ## Check everything: format, lints, dependencies, unit, property, snapshot and cluster tests
	@echo "== operator, vdoctl and test bed"
	@$(CARGO) build --workspace
	@echo "== test bed: programs that are missing are built, the first time for about half an hour"
	@"$(TESTBED)" build
	@[ -n "$${VDO_WITHOUT_OLM:-}" ] || $(MAKE) olm
	@echo "== image of the operator for the test bed"
	@tests/operator-image.sh "$(TARGET)"
	@tests/run.sh

olm: rust go ## Build the programs of OLM and OpenShift that the tests need, where they are missing (the first time twenty minutes)
	@$(CARGO) build --workspace
	@"$(TESTBED)" build opm olm catalog catalogd operator-controller bundlecheck scorecard-test scccheck

operator-image: rust ## Build the operator's image that the test bed runs, where it is out of date; `make test` does it, too
	@$(CARGO) build --workspace
	@tests/operator-image.sh "$(TARGET)"

test-all: ## The same with every long test, every kill point and every right instead of a sample, and a release that is built twice (three hours)
	@VDO_LONG=all VDO_FAULTS=all VDO_RIGHTS=all VDO_RELEASE=twice VDO_WINE=all $(MAKE) test

test-minors: rust go ## Run the whole installation on real control planes of Kubernetes 1.33 and 1.35 (the first time a quarter of an hour)
	@$(CARGO) build --workspace
	@$(CARGO) test --test cluster -- --ignored --nocapture real_csi::minors

test-builds: rust go ## Upgrade from an older build of VDO with an older matrix to this one, and back (it is built the first time, for some minutes)
	@$(CARGO) build --workspace
	@tests/operator-image.sh "$(TARGET)"
	@tests/older-build.sh "$(TARGET)"
	@$(CARGO) test --workspace --test cluster -- --include-ignored builds_

conformance: rust go ## Run csi-sanity of kubernetes-csi against the CSI driver as the operator installs it (VDO_CONFORMANCE=write records other results)
	@$(CARGO) build --workspace
	@$(CARGO) test --workspace --test cluster -- --include-ignored conformance

soak: rust go ## Change, disturb and restart the operator for an hour and see that what it uses stays the same (VDO_SOAK=minutes)
	@$(CARGO) build --workspace
	@$(CARGO) test --workspace --test faults -- --ignored --nocapture soak

real-vcenter: rust ## Run the tests that need a real vCenter, which VDO_TEST_VCENTER names: docs/testing-real-vcenter.md
	@tests/real-vcenter.sh

mutants: rust go ## Change the pure core line by line and see that a test fails (hours)
	@cargo mutants --version >/dev/null 2>&1 || { echo "cargo-mutants is missing: cargo install --locked cargo-mutants" >&2; exit 1; }
	@$(CARGO) mutants --no-shuffle --output target

bench: rust go ## Print the measurements: requests, memory, wall times beside kubectl and helm
	@$(CARGO) build --workspace
	@"$(TESTBED)" build
	@$(CARGO) build --release # the benches run vdoctl, which is in a package of its own
	@$(CARGO) bench --workspace

generate: rust ## Write every generated file: matrix digests, what `make manifests` writes, generated pages and pictures
	@$(CARGO) run --quiet --package vdo --example generate -- matrix
	@$(MAKE) manifests # built again with the new digests
	@$(CARGO) run --quiet --package vdo --example generate -- docs

manifests: rust ## Write everything that is deployed: definitions, roles, admission policy, the operator's chart and the bundle
	@$(CARGO) run --quiet --package vdo --example generate -- crds rbac chart
	@$(MAKE) bundle

bundle: rust ## Write the bundle from which OLM installs the operator: bundle
	@$(CARGO) build --quiet --workspace
	@"$(TARGET)/debug/vdo-release" bundle

catalog: bundle ## Pack the bundle, and a catalog with it, into OCI image layouts: target/bundle-image, target/catalog, target/catalog-image
	@crates/release/build.sh catalog

build: rust ## Build vdo-operator and vdoctl, optimised
	@$(CARGO) build --release

image: rust ## Pack the operator into an OCI image layout: target/image
	@crates/release/build.sh image

release: rust ## Build everything that is published: target/release-VERSION
	@crates/release/build.sh release

publish: rust ## Build what is not built, and publish image, chart, matrix and files below REGISTRY=registry.example.com/path (DRY_RUN=1: only say what)
	@crates/release/build.sh publish

matrix: rust ## Write the matrix with its charts as a folder that can be served: target/matrix-VERSION
	@crates/release/build.sh matrix

docs: rust ## Build the documentation as a site with mdbook: target/docs/index.html
	@docs/site.sh "$(TARGET)/docs"

lint: rust ## Format, lints, Rust versions and dependency rules
	@echo "== Rust versions"
	@tests/toolchain.sh
	@echo "== format and lints"
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets -- -D warnings
	@tests/windows.sh check
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "== dependencies"; $(CARGO) deny check bans licenses sources; \
	else \
		echo "== dependencies: NOT checked, cargo-deny is not installed (cargo install --locked cargo-deny)"; \
	fi

advisories: rust ## Look for known faults in the dependencies; needs the network once
	@echo "== advisories"
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "NOT checked: cargo-deny is not installed (cargo install --locked cargo-deny)"; \
	elif timeout 120 $(CARGO) deny fetch db >/dev/null 2>&1; then \
		$(CARGO) deny check advisories; \
	else \
		echo "NOT checked: the database (github.com/RustSec/advisory-db) cannot be fetched from here"; \
	fi

clean: demo-stop ## Remove everything that was built; the test bed's programs stay, as they take long
	@$(CARGO) clean
	@rm -rf $(DEMO)

rust:
	@command -v $(CARGO) >/dev/null || { \
		echo "cargo is missing. Install Rust: https://rustup.rs (rust-version in Cargo.toml says which)" >&2; exit 1; }

go:
	@command -v go >/dev/null || { \
		echo "go is missing. Install Go $(GO_MIN) or newer: https://go.dev/dl/ (the test bed builds Kubernetes with it)" >&2; exit 1; }
	@found=$$(go env GOVERSION | sed 's/^go//'); \
	[ "$$(printf '%s\n' $(GO_MIN) "$$found" | sort -V | head -n 1)" = $(GO_MIN) ] || { \
		echo "go is $$found, the test bed needs $(GO_MIN) or newer: https://go.dev/dl/" >&2; exit 1; }
