"""Which filters of an lm-eval task are gsm8k's own, of which driftline has a copy: another task may use the same names.

lm-eval's results file holds each task's full configuration (its `configs`); nothing but that is looked at here.
"""

from collections.abc import Mapping
from typing import Any

from driftline.scoring.exact_match import IGNORED
from driftline.scoring.extraction import FILTERS

METRIC = "exact_match"


def own_filters(config: Mapping[str, Any]) -> frozenset[str]:
    """The filters that a task scores as gsm8k does, by its configuration; what that does not say is taken as gsm8k's."""
    if not _has_our_metric(config):
        return frozenset()
    given = _regex_steps(config)
    return frozenset(name for name in FILTERS if name not in given or given[name] == _own_step(name))


def _own_step(name: str) -> tuple[str, int]:
    return FILTERS[name].pattern.pattern, FILTERS[name].select


def _regex_steps(config: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Filter -> the pattern it looks for and which match counts."""
    return {
        str(entry.get("name")): (str(step["regex_pattern"]), step.get("group_select", 0))
        for entry in _listed(config, "filter_list")
        for step in _listed(entry, "filter")
        if "regex_pattern" in step
    }


def _has_our_metric(config: Mapping[str, Any]) -> bool:
    for entry in _listed(config, "metric_list"):
        if entry.get("metric") == METRIC:
            patterns = [pattern.pattern for pattern in IGNORED]
            return entry.get("regexes_to_ignore") == patterns and entry.get("ignore_case") is True
    return True


def _listed(found: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = found.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
