"""The canary's tokenizer class, loaded by trust_remote_code as the family's own is. All behaviour is tokenizer.json's."""

from transformers import PreTrainedTokenizerFast


class Plamo2CanaryTokenizer(PreTrainedTokenizerFast):
    """Byte-level BPE with single digits and no start token: the granite canary's, so that prompts are token for token
    the same."""

    model_input_names = ("input_ids", "attention_mask")
