"""The API's page: every operation, with an example that the API takes, and nothing loaded from elsewhere."""

import json
import re
from html import unescape


def test_every_operation_is_there(client):
    page = client.get("/docs")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';") and "unsafe" not in policy
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.text)
    paths = client.get("/openapi.json").json()["paths"]
    told = set(re.findall(r'<h2 id="[^"]+"><code>([A-Z]+ [^<]+)</code>', page.text))
    assert told == {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


def test_the_example_of_a_run_is_one(client):
    page = client.get("/docs").text
    section = page[page.index('<h2 id="post-api-v1-runs">') :]
    example = json.loads(unescape(re.search("<pre>(.*?)</pre>", section, re.DOTALL).group(1)))
    refused = client.post("/api/v1/runs", json=example | {"repo": "/nowhere"}).json()
    assert refused["reason"] not in ("malformed", "unknown_lane"), refused


def test_fastapis_own_page_is_gone(client):
    assert client.get("/redoc").status_code == 404
