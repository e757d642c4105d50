"""What nvidia-smi tells of this machine's GPUs."""

import subprocess

SECONDS = 20


def told(fields: str, gpu: int | None = None, *, form: str = "csv,noheader") -> str:
    """Its answer to a query of these fields, a line for each GPU, or for the one; nothing where it does not run."""
    query = ["nvidia-smi", f"--query-gpu={fields}", f"--format={form}", *([] if gpu is None else [f"--id={gpu}"])]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
