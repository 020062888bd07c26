"""Make models.json: counts by code that other people wrote, for configs that the oracle leaves out.

Needs `pip install torch transformers` (made with torch 2.14.1 and transformers 5.24.0), which the
tests do not: they read the file. Run it as `python tests/data/further/make.py`.

small: configs of odd, distinct sizes, each a variant of its family. Their models are built on the CPU
and run under FlopCounterMode: parameters, FLOPs of prefill (all logits, last logits, the head alone)
and decode, elements of the cache. Attention is full, as computed. masked: pairs that a window leaves,
by the model's own masks. full_size: published shapes, built on
the meta device: parameters only.
"""

import json
from pathlib import Path

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

HERE = Path(__file__).parent
LENGTHS, CACHED = (1, 9, 30), (5, 17, 40)

BASE = dict(
    vocab_size=101, hidden_size=48, intermediate_size=76, num_hidden_layers=5, num_attention_heads=6,
    num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
GPT = dict(
    vocab_size=101, n_embd=48, n_layer=3, n_head=6, n_positions=64, bos_token_id=1, eos_token_id=2
)
OPT = dict(
    vocab_size=101, hidden_size=48, ffn_dim=76, num_hidden_layers=3, num_attention_heads=6,
    max_position_embeddings=64, pad_token_id=1, bos_token_id=2, eos_token_id=2,
)  # fmt: skip
FALCON = dict(
    vocab_size=101,
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=6,
    bos_token_id=1,
    eos_token_id=2,
)
MOE = dict(BASE, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=20)
GPT_OSS = dict(BASE, head_dim=10, num_local_experts=6, num_experts_per_tok=2, sliding_window=9)
DEEPSEEK = dict(
    BASE, num_key_value_heads=6, kv_lora_rank=20, q_lora_rank=28, qk_nope_head_dim=10, qk_rope_head_dim=8,
    v_head_dim=14, moe_intermediate_size=24, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2,
    n_group=1, topk_group=1,
)  # fmt: skip
ERNIE = dict(BASE, moe_num_experts=8, moe_k=3, moe_num_shared_experts=2, moe_intermediate_size=20)
GPT_NEO = dict(
    model_type="gpt_neo", vocab_size=101, hidden_size=48, num_layers=4, num_heads=6,
    max_position_embeddings=64, attention_types=[[["global", "local"], 2]], bos_token_id=1, eos_token_id=2,
)  # fmt: skip
# Its code passes each token through all experts, most of them weighted by zero: its FLOPs are those of
# a sparse model where all are active.
LLAMA4 = dict(
    BASE, head_dim=10, intermediate_size_mlp=92, num_local_experts=4, num_experts_per_tok=4,
    attention_chunk_size=9,
)  # fmt: skip
FULL, SLIDING = "full_attention", "sliding_attention"

SMALL = {
    "llama, biases": dict(BASE, model_type="llama", attention_bias=True, mlp_bias=True),
    "llama, head_dim and tied": dict(
        BASE, model_type="llama", head_dim=12, tie_word_embeddings=True
    ),
    "llama, null KV heads": dict(BASE, model_type="llama", num_key_value_heads=None),
    "mistral, default window": dict(BASE, model_type="mistral"),
    "mistral, window and head_dim": dict(
        BASE, model_type="mistral", sliding_window=12, head_dim=10
    ),
    "mistral, no window": dict(BASE, model_type="mistral", sliding_window=None),
    "mixtral": dict(BASE, model_type="mixtral", num_local_experts=6, num_experts_per_tok=3),
    "mixtral, window": dict(
        BASE, model_type="mixtral", num_local_experts=6, num_experts_per_tok=1, sliding_window=10
    ),
    "qwen2": dict(BASE, model_type="qwen2"),
    "qwen2, window on later layers": dict(
        BASE, model_type="qwen2", use_sliding_window=True, sliding_window=11, max_window_layers=2
    ),
    "qwen2, window switched off": dict(
        BASE, model_type="qwen2", use_sliding_window=False, sliding_window=11, max_window_layers=2
    ),
    "qwen2, layer types": dict(
        BASE,
        model_type="qwen2",
        use_sliding_window=True,
        sliding_window=11,
        layer_types=[FULL, SLIDING, SLIDING, FULL, FULL],
    ),
    "qwen3, default head_dim": dict(BASE, model_type="qwen3"),
    "qwen3, biases, tied, window": dict(
        BASE,
        model_type="qwen3",
        head_dim=14,
        attention_bias=True,
        tie_word_embeddings=True,
        use_sliding_window=True,
        sliding_window=7,
        max_window_layers=4,
    ),
    "qwen3_moe": dict(MOE, model_type="qwen3_moe"),
    "qwen3_moe, dense layers between": dict(
        MOE, model_type="qwen3_moe", mlp_only_layers=[1], decoder_sparse_step=2, head_dim=10
    ),
    "qwen3_moe, window": dict(
        MOE, model_type="qwen3_moe", use_sliding_window=True, sliding_window=9
    ),
    "qwen2_moe": dict(
        MOE, model_type="qwen2_moe", shared_expert_intermediate_size=28, num_key_value_heads=6
    ),
    "gemma": dict(BASE, model_type="gemma", head_dim=10),
    "gemma2": dict(BASE, model_type="gemma2", head_dim=10, sliding_window=9),
    "gemma2, default head_dim, biases": dict(BASE, model_type="gemma2", attention_bias=True),
    "gemma3_text": dict(
        BASE, model_type="gemma3_text", head_dim=10, sliding_window=9, sliding_window_pattern=3
    ),
    "gemma3_text, default pattern": dict(
        BASE, model_type="gemma3_text", head_dim=10, sliding_window=9, num_hidden_layers=7
    ),
    "gemma3_text, layer types": dict(
        BASE,
        model_type="gemma3_text",
        head_dim=10,
        sliding_window=9,
        layer_types=[FULL] * 2 + [SLIDING] * 3,
    ),
    "phi3": dict(BASE, model_type="phi3"),
    "phi3, window": dict(BASE, model_type="phi3", sliding_window=12),
    "gpt2": dict(GPT, model_type="gpt2"),
    "gpt2, n_inner, untied": dict(GPT, model_type="gpt2", n_inner=77, tie_word_embeddings=False),
    "gptj": dict(GPT, model_type="gptj", rotary_dim=4),
    "falcon, one KV head": dict(FALCON, model_type="falcon"),
    "falcon, all KV heads, biases": dict(
        FALCON, model_type="falcon", multi_query=False, parallel_attn=False, bias=True
    ),
    "falcon, grouped": dict(
        FALCON, model_type="falcon", new_decoder_architecture=True, num_kv_heads=2
    ),
    "falcon, grouped, one norm, untied": dict(
        FALCON,
        model_type="falcon",
        new_decoder_architecture=True,
        num_kv_heads=2,
        num_ln_in_parallel_attn=1,
        tie_word_embeddings=False,
        ffn_hidden_size=100,
    ),
    "falcon, alibi": dict(FALCON, model_type="falcon", alibi=True),
    "opt": dict(OPT, model_type="opt"),
    "opt, narrow table, norms after": dict(
        OPT, model_type="opt", do_layer_norm_before=False, word_embed_proj_dim=20
    ),
    "opt, no biases, bare norms": dict(
        OPT, model_type="opt", enable_bias=False, layer_norm_elementwise_affine=False
    ),
    "opt, no final norm, untied": dict(
        OPT, model_type="opt", _remove_final_layer_norm=True, tie_word_embeddings=False
    ),
    "gpt_oss": dict(GPT_OSS, model_type="gpt_oss"),
    "gpt_oss, no biases, layer types": dict(
        GPT_OSS, model_type="gpt_oss", attention_bias=False, layer_types=[FULL] * 4 + [SLIDING]
    ),
    "deepseek_v2": dict(DEEPSEEK, model_type="deepseek_v2", first_k_dense_replace=1),
    "deepseek_v2, query not compressed": dict(
        DEEPSEEK, model_type="deepseek_v2", first_k_dense_replace=1, q_lora_rank=None
    ),
    "deepseek_v2, biases": dict(
        DEEPSEEK, model_type="deepseek_v2", attention_bias=True, mlp_bias=True
    ),
    "deepseek_v3": dict(DEEPSEEK, model_type="deepseek_v3", first_k_dense_replace=2),
    "deepseek_v3, query not compressed, biases": dict(
        DEEPSEEK,
        model_type="deepseek_v3",
        first_k_dense_replace=2,
        q_lora_rank=None,
        attention_bias=True,
    ),
    "deepseek_v3, all layers dense": dict(
        DEEPSEEK, model_type="deepseek_v3", first_k_dense_replace=5
    ),
    "gpt_neox": dict(BASE, model_type="gpt_neox"),
    "gpt_neox, no biases, tied": dict(
        BASE, model_type="gpt_neox", attention_bias=False, tie_word_embeddings=True
    ),
    "gpt_bigcode": dict(GPT, model_type="gpt_bigcode"),
    "gpt_bigcode, all KV heads": dict(GPT, model_type="gpt_bigcode", multi_query=False, n_inner=77),
    "starcoder2": dict(BASE, model_type="starcoder2"),
    "starcoder2, window, no biases, untied": dict(
        BASE,
        model_type="starcoder2",
        use_bias=False,
        sliding_window=12,
        tie_word_embeddings=False,
    ),
    "bloom": dict(
        model_type="bloom", vocab_size=101, hidden_size=48, n_layer=3, n_head=6, pad_token_id=0
    ),
    "mpt": dict(
        model_type="mpt",
        vocab_size=101,
        d_model=48,
        n_layers=3,
        n_heads=6,
        max_seq_len=64,
    ),
    "olmo": dict(BASE, model_type="olmo", attention_bias=True),
    "olmo2": dict(BASE, model_type="olmo2"),
    "olmo3": dict(BASE, model_type="olmo3", sliding_window=9, num_hidden_layers=6),
    "olmoe": dict(BASE, model_type="olmoe", num_experts=6, num_experts_per_tok=3),
    "phi": dict(BASE, model_type="phi"),
    "phi, queries and keys normalised": dict(BASE, model_type="phi", qk_layernorm=True),
    # Its code takes two experts whatever the config says.
    "phimoe": dict(
        BASE,
        model_type="phimoe",
        num_local_experts=6,
        num_experts_per_tok=2,
        attention_bias=True,
        lm_head_bias=True,
    ),
    "nemotron": dict(BASE, model_type="nemotron", attention_bias=True, mlp_bias=True, head_dim=8),
    "granite": dict(BASE, model_type="granite", attention_bias=True, mlp_bias=True),
    "granitemoe": dict(
        BASE,
        model_type="granitemoe",
        num_local_experts=6,
        num_experts_per_tok=3,
        attention_bias=True,
    ),
    "stablelm": dict(BASE, model_type="stablelm", use_qkv_bias=True),
    "stablelm, one norm, queries and keys normalised": dict(
        BASE, model_type="stablelm", use_parallel_residual=True, qk_layernorm=True
    ),
    "cohere": dict(BASE, model_type="cohere"),
    "cohere, queries and keys normalised, biases": dict(
        BASE, model_type="cohere", use_qk_norm=True, attention_bias=True
    ),
    "cohere2": dict(BASE, model_type="cohere2", sliding_window=9),
    "cohere2, pattern": dict(
        BASE, model_type="cohere2", sliding_window=9, sliding_window_pattern=2
    ),
    "glm": dict(BASE, model_type="glm", head_dim=16),
    "glm4": dict(BASE, model_type="glm4", head_dim=16, attention_bias=False),
    "glm4_moe": dict(
        BASE,
        model_type="glm4_moe",
        head_dim=16,
        n_routed_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        n_shared_experts=2,
        first_k_dense_replace=2,
        use_qk_norm=True,
        attention_bias=True,
    ),
    "seed_oss": dict(BASE, model_type="seed_oss", head_dim=10),
    "seed_oss, other biases": dict(
        BASE,
        model_type="seed_oss",
        head_dim=10,
        attention_bias=False,
        attention_out_bias=True,
        mlp_bias=True,
    ),
    "ernie4_5": dict(BASE, model_type="ernie4_5", head_dim=10),
    "ernie4_5, biases, untied": dict(
        BASE, model_type="ernie4_5", head_dim=10, use_bias=True, tie_word_embeddings=False
    ),
    "hunyuan_v1_dense": dict(BASE, model_type="hunyuan_v1_dense", head_dim=10, attention_bias=True),
    "minimax_m2": dict(
        BASE, model_type="minimax_m2", head_dim=10, num_local_experts=6, num_experts_per_tok=3
    ),
    "exaone4": dict(BASE, model_type="exaone4", sliding_window=9),
    "exaone4, layer types": dict(
        BASE,
        model_type="exaone4",
        sliding_window=9,
        sliding_window_pattern="LLG",
        layer_types=[SLIDING, SLIDING, FULL, SLIDING, FULL],
    ),
    "smollm3": dict(BASE, model_type="smollm3"),
    "smollm3, window": dict(
        BASE,
        model_type="smollm3",
        use_sliding_window=True,
        sliding_window=9,
        no_rope_layer_interval=2,
        mlp_bias=True,
    ),
    "ministral, layer types": dict(
        BASE,
        model_type="ministral",
        head_dim=10,
        sliding_window=9,
        layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL],
    ),
    "ministral3": dict(BASE, model_type="ministral3", head_dim=10),
    # Its code computes and stores all keys and masks those outside the window: see MASKED.
    "gpt_neo": dict(GPT_NEO, window_size=64),
    "codegen": dict(GPT, model_type="codegen", n_head=8, rotary_dim=4),
    "codegen, n_inner": dict(GPT, model_type="codegen", n_head=8, rotary_dim=4, n_inner=77),
    "dbrx": dict(
        model_type="dbrx",
        vocab_size=101,
        d_model=48,
        n_layers=3,
        n_heads=6,
        max_seq_len=64,
        attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=10000.0),
        ffn_config=dict(ffn_hidden_size=20, moe_num_experts=6, moe_top_k=3),
    ),
    "ernie4_5_moe": dict(ERNIE, model_type="ernie4_5_moe"),
    "ernie4_5_moe, dense layers between, biases, untied": dict(
        ERNIE,
        model_type="ernie4_5_moe",
        num_hidden_layers=9,
        moe_layer_start_index=2,
        moe_layer_end_index=6,
        moe_layer_interval=2,
        moe_num_shared_experts=0,
        use_bias=True,
        tie_word_embeddings=False,
    ),
    "hunyuan_v1_moe": dict(
        BASE,
        model_type="hunyuan_v1_moe",
        head_dim=10,
        num_experts=6,
        moe_topk=3,
        attention_bias=True,
    ),
    "hunyuan_v1_moe, experts by layer": dict(
        BASE, model_type="hunyuan_v1_moe", head_dim=10, num_experts=6, moe_topk=[2] * 5
    ),
    "llama4_text": dict(LLAMA4, model_type="llama4_text"),
    "llama4_text, dense layers between, biases, no chunks": dict(
        LLAMA4,
        model_type="llama4_text",
        interleave_moe_layer_step=2,
        attention_bias=True,
        attention_chunk_size=None,
    ),
    "llama4_text, layers listed": dict(
        LLAMA4, model_type="llama4_text", moe_layers=[0, 3, 4], no_rope_layers=[1, 0, 0, 1, 0]
    ),
    "llama4_text, layer types": dict(
        LLAMA4, model_type="llama4_text", layer_types=["chunked_attention"] * 2 + [FULL] * 3
    ),
    "arcee": dict(BASE, model_type="arcee", attention_bias=True, mlp_bias=True),
    "apertus": dict(BASE, model_type="apertus", attention_bias=True),
    "apertus, another activation": dict(BASE, model_type="apertus", hidden_act="silu"),
    "helium": dict(BASE, model_type="helium", head_dim=8, attention_bias=True, mlp_bias=True),
}
MASKED = {
    "gpt_neo": dict(GPT_NEO, window_size=9),
    "gpt_neo, two in three": dict(
        GPT_NEO, window_size=7, num_layers=6, attention_types=[[["local", "global", "local"], 2]]
    ),
}

LLAMA_4_SCOUT = dict(
    model_type="llama4_text", max_position_embeddings=10485760, num_local_experts=16,
    interleave_moe_layer_step=1,
)  # fmt: skip
GEMMA_3_4B = dict(
    model_type="gemma3_text", hidden_size=2560, intermediate_size=10240, num_hidden_layers=34,
    sliding_window=1024,
)  # fmt: skip
FULL_SIZE = {
    "gpt2-xl": dict(model_type="gpt2", n_embd=1600, n_layer=48, n_head=25, n_positions=1024, vocab_size=50257),
    "gemma-3-4b-it": dict(model_type="gemma3", text_config=GEMMA_3_4B, vision_config={"model_type": "siglip_vision_model"}),
    "Qwen1.5-MoE-A2.7B": dict(
        model_type="qwen2_moe", hidden_size=2048, num_hidden_layers=24, num_attention_heads=16,
        num_key_value_heads=16, intermediate_size=5632, moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632, num_experts=60, num_experts_per_tok=4, vocab_size=151936,
    ),
    "DeepSeek-V2": dict(
        model_type="deepseek_v2", vocab_size=102400, hidden_size=5120, intermediate_size=12288,
        moe_intermediate_size=1536, num_hidden_layers=60, num_attention_heads=128, num_key_value_heads=128,
        n_shared_experts=2, n_routed_experts=160, num_experts_per_tok=6, first_k_dense_replace=1,
        kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64, v_head_dim=128, qk_nope_head_dim=128,
    ),
    "Kimi-K2": dict(
        model_type="deepseek_v3", vocab_size=163840, hidden_size=7168, intermediate_size=18432,
        moe_intermediate_size=2048, num_hidden_layers=61, num_attention_heads=64, num_key_value_heads=64,
        n_shared_experts=1, n_routed_experts=384, num_experts_per_tok=8, first_k_dense_replace=1,
        kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64, v_head_dim=128, qk_nope_head_dim=128,
    ),
    "gemma-7b": dict(model_type="gemma", head_dim=256),
    "pythia-6.9b": dict(
        model_type="gpt_neox", vocab_size=50432, hidden_size=4096, intermediate_size=16384, num_hidden_layers=32,
        num_attention_heads=32,
    ),
    "phi-2": dict(model_type="phi", vocab_size=51200, hidden_size=2560, intermediate_size=10240, num_hidden_layers=32),
    "OLMo-2-1124-7B": dict(model_type="olmo2", vocab_size=100352),
    "c4ai-command-r-v01": dict(model_type="cohere"),
    "starcoder2-7b": dict(
        model_type="starcoder2", vocab_size=49152, hidden_size=4608, intermediate_size=18432, num_hidden_layers=32,
        num_attention_heads=36, num_key_value_heads=4,
    ),
    "bloom-7b1": dict(model_type="bloom", hidden_size=4096, n_layer=30, n_head=32),
    "mpt-7b": dict(model_type="mpt", vocab_size=50432, d_model=4096, n_layers=32, n_heads=32),
    "SmolLM3-3B": dict(model_type="smollm3"),
    "GLM-4.5-Air": dict(
        model_type="glm4_moe", head_dim=128, attention_bias=True, max_position_embeddings=131072, vocab_size=151552,
        hidden_size=4096, num_hidden_layers=46, num_attention_heads=96,
    ),
    "Llama-4-Scout-17B-16E": dict(model_type="llama4", text_config=LLAMA_4_SCOUT, vision_config={"model_type": "llama4_vision_model"}),
    "Llama-4-Maverick-17B-128E": dict(model_type="llama4_text", num_local_experts=128, interleave_moe_layer_step=2),
    "dbrx-base": dict(
        model_type="dbrx", vocab_size=100352, d_model=6144, n_layers=40, n_heads=48, max_seq_len=32768,
        attn_config=dict(kv_n_heads=8, clip_qkv=8, rope_theta=500000),
        ffn_config=dict(ffn_hidden_size=10752, moe_num_experts=16, moe_top_k=4),
    ),
    "gpt-neo-1.3B": dict(model_type="gpt_neo"),
    "ERNIE-4.5-21B-A3B": dict(model_type="ernie4_5_moe"),
    "Hunyuan-A13B": dict(
        model_type="hunyuan_v1_moe", vocab_size=128167, hidden_size=4096, intermediate_size=3072, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, head_dim=128, num_experts=64, moe_topk=[8] * 32,
    ),
    "Apertus-8B": dict(model_type="apertus", intermediate_size=21504, num_key_value_heads=8),
    "AFM-4.5B": dict(model_type="arcee", vocab_size=128004, num_hidden_layers=36, num_attention_heads=20, num_key_value_heads=4, head_dim=128),
    "helium-1-2b": dict(model_type="helium"),
}  # fmt: skip


def build(config, device):
    config = dict(config.get("text_config", config))
    kind = config.pop("model_type")
    # Grouped matrix products are not counted by FlopCounterMode: experts run one by one.
    experts = {} if kind in ("llama", "gpt2") else {"experts_implementation": "eager"}
    full = AutoConfig.for_model(kind, **config)
    with torch.device(device):
        try:
            model = AutoModelForCausalLM.from_config(full, attn_implementation="eager", **experts)
        except (TypeError, ValueError):  # a family without experts
            model = AutoModelForCausalLM.from_config(full, attn_implementation="eager")
    model.eval()
    model.tie_weights()
    return model


def parameters(model):
    # A correction of the router that is no weight to train is a frozen parameter in some families.
    trained = ((name, p) for name, p in model.named_parameters() if p.requires_grad)
    unique = {id(p): (name, p.numel()) for name, p in trained}.values()
    return {
        "total": sum(count for _, count in unique),
        "embedding": model.get_input_embeddings().weight.numel(),
        "lm_head": model.get_output_embeddings().weight.numel(),
        "routed": sum(
            count for name, count in unique if ".experts." in name and "shared" not in name
        ),
    }


def tokens(count):
    return torch.ones(1, count, dtype=torch.long)


def flops(model, ids, **options):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, **options)
    by_module = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    return counter.get_total_flops(), by_module


def small(config):
    model = build(config, "cpu")
    params = parameters(model)
    model.requires_grad_(False)  # FlopCounterMode trips over views of weights that want a gradient
    prefill, decode, cache_elements = {}, {}, {}
    for length in LENGTHS:
        everything, modules = flops(model, tokens(length), use_cache=False)
        last, _ = flops(model, tokens(length), use_cache=False, logits_to_keep=1)
        head = next(count for name, count in modules.items() if name.endswith(".lm_head"))
        prefill[length] = {"all": everything, "last": last, "lm_head": head}
    for length in CACHED:
        cache = DynamicCache(config=model.config)
        with torch.no_grad():
            model(tokens(length), past_key_values=cache, use_cache=True)
        cache_elements[length] = sum(
            part.numel()
            for layer in cache.layers
            for part in (layer.keys, layer.values)
            if part is not None
        )
        decode[length], _ = flops(model, tokens(1), past_key_values=cache, use_cache=True)
    return {
        "config": config,
        "params": params,
        "prefill": prefill,
        "decode": decode,
        "cache_elements": cache_elements,
    }


def masked(config):
    """Pairs of a query and a key that the layers' own masks let through, over all layers."""
    model = build(config, "cpu")
    masks = [block.attn.attention.bias[0, 0] for block in model.transformer.h]
    return {
        "config": config,
        "pairs": {n: sum(int(mask[:n, :n].sum()) for mask in masks) for n in LENGTHS},
    }


def main():
    transformers.logging.set_verbosity_error()
    presets = {}
    for path in sorted((HERE.parents[2] / "lib" / "inferlab" / "data" / "models").glob("*.json")):
        record = json.loads(path.read_text())
        # InternLM's code is not part of transformers; a record with changes is no published model.
        if record["config"]["model_type"] != "internlm" and "but" not in record:
            presets[record["name"]] = parameters(build(record["config"], "meta"))
    full_size = {
        name: {"config": config, "params": parameters(build(config, "meta"))}
        for name, config in FULL_SIZE.items()
    }
    made = {
        "made_with": f"torch {torch.__version__}, transformers {transformers.__version__}",
        "small": {name: small(config) for name, config in SMALL.items()},
        "masked": {name: masked(config) for name, config in MASKED.items()},
        "full_size": full_size,
        "presets": presets,
    }
    (HERE / "models.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
