"""`driftline data` against a real HTTP server on this machine: whole and right, or not at all."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

Driftline = Callable[..., object]
FILES = {"train.jsonl": b'{"question": "1 + 1"}\n' * 5000, "test.jsonl": b'{"question": "2 + 2"}\n' * 4000}
PROJECT = Path(__file__).parents[3] / "driftline.toml"


@dataclass
class Shop:
    """What a server does: `breaks` is after how many bytes of an answer it closes, once for each number."""

    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    breaks: list[int] = field(default_factory=list)
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """(file, Range header)"""
    url: str = ""


@pytest.fixture
def shop() -> Iterator[Shop]:
    kept = Shop()

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, wanted = self.path.rpartition("/")[2], self.headers.get("Range")
            kept.asked.append((name, wanted))
            data = kept.files.get(name)
            if data is None:
                return self.send_error(404)
            begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and kept.ranges else 0
            if wanted and kept.ranges and begin >= len(data):
                return self.send_error(416)
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(data) - begin))
            self.end_headers()
            self.wfile.write(data[begin:][: kept.breaks.pop(0)] if kept.breaks else data[begin:])
            return None

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        kept.url = f"http://127.0.0.1:{server.server_port}/data"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


@dataclass(frozen=True)
class Place:
    """A project whose gsm8k is this test's, and the command line in it."""

    folder: Path
    run: Callable[..., tuple[int, str]]

    @property
    def found(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.folder / "data" / "gsm8k").glob("*"))}


@pytest.fixture
def place(driftline: Driftline, tmp_path: Path, shop: Shop) -> Place:
    text = PROJECT.read_text()
    for part, name in (("train", "train.jsonl"), ("test", "test.jsonl")):
        before, after = text.split("[tasks.gsm8k]\n")
        after = re.sub(
            rf'{part}_sha256 = "\w+"', f'{part}_sha256 = "{hashlib.sha256(FILES[name]).hexdigest()}"', after, count=1
        )
        after = re.sub(
            rf'^{part} = "https://[^"]*"', f'{part} = "{shop.url}/{name}"', after, count=1, flags=re.MULTILINE
        )
        text = f"{before}[tasks.gsm8k]\n{after}"
    (tmp_path / "driftline.toml").write_text(text)

    def run(*words: str) -> tuple[int, str]:
        told = {"DRIFTLINE_CONFIG_PATH": str(tmp_path / "driftline.toml"), "DRIFTLINE_ASSETS_ROOT": str(tmp_path)}
        answer = driftline("data", *words, folder=tmp_path, **told)
        return answer.returncode, answer.stdout + answer.stderr  # type: ignore[attr-defined]

    return Place(tmp_path, run)


def test_what_is_missing_is_fetched_once(place: Place, shop: Shop) -> None:
    assert f"gsm8k: {place.folder}/data/gsm8k/train.jsonl: missing\n" in place.run("list")[1]
    code, said = place.run("fetch", "gsm8k")
    assert (code, said.count("in place")) == (0, 2)
    assert place.found == FILES
    assert place.run("fetch", "gsm8k")[0] == 0
    assert [name for name, _ in shop.asked] == ["train.jsonl", "test.jsonl"]
    assert "train.jsonl: in place" in place.run("list")[1]


def test_a_download_that_breaks_off_is_gone_on_from(place: Place, shop: Shop) -> None:
    shop.breaks = [30_000, 40_000]
    assert place.run("fetch", "gsm8k")[0] == 0
    assert shop.asked[:3] == [("train.jsonl", None), ("train.jsonl", "bytes=30000-"), ("train.jsonl", "bytes=70000-")]
    assert place.found == FILES


def test_a_server_without_ranges_sends_it_all_again(place: Place, shop: Shop) -> None:
    shop.ranges, shop.breaks = False, [30_000]
    assert place.run("fetch", "gsm8k")[0] == 0
    assert place.found == FILES


def test_one_that_always_breaks_off_leaves_what_came_and_no_file(place: Place, shop: Shop) -> None:
    shop.breaks = [10_000] * 4
    code, said = place.run("fetch", "gsm8k")
    assert code == 1
    assert "what came is kept, so try again" in said
    assert said.count("\n") == 1
    assert place.found == {"train.jsonl.part": FILES["train.jsonl"][:40_000]}
    assert place.run("fetch", "gsm8k")[0] == 0
    assert ("train.jsonl", "bytes=40000-") in shop.asked
    assert place.found == FILES


def test_a_wrong_sum_is_refused_and_what_was_there_stays(place: Place, shop: Shop) -> None:
    assert place.run("fetch", "gsm8k")[0] == 0
    target = place.folder / "data" / "gsm8k" / "test.jsonl"
    target.write_bytes(b"another version\n")
    shop.files["test.jsonl"] = b"<html>sign in</html>\n"
    code, said = place.run("fetch", "gsm8k")
    assert code == 1
    assert "another version, or no such file" in said
    assert place.found == FILES | {"test.jsonl": b"another version\n"}
    assert "test.jsonl: another version" in place.run("list")[1]


def test_a_beginning_of_another_file_costs_a_second_go_only(place: Place, shop: Shop) -> None:
    folder = place.folder / "data" / "gsm8k"
    folder.mkdir(parents=True)
    (folder / "train.jsonl.part").write_bytes(b"of last year\n")
    (folder / "test.jsonl.part").write_bytes(FILES["test.jsonl"])  # whole, but killed before it got its name
    assert place.run("fetch", "gsm8k")[0] == 0
    assert place.found == FILES


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--url", "{shop}/elsewhere"], "answered 404"),
        (["--url", "http://127.0.0.1:9"], "Connection refused"),
        (["--url", "ftp://127.0.0.1"], "Request URL has an unsupported protocol"),
    ],
)
def test_an_address_that_has_it_not_is_told_in_a_line(place: Place, shop: Shop, words: list[str], message: str) -> None:
    shop.files.clear()
    code, said = place.run("fetch", "gsm8k", *(word.replace("{shop}", shop.url) for word in words))
    assert (code, said.count("\n")) == (1, 1), said
    assert message in said
    assert place.found == {}


def test_without_a_network_files_are_taken_from_here(place: Place, shop: Shop, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    for folder, name in (("a", "train.jsonl"), ("b", "test.jsonl")):
        (tmp_path / folder / name).write_bytes(FILES[name])
    code, said = place.run("fetch", "gsm8k", "--file", "a/train.jsonl", "--file", "b")
    assert (code, said.count("in place")) == (0, 2), said
    assert place.found == FILES
    (tmp_path / "b" / "test.jsonl").write_bytes(b"{}\n")
    code, said = place.run("fetch", "gsm8k", "--file", "a", "--file", "b/test.jsonl")
    assert code == 1
    assert "it is another version" in said
    assert place.found == FILES
    assert shop.asked == []


def test_a_source_of_no_task_is_no_understood_file(place: Place) -> None:
    config = place.folder / "driftline.toml"
    config.write_text(config.read_text().replace("[sources.gsm8k]", "[sources.gsm9k]"))
    assert "source 'gsm9k': task 'gsm9k' is not defined" in place.run("list")[1]
