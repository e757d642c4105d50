"""`python -m driftline_service`: one process of the HTTP server. Settings come from DRIFTLINE_…."""

import socket
import sys

import uvicorn
from pydantic import ValidationError

from driftline_service import logs
from driftline_service.app import create_app
from driftline_service.lanes import ConfigurationError
from driftline_service.settings import Settings

STOP_SECONDS = 5
"""Event streams stay open for as long as a run takes; a stopping service does not wait for them."""


def main() -> int:
    try:
        settings = Settings.from_environment()
        logs.configure(format=settings.log_format, level=settings.log_level)
        app = create_app(settings)
    except (ValidationError, ConfigurationError) as error:
        sys.stderr.write(f"driftline: {error}\n")
        return 1
    config = uvicorn.Config(
        app, host=settings.bind_host, port=settings.bind_port, log_config=None, access_log=False, server_header=False,
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_graceful_shutdown=STOP_SECONDS,
    )  # fmt: skip
    passed = None if settings.listen_fd is None else [socket.socket(fileno=settings.listen_fd)]
    uvicorn.Server(config).run(sockets=passed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
