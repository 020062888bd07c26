export const view = ({ v, f, along, format: { count, number, duration, percent, significant, plural } }) => {
  const intensity = f.intensity(), ceiling = f.ceiling(), ridge = f.ridge(), reaches = f.reaches(), fit = f.fit();
  const B = Math.round(v.B), possible = Number.isFinite(reaches), needed = Math.ceil(reaches);
  const verdict = !possible
    ? `**No batch** reaches the ridge at ${number(ridge)}: each sequence brings its own KV cache, so intensity never passes ${number(ceiling)}.`
    : B >= reaches ? `The ridge at ${number(ridge)} is passed from a batch of **${count(needed)}** on: decode is compute-bound.`
    : `A batch of **${count(needed)}** would reach the ridge at ${number(ridge)}.`;
  const memory = fit < B ? ` But the memory holds ${fit < 1 ? "not even one" : `only ${count(fit)}`} of this length.` : "";
  const domain = [0.3, Math.max(1000, 2 * ridge)];
  return {
    sentence: `At a batch of ${count(B)} and ${count(Math.round(v.S))} cached tokens a decode step does **${significant(intensity, 3)} FLOP a byte**. ${verdict}${memory}`,
    chart: {
      x: { label: "Batch", unit: "sequences", log: 2, domain: [1, 4096], control: "B" },
      y: { label: "Arithmetic intensity", unit: "FLOP/byte", log: true, domain },
      ranges: [
        ...(possible && reaches < 4096 ? [{ x: [Math.max(1, reaches), 4096], role: "compute", name: "compute-bound" }] : []),
        ...(fit >= 1 && fit < 4096 ? [{ x: [fit, 4096], role: "muted", name: "beyond the memory" }] : []),
      ],
      lines: [{ role: "decode", name: "decode", y: along("intensity", "B"), dash: false }],
      rules: [
        { y: ridge, text: `ridge ${number(ridge)}`, role: "compute", place: "left" },
        ...(ceiling < domain[1] ? [{ y: ceiling, text: `ceiling ${number(ceiling)}`, role: "kv", place: "left" }] : []),
      ],
      points: [{ x: v.B, y: intensity, role: "decode", text: `${significant(intensity, 3)} FLOP/byte`, drop: "xy", below: true }],
    },
    facts: [
      { label: "A step takes at least", value: duration(f.time_s()) },
      { label: "Tokens a second, at most", value: count(Math.round(f.rate())), role: "decode" },
      { label: "Share of the peak", value: percent(Math.min(1, intensity / ridge), 2) },
      { label: "Sequences that fit", value: count(fit), note: "beside the weights" },
    ],
  };
};
