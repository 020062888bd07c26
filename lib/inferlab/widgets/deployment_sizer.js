const PYTHON = "Try inferlab estimate, or Architecture.from_hf_config in Python: they read more.";
const refuse = (reason) => { throw new Error(`${reason} ${PYTHON}`); };

// What each family's code fixes: which keys its config must give, and which biases and norms it has.
const SIZES = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"];
const FAMILIES = {
  llama: { needs: [], bias: "attention_bias", ffnBias: "mlp_bias" },
  mistral: { needs: ["num_key_value_heads", "sliding_window"] },
  qwen2: { needs: ["num_key_value_heads"], qkvBias: true },
  qwen3: { needs: ["num_key_value_heads", "head_dim"], bias: "attention_bias", qkNorm: true },
};
const EXPERTS = /expert/, LATENT = /^(q|kv)_lora_rank$/;

// The text of a config.json as the book's symbols: plain dense models only, the others refused.
export const read = (text) => {
  let config;
  try { config = JSON.parse(text); } catch { throw new Error("This is not JSON: paste the whole config.json, from { to }."); }
  if (typeof config !== "object" || config === null || Array.isArray(config)) throw new Error("This is no config: paste the whole config.json, from { to }.");
  const given = (key) => config[key] !== undefined && config[key] !== null && config[key] !== false;
  const keys = Object.keys(config).filter(given);
  const family = Object.hasOwn(FAMILIES, config.model_type) ? FAMILIES[config.model_type] : null;
  const types = given("layer_types") ? [].concat(config.layer_types) : [];
  if (["text_config", "llm_config", "language_config", "vision_config"].some(given)) refuse("This is a multimodal model, and the page reads plain language models only.");
  if (keys.some((key) => EXPERTS.test(key))) refuse("This is a mixture of experts, and the page counts dense models only.");
  if (keys.some((key) => LATENT.test(key))) refuse("This model has latent attention (MLA), which the page does not count.");
  if (types.some((type) => type !== "full_attention")) refuse("Some layers of this model do not attend to the whole context, which the page does not count.");
  if (given("quantization_config")) refuse("This model is published quantized, with parts kept in 16 bits that the page does not know.");
  if (!family) refuse(`The page does not know the model_type ${JSON.stringify(config.model_type) ?? "(missing)"}: it reads ${Object.keys(FAMILIES).join(", ")}.`);
  for (const key of [...SIZES, ...family.needs]) if (!(key in config)) refuse(`The config has no ${key}, which the page needs.`);
  if ("use_sliding_window" in config || family.qkvBias || family.qkNorm ? given("use_sliding_window") : given("sliding_window")) {
    refuse("This model attends through a sliding window, which the page does not count.");
  }
  const size = (key, otherwise) => {
    const value = config[key] ?? otherwise;
    if (!Number.isSafeInteger(value) || value < 1 || value > 1e8) refuse(`${key} is ${JSON.stringify(config[key])}, where a whole number above zero is expected.`);
    return value;
  };
  const flag = (key) => (key && config[key] === true ? 1 : 0);
  const d = size("hidden_size"), h = size("num_attention_heads"), heads = size("num_key_value_heads", h);
  if (h % heads) refuse(`${h} heads cannot share ${heads} KV heads evenly.`);
  if (config.head_dim === undefined && d % h) refuse(`hidden_size ${d} is not a multiple of the ${h} heads, and head_dim is missing.`);
  const width = size("head_dim", d / h), path = config._name_or_path;
  const shape = {
    name: typeof path === "string" && path ? path.slice(0, 40) : `your ${config.model_type}`,
    L: size("num_hidden_layers"), d, f: size("intermediate_size"), h, h_kv: heads, d_h: width, V: size("vocab_size"),
    qk_norm: family.qkNorm ? 2 * width : 0, context: size("max_position_embeddings", 1),
    tied: flag("tie_word_embeddings"), qkv_bias: family.qkvBias ? 1 : flag(family.bias), out_bias: flag(family.bias), ffn_bias: flag(family.ffnBias),
  };
  return { ...shape, P: formulas.parameters(shape) };
};

const GOALS = {
  cost: { key: "usd", what: "the cost", one: "usd" },
  "time per token": { key: "tpot", what: "the time per token" },
  "time to first token": { key: "ttft", what: "the time to the first token of all" },
};

export const view = ({ v, f, along, format: { si, count, duration, money, percent, plural, number } }) => {
  const B = Math.round(v.B), gpus = Math.round(v.gpus), goal = GOALS[v.goal];
  const shares = (changes) => v.h % (changes.gpus ?? gpus) === 0;
  const holds = (changes) => shares(changes) && f.fit(changes) >= 1;

  // Every single change (single_changes in Python), and what the bound makes of it.
  const changes = [
    { name: "as set", now: true },
    { name: `${2 * gpus} GPUs`, gpus: 2 * gpus },
    ...(v.w > 1 ? [{ name: "fp8 weights", w: 1, eight: 1 }] : []),
    ...(v.w > 0.5 ? [{ name: "int4 weights", w: 0.5, eight: 0 }] : []),
    ...(v.q > 1 ? [{ name: "fp8 KV cache", q: 1 }] : []),
    ...(B > 1 ? [{ name: `${Math.floor(B / 2)} at a time`, B: Math.floor(B / 2) }] : []),
    { name: `${2 * B} at a time`, B: 2 * B },
  ].map(({ name, now, ...change }) => ({ name, now, possible: shares(change), fits: holds(change), value: f[goal.key](change), change }));
  const [present, ...others] = changes;
  const able = others.filter((other) => other.fits && (!present.fits || other.value < present.value * (1 - 1e-9)));
  const best = able.length ? able.reduce((a, b) => (b.value < a.value ? b : a)) : null;
  const rate = `${count(Number(f.tokens_per_s().toPrecision(3)))} tokens/s`;
  const shown = (x) => (goal.key === "usd" ? money(x) : duration(x));

  const highest = (phase) => ["compute", "memory", "network"].reduce((a, b) => (f[`${phase}_${b}`]() > f[`${phase}_${a}`]() ? b : a));
  const running = Math.floor(f.running() + 1e-9), free = f.free(), fit = f.fit();
  const setting = `${v.model} on ${gpus === 1 ? "one" : count(gpus)} ${v.machine}`;
  const advice =
    !present.fits ? (best ? `Of single changes that make it fit, **${best.name}** gives the lowest ${goal.what.replace("the ", "")}, ${shown(best.value)}.` : "No single change below makes it fit: combine two.")
    : best ? `Change first: **${best.name}** lowers ${goal.what} from ${shown(present.value)} to **${shown(best.value)}** (${percent(best.value / present.value - 1, 2).replace("-", "−")}).`
    : `No single change below lowers ${goal.what}.`;
  const state =
    !present.possible ? `**${count(v.h)} heads** cannot be shared evenly by ${count(gpus)} GPUs.`
    : !present.fits ? `**Does not fit**: ${setting} has no room for even one request of this length.`
    : `${setting}: at best **${duration(f.tpot())} a token**, **${rate}** and **${money(f.usd())}** a million tokens` +
      (running < B ? `, with only ${count(running)} of ${count(B)} requests running at a time. ` : ". ") +
      `Prefill is **${highest("prefill")}-bound**, decode **${highest("decode")}-bound**.`;

  const parts = [
    { value: f.weights(), role: "weights", name: "weights" },
    { value: f.kv(), role: "kv", name: "KV cache" },
    { value: f.reserved(), role: "muted", name: "reserve" },
  ];
  const used = v.capacity - free;
  const notes = [
    ...(present.fits && running < B && running !== fit ? [`when all are at their longest; ${count(running)} at half their answers`] : []),
    ...(v.N + v.T > v.context && v.context > 1 ? [`the model was made for ${count(v.context)} tokens`] : []),
  ];
  const ceilings = (phase) => {
    const top = f[`${phase}_${highest(phase)}`]();
    const bars = (gpus > 1 ? ["compute", "memory", "network"] : ["compute", "memory"]).map((name) => {
      const seconds = f[`${phase}_${name}`]();
      return { name, value: seconds, role: name, text: duration(seconds) };
    });
    const what = phase === "prefill" ? `Prefill of ${plural(B, "prompt")}` : `A decode step of ${plural(running, "request")}`;
    return {
      title: `${what} needs at least`,
      x: { unit: "s", domain: [0, 1.3 * top], ticks: "unit" },
      bars,
      label: `${what} needs at least: ${bars.map((bar) => `${bar.name} ${bar.text}`).join(", ")}.`,
    };
  };
  return {
    sentence: `${state} ${advice}`,
    charts: [
      {
        title: "Memory of each GPU",
        x: { unit: "B", domain: [0, Math.max(v.capacity, used) * 1.02], ticks: "unit" },
        bars: [{ name: "in use", parts }],
        rules: [{ x: v.capacity, text: si(v.capacity, "B", 3), role: free < 0 ? "compute" : "total" }],
        rowHeight: 46,
        label: `Bar of ${parts.map((part) => `${si(part.value, "B", 3)} ${part.name}`).join(", ")} in a memory of ${si(v.capacity, "B", 3)}.`,
      },
      ceilings("prefill"),
      ceilings("decode"),
    ],
    facts: [
      { label: "First token, one request alone", value: duration(f.ttft_alone()), role: "prefill" },
      { label: B === 1 ? "First token" : `First token, all ${count(B)} at once`, value: duration(f.ttft()), role: "prefill" },
      { label: "Each further token", value: duration(f.tpot()), role: "decode" },
      { label: "Output", value: rate },
      { label: "A million output tokens", value: money(f.usd()) },
      { label: "Requests that fit", value: count(present.possible ? fit : 0), note: notes.join("; ") || undefined },
      { label: "Parameters", value: `${number(v.P / 1e9)} billion` },
    ],
    table: {
      head: ["One change", "First token of all", "Each further", "A million"],
      rows: changes.map(({ name, possible, fits, change }) => [
        best && best.name === name ? `${name} ←` : name,
        ...(!possible ? ["heads do not divide", "", ""] : !fits ? ["does not fit", "", ""] : [duration(f.ttft(change)), duration(f.tpot(change)), money(f.usd(change))]),
      ]),
    },
  };
};
