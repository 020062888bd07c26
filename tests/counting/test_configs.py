"""Published configs: what each family leaves out, what is nested, quantized or unknown; and hostile ones.

A config is either counted exactly or refused in one sentence that names the key; never guessed at
without a word.
"""

import json

import pytest

from inferlab.architecture import Architecture
from inferlab.hf_config import FAMILIES, ConfigWarning
from inferlab.hf_config.families import ALIASES
from inferlab.quantities import InputError
from inferlab.step import decode, step

LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "max_position_embeddings": 2048,
}  # fmt: skip


def read(**changes) -> Architecture:
    """LLaMA-7B's config with some keys changed; a value of ... takes the key out."""
    config = {key: value for key, value in (LLAMA | changes).items() if value is not ...}
    return Architecture.from_hf_config(config)


def refused(**changes) -> str:
    with pytest.raises(InputError) as error:
        read(**changes)
    message = str(error.value)
    assert "\n" not in message and len(message) < 400
    return message


# --- what a config may leave out ---


@pytest.mark.parametrize(
    "family, total",
    [("llama", 6_738_415_616), ("gpt2", 124_439_808), ("falcon", 6_921_720_704)],
)
def test_a_family_brings_its_defaults_and_says_so(family, total):
    with pytest.warns(
        ConfigWarning, match="leaves out hidden_size .*: the family's default is taken"
    ):
        assert Architecture.from_hf_config({"model_type": family}).parameters.total == total


def test_a_missing_model_type_is_read_from_the_class_name():
    assert read(model_type=..., architectures=["LlamaForCausalLM"]) == read()
    assert "model_type None" in refused(model_type=...)
    assert "model_type 7" in refused(model_type=7)


def test_both_names_of_a_key_are_read():
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 10}
    general = {"model_type": "gpt2", "hidden_size": 64, "num_hidden_layers": 2,
               "num_attention_heads": 4, "vocab_size": 10}  # fmt: skip
    assert Architecture.from_hf_config(gpt2) == Architecture.from_hf_config(general)


def test_the_window_of_qwen_is_off_unless_switched_on():
    qwen = {"model_type": "qwen2", "sliding_window": 1000, "max_window_layers": 20}
    assert read(**qwen).windowed_layers == 0
    assert read(**qwen, use_sliding_window=True).windowed_layers == 12
    assert read(**qwen | {"max_window_layers": 99}, use_sliding_window=True).windowed_layers == 0


def test_layer_types_decide_over_the_pattern():
    gemma = {"model_type": "gemma3_text", "sliding_window": 512, "head_dim": 256}
    assert read(**gemma).windowed_layers == 27
    assert read(**gemma, sliding_window_pattern=2).windowed_layers == 16
    types = ["sliding_attention"] * 3 + ["full_attention"] * 29
    assert read(**gemma, layer_types=types).windowed_layers == 3


def test_the_language_model_of_a_multimodal_one_is_read():
    text = {key: value for key, value in LLAMA.items() if key != "model_type"}
    with pytest.warns(ConfigWarning, match="only the language model"):
        nested = Architecture.from_hf_config(
            {
                "model_type": "llava",
                "text_config": text,
                "vision_config": {},
                "tie_word_embeddings": True,
            }
        )
    assert nested.tied
    assert nested.but(tied=False, name="llama") == read()


LLAMA_4 = {
    "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40, "vocab_size": 202048,
    "num_local_experts": 16,
}  # fmt: skip


@pytest.mark.parametrize(
    "family",
    ["arcee", "apertus", "ernie4_5_moe", "hunyuan_v1_moe", "dbrx", "gpt_neo", "codegen", "helium"],
)
@pytest.mark.filterwarnings("ignore:.*leaves out:inferlab.hf_config.ConfigWarning")
def test_a_nested_text_config_is_read_as_if_it_stood_alone(family):
    alone = {"model_type": family}
    with pytest.warns(ConfigWarning, match="only the language model"):
        nested = Architecture.from_hf_config({"model_type": "some_vl", "text_config": alone})
    assert nested.but(name=family) == Architecture.from_hf_config(alone).but(name=family)


def test_llama_4_says_what_it_counts_beyond_a_chunk():
    with pytest.warns(ConfigWarning) as warned:
        model = Architecture.from_hf_config({"model_type": "llama4", "text_config": LLAMA_4})
    assert str(warned[-1].message) == (
        "the config: attention in chunks of 8192 tokens is counted exactly up to 8192 tokens, and"
        " beyond as a window of 8192 keys, which is the most that a token of a chunk attends to"
    )
    # Scout: 109 billion parameters, 17 of them active; every fourth layer sees all tokens.
    assert (model.parameters.total, model.parameters.active) == (107_769_861_120, 17_172_894_720)
    assert (model.window, model.windowed_layers) == (8192, 36)


@pytest.mark.filterwarnings("ignore::inferlab.hf_config.ConfigWarning")
def test_the_name_comes_from_where_the_config_lies(tmp_path):
    folder = tmp_path / "My-Model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert Architecture.from_hf_config(folder / "config.json").name == "My-Model"
    assert Architecture.from_hf_config(folder) == Architecture.from_hf_config(
        folder / "config.json"
    )


# --- quantization ---


@pytest.mark.parametrize(
    "quantization, dtype",
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        (
            {"quant_method": "compressed-tensors",
             "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}},
            "fp8",
        ),
        (
            {"quant_method": "compressed-tensors",
             "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}},
            "int4",
        ),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*does not list:inferlab.hf_config.ConfigWarning")
def test_quantization_gives_the_dtype_of_the_weights(quantization, dtype):
    model = read(quantization_config=quantization)
    assert model.weight_dtype == dtype
    # The cache keeps its 16 bits.
    assert model.kv_bytes(1) == 524_288


def test_what_a_quantization_leaves_in_16_bits_is_counted_so():
    # As gpt-oss-20b is published: its experts are in MXFP4, the rest is not.
    left = [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ]
    published = {"quant_method": "mxfp4", "modules_to_not_convert": left}
    preset = Architecture.preset("gpt-oss-20b")
    sizes = dict(
        model_type="gpt_oss", num_hidden_layers=24, num_local_experts=32, num_experts_per_tok=4,
        vocab_size=201088, hidden_size=2880, intermediate_size=2880, head_dim=64,
        num_attention_heads=64, num_key_value_heads=8,
    )  # fmt: skip
    model = Architecture.from_hf_config(sizes | {"quantization_config": published})
    assert model.parameters == preset.parameters
    parts = step(model, decode(0), weights=model.weight_dtype).components
    plain_parts = step(preset, decode(0)).components
    for kept in ("attention_projections", "router", "lm_head"):
        assert parts[kept].weights == plain_parts[kept].weights
    assert parts["ffn"].weights * 32 == plain_parts["ffn"].weights // 2 * 17
    # 19.1 G parameters of experts at 17/32 byte, the others at 2: 13.75 GB, as the checkpoint is.
    assert model.weight_bytes() == pytest.approx(13.75e9, rel=0.01)


@pytest.mark.filterwarnings("error")
def test_a_list_of_every_layer_counts_as_all_of_them():
    gates = [f"model.layers.{i}.block_sparse_moe.gate" for i in range(32)]
    tensors = {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}
    quantization = tensors | {"quant_method": "compressed-tensors", "ignore": ["lm_head", *gates]}
    model = read(model_type="mixtral", quantization_config=quantization)
    assert model.kept_in_16_bits == ("lm_head", "router")


@pytest.mark.parametrize(
    "left, said",
    [
        (None, "does not list what it leaves in 16 bits"),
        (["model.layers.0.self_attn"], "leaves part of self_attn"),
        (["model.layers.*.mlp.down_proj", "lm_head"], "leaves part of .*down_proj"),
    ],
)
def test_what_a_quantization_leaves_open_is_said(left, said):
    with pytest.warns(ConfigWarning, match=said):
        read(quantization_config={"quant_method": "fp8", "modules_to_not_convert": left})


@pytest.mark.parametrize(
    "quantization, said",
    [
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "lists 'lm_head'"),
        ({"quant_method": "fp8", "ignore": [7]}, "lists [7]"),
        ({"quant_method": "qtip"}, "quant_method is 'qtip'"),
        ({"quant_method": "qtip"}, "awq, gptq, auto-round, hqq, bitsandbytes"),
        ({"quant_method": "gptq", "bits": 3}, "bits is 3"),
        ({"quant_method": "awq"}, "bits is None"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": False}, "neither load_in_4bit nor"),
        ({"quant_method": "modelopt"}, "quant_algo is None"),
        (
            {"quant_method": "compressed-tensors", "config_groups": []},
            "config_groups has no weights",
        ),
        ("fp8", "quantization_config is 'fp8'"),
        ({"bits": None}, "quant_method is None"),
        ({"quant_method": ["fp8"]}, "quant_method is"),
        ({"quant_method": "awq", "bits": [4]}, "bits is"),
    ],
)
def test_unknown_quantization_is_refused(quantization, said):
    assert said in refused(quantization_config=quantization)


# --- unknown families ---


def test_an_unknown_family_is_read_by_its_llama_like_keys_with_a_warning():
    with pytest.warns(ConfigWarning, match="'newmodel' is not known: read as a llama"):
        assert read(model_type="newmodel").but(name="llama") == read()


@pytest.mark.parametrize(
    "key",
    ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"],
)
def test_an_unknown_family_without_a_key_is_refused_by_its_name(key):
    assert f"has no {key}" in refused(model_type="newmodel", **{key: ...})


@pytest.mark.parametrize(
    "key, value",
    [("n_routed_experts", 8), ("kv_lora_rank", 512), ("mamba_d_state", 16), ("attention_chunk_size", 8192),
     ("full_attention_interval", 4), ("index_topk", 2048)],
)  # fmt: skip
def test_an_unknown_family_that_is_no_llama_is_refused_by_the_key_that_says_so(key, value):
    assert key in refused(model_type="newmodel", **{key: value})


@pytest.mark.parametrize("family", ["qwen3_next", "mamba", "mamba2", "jamba", "rwkv"])
@pytest.mark.filterwarnings("ignore:.*only the language model:inferlab.hf_config.ConfigWarning")
def test_a_family_that_keeps_a_state_is_refused_even_if_its_keys_are_those_of_a_llama(family):
    said = (
        f"the config: layers of the family '{family}' keep a state of fixed size instead of keys and"
        " values, which is not counted: expected one of those that `inferlab list --help` names"
    )
    assert refused(model_type=family) == said
    assert refused(model_type="some_vl", text_config=LLAMA | {"model_type": family}) == said


@pytest.mark.filterwarnings("ignore::inferlab.hf_config.ConfigWarning")
def test_layers_of_another_kind_are_refused():
    types = ["linear_attention"] * 16 + ["full_attention"] * 16
    assert "layer_types holds 'linear_attention'" in refused(
        model_type="newmodel", layer_types=types
    )
    assert "is_encoder_decoder" in refused(is_encoder_decoder=True)
    assert "use_bidirectional_attention" in refused(
        model_type="gemma2", use_bidirectional_attention=True
    )


# --- senseless values ---

SENSELESS = [0, -1, 1.5, 4096.0, "4096", True, None, [], {}, 10**30, float("nan"), float("inf")]


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                                 "intermediate_size"])  # fmt: skip
@pytest.mark.parametrize("value", SENSELESS, ids=repr)
def test_a_senseless_size_is_refused_by_its_name(key, value):
    assert key in refused(**{key: value})


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"num_key_value_heads": 33}, "num_key_value_heads 33 does not divide"),
        ({"num_key_value_heads": 5}, "num_key_value_heads 5 does not divide"),
        ({"num_key_value_heads": 0}, "num_key_value_heads is 0"),
        ({"num_attention_heads": 31, "num_key_value_heads": 31}, "hidden_size 4096 is not a multiple"),
        ({"head_dim": -128}, "head_dim is -128"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes'"),
        ({"attention_bias": 1}, "attention_bias is 1"),
        ({"max_position_embeddings": -1}, "max_position_embeddings is -1"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window is 0"),
        ({"model_type": "mistral", "sliding_window": -4096}, "sliding_window is -4096"),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "layer_types lists 1 layers"),
        ({"model_type": "gemma2", "layer_types": "full"}, "layer_types is 'full'"),
        ({"model_type": "gemma2", "layer_types": [None] * 32}, "layer_types holds None"),
        ({"model_type": "qwen2", "layer_types": ["sliding_attention"] * 32}, "sliding_window is off"),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 0}, "sliding_window_pattern is 0"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "9 active experts of 8"),
        ({"model_type": "mixtral", "num_local_experts": 0}, "num_local_experts is 0"),
        ({"model_type": "qwen3_moe", "decoder_sparse_step": 0}, "decoder_sparse_step is 0"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": ["a"]}, "mlp_only_layers holds 'a'"),
        ({"model_type": "deepseek_v2"}, "num_experts_per_tok"),
        ({"model_type": "deepseek_v3", "first_k_dense_replace": 33}, "first_k_dense_replace is 33"),
        ({"model_type": "deepseek_v3", "moe_layer_freq": 2}, "moe_layer_freq is 2"),
        ({"model_type": "deepseek_v3", "kv_lora_rank": 0}, "kv_lora_rank is 0"),
        ({"model_type": "gpt2", "n_inner": -1}, "n_inner is -1"),
        ({"model_type": "gpt2", "max_position_embeddings": None}, "n_positions is None"),
        ({"model_type": "opt", "max_position_embeddings": None}, "max_position_embeddings is None"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "add_cross_attention"),
        ({"model_type": "gpt_neo", "attention_types": [["global", 32]]}, "attention_types holds"),
        ({"model_type": "gpt_neo", "attention_types": [[["far"], 32]]}, "attention_types holds"),
        ({"model_type": "gpt_neo"}, "attention_types gives 24 layers and num_layers is 32"),
        ({"model_type": "dbrx", "ffn_config": 7}, "ffn_config is 7: expected a JSON object"),
        ({"model_type": "dbrx", "ffn_config": {"moe_top_k": 0}}, "ffn_config: moe_top_k is 0"),
        ({"model_type": "dbrx", "attn_config": {"kv_n_heads": 5}}, "32 query heads cannot share 5"),
        ({"model_type": "hunyuan_v1_moe", "moe_topk": [1] * 31 + [2]}, "moe_topk is"),
        ({"model_type": "hunyuan_v1_moe", "moe_topk": [0] * 32}, "moe_topk is 0"),
        ({"model_type": "ernie4_5_moe", "moe_layer_interval": 0}, "moe_layer_interval is 0"),
        ({"model_type": "llama4_text", "moe_layers": ["a"]}, "moe_layers holds 'a'"),
        ({"model_type": "llama4_text", "layer_types": ["sliding_attention"] * 32}, "chunked_attention"),
        ({"text_config": 7}, "text_config is 7"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(changes, said):
    assert said in refused(**changes)


JUNK = [
    None, True, False, 0, 1, -1, 2, 3.5, "x", "", [], [1], [None], {}, {"a": 1}, 10**30, float("nan"),
    ["sliding_attention"] * 32, ["full_attention"] * 32,
]  # fmt: skip
EVERYWHERE = {
    "text_config", "vision_config", "quantization_config", "architectures", "is_encoder_decoder",
    "_name_or_path", "model_type", "num_local_experts", "hidden_act",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::inferlab.hf_config.ConfigWarning")
@pytest.mark.parametrize("family", [*FAMILIES, *ALIASES, "newmodel"])
def test_junk_under_any_key_is_counted_or_refused_and_nothing_else(family):
    known = FAMILIES.get(ALIASES.get(family, family), FAMILIES["llama"])
    refusals = 0
    for key in sorted(EVERYWHERE | set(known.defaults)):
        for junk in JUNK:
            try:
                model = Architecture.from_hf_config(LLAMA | {"model_type": family} | {key: junk})
            except InputError as error:
                assert str(error) and "\n" not in str(error)
                refusals += 1
            else:
                assert model.parameters.total > 0
    assert refusals > 50


# --- files ---


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is not JSON"),
        (b'{"model_type": "llama", "hidden_', "is not JSON"),
        (b"[1, 2]", "expected a JSON object"),
        (b"null", "expected a JSON object"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"[" * 200_000, "is not JSON"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "is not JSON"),
    ],
    ids=["empty", "truncated", "list", "null", "binary", "deep", "digits"],
)
def test_a_file_that_is_no_config_is_refused(tmp_path, content, said):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        Architecture.from_hf_config(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("source", [5, None, ["config.json"]])
def test_what_is_neither_a_path_nor_a_config_is_refused(source):
    with pytest.raises(InputError, match=r"the config is .*: expected the path"):
        Architecture.from_hf_config(source)


def test_a_file_that_is_not_there_or_far_too_large_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Architecture.from_hf_config(tmp_path / "nothing.json")
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(2**34)
    with pytest.raises(InputError, match="is larger than"):
        Architecture.from_hf_config(huge)
