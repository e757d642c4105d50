"""The PLaMo 2 family's configuration, under the names that vLLM's plamo2 reads. Lives here: sizes. Must not: tensors."""

from typing import Any

from transformers import PretrainedConfig

MAMBA, ATTENTION = "mamba", "attention"


class Plamo2Config(PretrainedConfig):
    """Sizes of a PLaMo 2 model: Mamba2 layers, with attention once every `mamba_step` layers.

    Attributes:
        hidden_size_per_head: of attention and of Mamba alike; Mamba's inner width is mamba_num_heads times this.
        mamba_step: attention stands in the middle of every `mamba_step` layers; at least 2.
        mamba_chunk_size: tokens of a scan chunk, a power of two.
    """

    model_type = "plamo2"
    keys_to_ignore_at_inference = ("past_key_values",)

    def __init__(
        self,
        *,
        vocab_size: int = 512,
        hidden_size: int = 192,
        intermediate_size: int = 448,
        num_hidden_layers: int = 7,
        num_attention_heads: int = 3,
        num_key_value_heads: int = 1,
        hidden_size_per_head: int = 32,
        mamba_num_heads: int = 12,
        mamba_d_state: int = 64,
        mamba_d_conv: int = 4,
        mamba_step: int = 5,
        mamba_chunk_size: int = 64,
        rms_norm_eps: float = 1e-6,
        max_position_embeddings: int = 8192,
        rope_parameters: dict[str, Any] | None = None,
        initializer_range: float = 0.05,
        use_cache: bool = True,
        tie_word_embeddings: bool = True,
        **kwargs: Any,
    ) -> None:
        if mamba_step < 2:
            raise ValueError(f"mamba_step must be at least 2, got {mamba_step}; with 1 no layer would be Mamba")
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.hidden_size_per_head = hidden_size_per_head
        self.mamba_num_heads = mamba_num_heads
        self.mamba_d_state = mamba_d_state
        self.mamba_d_conv = mamba_d_conv
        self.mamba_step = mamba_step
        self.mamba_chunk_size = mamba_chunk_size
        self.rms_norm_eps = rms_norm_eps
        self.max_position_embeddings = max_position_embeddings
        self.rope_parameters = rope_parameters or {"rope_type": "default", "rope_theta": 10_000.0}
        self.initializer_range = initializer_range
        self.use_cache = use_cache
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)

    @property
    def layers_block_type(self) -> list[str]:
        """What each layer is, in vLLM's words."""
        return [ATTENTION if self.is_attention(i) else MAMBA for i in range(self.num_hidden_layers)]

    @property
    def layer_types(self) -> list[str]:
        """What each layer is, in transformers' words: its caches are made from them."""
        return ["full_attention" if kind == ATTENTION else "linear_attention" for kind in self.layers_block_type]

    @property
    def mamba_inner(self) -> int:
        """Channels of a Mamba layer."""
        return self.mamba_num_heads * self.hidden_size_per_head

    @property
    def time_step_rank(self) -> int:
        """Width from which a Mamba layer's step sizes are projected; the family's rule."""
        return max(64, self.hidden_size // 16)

    def is_attention(self, layer: int) -> bool:
        """The family's rule: the middle of every step, or the last layer of a model shorter than half a step."""
        middle = self.mamba_step // 2
        if self.num_hidden_layers <= middle:
            return layer == self.num_hidden_layers - 1
        return layer % self.mamba_step == middle
