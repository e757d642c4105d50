"""The line by which a vLLM engine says what it is: which engine, which release, which settings it resolved.

A log is written by many hands. A line counts only in vLLM's own form, before the engine took its first prompt, and
several lines must agree; the caller compares what they say with the engine object that it holds.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_BANNER: Final = re.compile(
    r"(?:\((?:MainProcess|EngineCore\w*|VllmWorker\w*|Worker\w*) pid=\d+\) )?"  # the process, since 0.10
    r"INFO \d\d-\d\d \d\d:\d\d:\d\d (?:\[[\w./]+\.py:\d+\]|[\w./]+\.py:\d+\]) "
    r"Initializing (?:an LLM|a (?P<mode>V[01]) LLM) engine \(v(?P<release>[^()\s]{1,80})\) with config: (?P<config>.*)"
)
_SETTING: Final = re.compile(
    r"\b(dtype|enforce_eager|enable_prefix_caching|(?:enable_)?chunked_prefill(?:_enabled)?|kv_cache_dtype|max_seq_len|seed|"
    r"tensor_parallel_size|load_format)=([^\s,()]{1,80})"
)


class BannersDiffer(ValueError):  # noqa: N818 - what it is
    """Two banners that contradict each other: at least one is not the engine's."""


@dataclass(frozen=True)
class Banner:
    """`mode` is V0 or V1; `settings` is what the engine resolved, by vLLM's own names."""

    mode: str
    release: str
    settings: dict[str, str] = field(default_factory=dict, compare=False)


def banner_in(line: str) -> Banner | None:
    """The banner of one log line. A release before 0.8 had V0 alone and did not say so."""
    found = _BANNER.fullmatch(_COLOUR.sub("", line).rstrip())
    if found is None:
        return None
    return Banner(found["mode"] or "V0", found["release"], dict(_SETTING.findall(found["config"])))


def one_banner(lines: Iterable[str]) -> Banner | None:
    """The banner of a whole start, or None.

    Raises:
        BannersDiffer: two lines name different engines or releases.
    """
    seen = [banner for banner in map(banner_in, lines) if banner is not None]
    for other in seen[1:]:
        if other != seen[0]:
            raise BannersDiffer(
                f"the log names engine {seen[0].mode} v{seen[0].release} and engine {other.mode} v{other.release}"
            )
    return seen[0] if seen else None
