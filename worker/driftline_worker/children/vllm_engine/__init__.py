"""Engine `vllm`: lm-eval's own vllm model, on a vLLM whose Python may be a commit's.

`modes`, `banner`, `log_errors` and `spec` are pure and import the standard library only; the rest runs only in a vLLM
environment, inside a child.
"""
