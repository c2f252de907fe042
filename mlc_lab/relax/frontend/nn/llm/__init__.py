"""Parts of language models: rotary positions, and a cache of keys and values in pages.

`position_embedding.py` has kernels of TensorIR; `kv_cache.py` the cache as a value of a model,
which the virtual machine keeps in memory of the host (`relax/vm/kv_state.py`).
"""

from . import kv_cache, position_embedding
from .kv_cache import PagedKVCache
from .position_embedding import llama_rope

__all__ = ["PagedKVCache", "kv_cache", "llama_rope", "position_embedding"]
