"""Templates become responses: autoescaped, with the headers that keep foreign text inert. Decides nothing that is shown."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from driftline.report import figures
from driftline.report.beside import remarks
from driftline.report.impact_text import impact_sentence, tests_in_words
from driftline.report.marked_text import marked_text
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from driftline_service.pages import endings, times
from driftline_service.pages.case_choice import is_failed
from driftline_service.pages.changes import changes, is_changed

SHORT_SHA = 10

POLICY = "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'none'; frame-ancestors 'none'"
PLOT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""A plot brings its own style element and nothing else; as an image it runs nothing anyway."""

HEADERS = {
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Beside what every answer says (api/safe_headers.py)."""


def page(
    folder: Path, template: str, values: Mapping[str, Any], *, status: int = 200, forms: bool = False
) -> HTMLResponse:
    """One template as HTML. `forms`: it may send a form to this site."""
    text = environment(folder).get_template(template).render(**values, now=datetime.now(UTC))
    policy = POLICY.replace("form-action 'none'", "form-action 'self'") if forms else POLICY
    return HTMLResponse(text, status_code=status, headers=HEADERS | {"Content-Security-Policy": policy})


def plot(content: bytes) -> Response:
    """An SVG as a resource of its own, so that its style never needs an exception in the page's policy."""
    return Response(content, media_type="image/svg+xml", headers=HEADERS | {"Content-Security-Policy": PLOT_POLICY})


def asset(path: Path, media_type: str) -> Response:
    """A static file. Its address carries its hash (`versioned`), so it may be kept for long."""
    headers = HEADERS | {"Content-Security-Policy": POLICY, "Cache-Control": "public, max-age=86400"}
    return Response(path.read_bytes(), media_type=media_type, headers=headers)


@cache
def environment(folder: Path) -> Environment:
    """Jinja2 over `folder`/templates; a name that is not given is an error, not an empty place."""
    made = Environment(
        loader=FileSystemLoader(folder / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"stamp": times.stamp, "short": _short, "words": _words, "command": _command}
    made.filters |= {"impact_sentence": impact_sentence, "tests_in_words": tests_in_words}
    made.globals |= {
        "figures": figures, "span": times.span, "about": times.about, "marked_text": marked_text, "changes": changes,
        "is_changed": is_changed, "is_failed": is_failed, "remarks": remarks, "advice": endings.advice,
        "resubmit_command": endings.resubmit_command, "static": {
            file.name: _versioned(file) for file in sorted((folder / "static").iterdir())
        },
    }  # fmt: skip
    return made


def _versioned(file: Path) -> str:
    return f"/static/{file.name}?v={sha256(file.read_bytes()).hexdigest()[:12]}"


def _short(sha: str) -> str:
    return sha[:SHORT_SHA]


def _words(code: str) -> str:
    """A word of the glossary as prose: `not_comparable` is read as two words."""
    return code.replace("_", " ")


def _command(run: Any) -> str:
    return endings.resubmit_command(run.repository, base=run.base, head=run.head)
