export const view = ({ v, f, along, format: { si, count, number } }) => {
  const cached = f.cached(), uncached = f.uncached(), saved = f.saved();
  const T = Math.round(v.T), N = Math.round(v.N);
  return {
    sentence: T === 1
      ? `For a single token a cache saves nothing: both ways read the prompt once, **${si(cached, "FLOP", 3)}**.`
      : `${count(T)} tokens after a prompt of ${count(N)} cost **${si(cached, "FLOP", 3)}** with a KV cache and **${si(uncached, "FLOP", 3)}** without: **${number(saved, 3)} times** as much.`,
    chart: {
      x: { label: "Answer", unit: "tokens", log: true, domain: [1, 16384], control: "T" },
      y: { label: "Work of the whole answer", unit: "FLOP", log: true },
      lines: [
        { role: "compute", name: "without cache", y: along("uncached", "T"), at: 0.55 },
        { role: "kv", name: "with cache", y: along("cached", "T") },
      ],
      points: [
        { x: v.T, y: uncached, role: "compute" },
        { x: v.T, y: cached, role: "kv", drop: "x" },
      ],
    },
    facts: [
      { label: "Times as much without", value: number(saved, 3) },
      { label: "Tokens that pass the model", value: count(N + T - 1), note: "with the cache", role: "kv" },
      { label: "The cache then holds", value: si(f.kv_bytes(), "B", 3), role: "kv" },
    ],
  };
};
