"""When a generated row is finished by a stop text: judged row by row, so that a batch ends with its last open row.

lm-eval's own criterion decodes every row for every stop text after every token, and stops a batch only when one and the
same text ended all its rows. What is left out here lies behind a row's first stop text, where lm-eval cuts it anyway.
"""

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase, StoppingCriteria

LOOKBACK_TOKENS = 2
"""lm-eval looks this much further back than a stop text's own tokens, for texts that were tokenised differently."""


class StopTexts:
    """The stop texts of a task and the vocabulary's tokens that can complete one."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, texts: tuple[str, ...]) -> None:
        self.texts = tuple(text for text in texts if text)
        self.window = LOOKBACK_TOKENS + max(
            (len(tokenizer.encode(text, add_special_tokens=False)) for text in self.texts), default=0
        )
        self.tokenizer = tokenizer
        self._completing = _completing_tokens(tokenizer, self.texts)

    def candidates(self, last_tokens: Tensor) -> Tensor:
        """(b) whether each row's last token can be the end of a stop text."""
        return self._completing.to(last_tokens.device)[last_tokens.clamp(max=len(self._completing) - 1)]

    def within(self, tokens: list[int]) -> bool:
        """Whether the text of these tokens holds a stop text."""
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        return any(stop in text for stop in self.texts)


class StopRows(StoppingCriteria):  # type: ignore[misc]  # transformers is untyped here
    """Marks rows whose generated text holds a stop text. `stopped_at[i]` is then the row's generated tokens so far."""

    def __init__(self, stops: StopTexts, prompt_columns: int, rows: int) -> None:
        self._stops = stops
        self._prompt_columns = prompt_columns
        self.stopped_at: list[int | None] = [None] * rows
        self._stopped = torch.zeros(rows, dtype=torch.bool)

    def __call__(self, input_ids: Tensor, _scores: Tensor, **_: object) -> Tensor:
        if bool((candidates := self._stops.candidates(input_ids[:, -1])).any()):
            generated = input_ids[:, self._prompt_columns :]
            for row in candidates.nonzero().squeeze(1).tolist():
                if self.stopped_at[row] is None and self._stops.within(generated[row, -self._stops.window :].tolist()):
                    self.stopped_at[row] = generated.shape[1]
                    self._stopped[row] = True
        return self._stopped.to(input_ids.device)


def _completing_tokens(tokenizer: PreTrainedTokenizerBase, texts: tuple[str, ...]) -> Tensor:
    """(vocabulary) whether a token's own text holds the last character of a stop text. True for all if such a character
    is not ASCII: tokens may then hold parts of it."""
    ends = {text[-1] for text in texts}
    size = len(tokenizer)
    if not all(end.isascii() for end in ends):
        return torch.ones(size, dtype=torch.bool)
    decoded = tokenizer.batch_decode([[token] for token in range(size)])
    return torch.tensor([any(end in text for end in ends) for text in decoded])
