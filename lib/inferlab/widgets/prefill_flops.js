export const view = ({ v, f, along, format: { si, count, percent } }) => {
  const total = f.total(), crossing = f.crossing(), share = f.share();
  return {
    sentence:
      `A prompt of **${count(v.N)} tokens** costs **${si(total, "FLOP")}**, ${percent(share)} of it attention. ` +
      (share < 0.5
        ? `From ${count(Math.round(crossing))} tokens on, attention is the larger part.`
        : `Attention is the larger part: the two were equal at ${count(Math.round(crossing))} tokens.`),
    chart: {
      x: { label: "Prompt length", unit: "tokens", log: true, domain: [16, 1048576], control: "N" },
      y: { label: "Work of one prefill", unit: "FLOP", log: true },
      lines: [
        { role: "weights", name: "linear layers", y: along("linear", "N") },
        { role: "kv", name: "attention", y: along("attention", "N") },
        { role: "total", name: "together", y: along("total", "N"), faint: true },
      ],
      rules: [{ x: crossing, text: `equal at ${si(crossing, "", 3)}`, place: "bottom" }],
      points: [{ x: v.N, y: total, role: "prefill", text: si(total, "FLOP"), drop: "x", side: "left" }],
    },
    facts: [
      { label: "Linear layers", value: si(f.linear(), "FLOP"), role: "weights" },
      { label: "Attention", value: si(f.attention(), "FLOP"), role: "kv" },
      { label: "Attention's share", value: percent(share) },
      { label: "A token on average", value: si(total / v.N, "FLOP") },
    ],
  };
};
