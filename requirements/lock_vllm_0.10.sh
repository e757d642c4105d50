#!/usr/bin/env bash
# Writes vllm-0.10.lock from vllm-0.10.in without downloading a wheel: uv resolves for Python 3.12 on Linux x86-64 from metadata.
# vLLM 0.10.0 leaves most of its requirements open above, so they are those of its own month; lm-eval alone is newer.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

as_of=2025-08-15
lm_eval_as_of=2026-12-01

"${PYTHON:-python3.11}" -m venv "$work/uv"
"$work/uv/bin/pip" install -q uv
"$work/uv/bin/uv" pip compile -q requirements/vllm-0.10.in --no-header --no-annotate \
  --python-version 3.12 --python-platform x86_64-manylinux_2_28 \
  --exclude-newer "$as_of" --exclude-newer-package "lm-eval=$lm_eval_as_of" -o "$work/lock"
{
  echo "# The vLLM environment of the V0 era, Python 3.12, CUDA 12.6. Made by requirements/lock_vllm_0.10.sh."
  cat "$work/lock"
} > requirements/vllm-0.10.lock
