export const view = ({ v, f, format: { si, count, number, significant, percent, duration, plural } }) => {
  const prefill = v.prompt > 0.5, name = (p) => (p ? "prefill" : "decode step");
  const intensity = f.intensity(), ridge = f.ridge(), top = f.attainable();
  const bound = intensity < ridge ? "memory" : "compute", share = top / v.pi;
  const other = { prompt: prefill ? 0 : 1 };
  const batch = v.B > 1 ? ` for ${plural(Math.round(v.B), "sequence")}` : "";
  const tokens = `${count(Math.round(v.tokens))} ${prefill ? "tokens" : "cached tokens"}`;
  const x = { label: "Arithmetic intensity", unit: "FLOP/byte", log: true, domain: [0.3, 1e5] };
  const y = { label: "Attainable performance", unit: "FLOP/s", log: true, domain: [5e10, 1e16] };
  const roof = (I) => f.roof({ I });
  return {
    sentence:
      `${prefill ? "A prefill" : "One decode step"} of ${tokens}${batch} does **${significant(intensity, 3)} FLOP a byte**. ` +
      `The ridge is at ${number(ridge)}, so this is **${bound}-bound**: at most **${si(top, "FLOP/s", 3)}**, ` +
      `${percent(share, 2)} of the peak, and at least **${duration(f.time_s())}**. ` +
      (bound === "memory" ? "Fewer bytes or a larger batch can help; a higher peak cannot." : "Fewer operations or a higher peak can help; more bandwidth cannot."),
    chart: {
      x, y,
      ranges: [
        { x: [x.domain[0], ridge], role: "memory", name: "memory-bound" },
        { x: [ridge, x.domain[1]], role: "compute", name: "compute-bound" },
      ],
      lines: [
        { role: "memory", points: [[x.domain[0], roof(x.domain[0])], [ridge, v.pi]] },
        { role: "compute", points: [[ridge, v.pi], [x.domain[1], v.pi]] },
      ],
      rules: [{ x: ridge, text: `ridge ${number(ridge)}`, place: "bottom" }],
      points: [
        { x: f.intensity(other), y: f.attainable(other), role: prefill ? "decode" : "prefill", text: name(!prefill), small: true, below: true },
        { x: intensity, y: top, role: prefill ? "prefill" : "decode", text: `${name(prefill)}: ${si(top, "FLOP/s", 3)}`, drop: "xy", below: true },
      ],
    },
    facts: [
      { label: "Work", value: si(f.flops(), "FLOP"), role: "compute" },
      { label: "Traffic", value: si(f.bytes(), "B"), role: "memory" },
      { label: "Computing takes", value: duration(f.compute_s()) },
      { label: "Moving takes", value: duration(f.memory_s()) },
    ],
  };
};
