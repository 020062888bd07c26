export const view = ({ v, f, along, format: { si, count, percent, duration } }) => {
  const share = f.share(), generate = f.generate_s(), learn = f.learn_s(), kv = f.kv_bytes(), weights = f.weight_bytes();
  const B = Math.round(v.B), T = Math.round(v.T), over = kv + weights > v.capacity;
  return {
    sentence: `With ${B === 1 ? "one answer" : `${count(B)} answers`} of ${count(T)} tokens sampled together, at least **${percent(share, 2)}** of the step goes into generating.`
      + (over ? ` Their caches do not fit one ${v.machine}: spread them over more, or sample fewer.` : ""),
    chart: {
      x: { label: "Answers sampled together", log: 2, domain: [1, 1024], control: "B" },
      y: { label: "Share of the step", domain: [0, 1], ticks: "percent" },
      areas: [
        { role: "decode", name: "generating", y0: 0, y1: along("share", "B") },
        { role: "compute", name: "learning", y0: along("share", "B"), y1: 1 },
      ],
      points: [{ x: v.B, y: share, role: "total", text: percent(share, 2), drop: "x" }],
    },
    facts: [
      { label: "Generating one answer", value: duration(generate), note: "of one machine, at least", role: "decode" },
      { label: "Learning from it", value: duration(learn), role: "compute" },
      { label: "KV cache of the batch", value: si(kv, "B", 3), note: `beside ${si(weights, "B", 3)} of weights`, role: "kv" },
    ],
  };
};
