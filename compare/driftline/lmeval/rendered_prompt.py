"""Whether a prompt asks the question it is scored against: what a stale request cache breaks.

lm-eval's --cache_requests keys its cache by the task's name, so changed data is scored against the old prompts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

FIELD: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A doc_to_text that only puts fields of the row into a text. Others would need the task's own code."""

    text: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self | None:
        """The task's template, if it is as simple as that and its prompt is what the template makes."""
        text = config.get("doc_to_text")
        if not isinstance(text, str) or config.get("output_type") == "loglikelihood_rolling":
            return None
        rest = FIELD.sub("", text)
        return cls(text) if FIELD.search(text) and "{{" not in rest and "{%" not in rest else None

    def asked_in(self, prompt: str, doc: Mapping[str, Any]) -> bool:
        """Whether the prompt holds the row's question; true where the row lacks a field of text that the template names."""
        names = FIELD.findall(self.text)
        if not all(isinstance(doc.get(name), str) for name in names):
            return True
        asked = FIELD.sub(lambda match: str(doc[match[1]]), self.text).strip()
        return asked in prompt
