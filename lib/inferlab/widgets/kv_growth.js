export const view = ({ v, f, along, format: { si, count, plural } }) => {
  const sequence = f.sequence(), kv = f.kv(), free = f.free(), weights = f.weight_bytes(), fit = f.fit(), longest = f.longest();
  const B = Math.round(v.B), S = Math.round(v.S), over = f.used() > v.capacity, end = Math.max(v.capacity, f.used()) * 1.02;
  const one = B === 1 ? "One sequence" : `${count(B)} sequences`;
  const verdict =
    free <= 0 ? "The weights alone are more than the machine holds."
    : over ? `With the weights that is more than the machine holds: **${plural(fit, "sequence")}** of this length would fit.`
    : `Beside the weights, **${plural(fit, "sequence")}** of this length fit.`;
  return {
    sentence: `${one} of ${count(S)} tokens ${B === 1 ? "keeps" : "keep"} **${si(kv, "B", 3)}** of keys and values. ${verdict}`,
    charts: [
      {
        title: `Memory of one ${v.machine}`,
        x: { unit: "B", domain: [0, end], ticks: "unit" },
        bars: [{ name: "in use", parts: [
          { value: weights, role: "weights", name: "weights" },
          { value: kv, role: "kv", name: "KV cache" },
        ] }],
        rules: [{ x: v.capacity, text: si(v.capacity, "B", 3), role: over ? "compute" : "total" }],
        rowHeight: 46,
        label: `Bar of ${si(weights, "B", 3)} of weights and ${si(kv, "B", 3)} of KV cache in a memory of ${si(v.capacity, "B", 3)}.`,
      },
      {
        title: "The cache as the context grows",
        x: { label: "Context", unit: "tokens", log: true, domain: [16, 131072], control: "S" },
        y: { label: "KV cache", unit: "B", log: true, domain: [1e6, 1e13] },
        lines: [
          { role: "kv", name: B === 1 ? "one sequence" : `batch of ${count(B)}`, y: along("kv", "S") },
          ...(B > 1 ? [{ role: "kv", name: "one sequence", y: along("sequence", "S"), faint: true }] : []),
        ],
        rules: free > 0 ? [{ y: free, text: `left by the weights: ${si(free, "B", 3)}`, role: "weights", place: "left" }] : [],
        points: [{ x: v.S, y: kv, role: "kv", text: si(kv, "B", 3), drop: "xy", below: true }],
      },
    ],
    facts: [
      { label: "KV of one token", value: si(sequence / v.S, "B") },
      { label: "Weights", value: si(weights, "B"), role: "weights" },
      { label: "Left for KV", value: si(free, "B") },
      { label: "Longest context at this batch", value: `${count(longest)} tokens`, note: longest > v.context ? `the model was made for ${count(v.context)}` : undefined },
    ],
  };
};
