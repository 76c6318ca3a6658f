# Every verb is a script under scripts/, so that containers and other machines run the same.
.DEFAULT_GOAL := help
SUITES := lint engine backend system e2e frontend races
LONG_SUITES := sanitizers fuzz
.PHONY: help up down demo status test soak fmt lint bench advisor-rig docs clean admin-password admin-reset-second-factor $(addprefix test-,$(SUITES) $(LONG_SUITES))

help: ## print the verbs
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '  make test-SUITE       run one suite: $(SUITES) $(LONG_SUITES)\n'

up: ## install, build and start everything; again: start what is down
	@scripts/up.sh

down: ## stop what 'make up' started
	@scripts/down.sh

demo: ## make the demo stream again after it was deleted
	@scripts/demo.sh

status: ## one line for each service and each stream
	@scripts/status.sh

admin-password: ## give the console's admin a new random password and print it
	@scripts/admin_password.sh

admin-reset-second-factor: ## let the console's admin in without a code, whose device is lost
	@scripts/admin_second_factor.sh

test: ## run every suite
	@scripts/test.sh $(SUITES)

$(addprefix test-,$(SUITES) $(LONG_SUITES)): test-%:
	@scripts/test.sh $*

soak: ## the long tests, before a release: sanitizers, fuzzers, tests that have a seed: SOAK_MINUTES=240
	@scripts/soak.sh

fmt: ## format every source in place
	@scripts/fmt.sh

lint: ## check layers, formats, types and names
	@scripts/test.sh lint

bench: ## run a benchmark: SCENARIO=staged, another name of engine/bench/bench/scenarios, or all
	@scripts/bench.sh $(or $(SCENARIO),staged)

advisor-rig: ## make each stage slow by a real cause: does the advisor name it? CAUSES='trigger or index' for some
	@scripts/advisor_rig.sh

docs: ## write the generated reference pages
	@scripts/docs.sh

clean: ## remove what was built; keeps the data under .thalweg
	@scripts/clean.sh
