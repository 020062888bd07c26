export const view = ({ v, f, along, format: { si, count, duration, number, percent, plural, significant } }) => {
  const intensity = f.intensity(), ridge = f.ridge(), reaches = f.reaches(), bytes = f.bytes();
  const m = Math.round(v.m), possible = Number.isFinite(reaches), needed = Math.ceil(reaches);
  const verdict =
    !possible ? `**No number of tokens** reaches the ridge at ${number(ridge)}: the tokens' own traffic stops the rise at ${number(f.ceiling())}.`
    : m >= reaches ? `That is beyond the ridge at ${number(ridge)}, which ${count(needed)} tokens reach: **compute-bound**.`
    : `The ridge at ${number(ridge)} needs ${count(needed)}: **memory-bound**.`;
  const text = `${significant(intensity, 3)} FLOP/byte`;
  const part = (name, role, value) => ({ name, role, value });
  return {
    sentence: `${plural(m, "token")} through a ${count(v.k)} × ${count(v.n)} weight: ${si(f.flops(), "FLOP", 3)} for ${si(bytes, "B", 3)}, **${text}**. ${verdict}`,
    charts: [
      {
        title: "What moves",
        x: { unit: "B", domain: [0, bytes * 1.02], ticks: "unit" },
        bars: [{ name: "bytes", parts: [
          part("weight", "weights", f.weight()),
          part("tokens in", "activations", f.tokens_in()),
          part("results out", "muted", f.tokens_out()),
        ] }],
        rowHeight: 46,
        label: `Bar of ${si(f.weight(), "B", 3)} of weight, ${si(f.tokens_in(), "B", 3)} of tokens in and ${si(f.tokens_out(), "B", 3)} of results out.`,
      },
      {
        title: "Intensity against the tokens that share the weight",
        x: { label: "Tokens m", log: 2, domain: [1, 65536], control: "m" },
        y: { label: "Arithmetic intensity", unit: "FLOP/byte", log: true, domain: [0.3, 30000] },
        ranges: possible && reaches < 65536 ? [{ x: [Math.max(1, reaches), 65536], role: "compute", name: "compute-bound" }] : [],
        lines: [{ role: "weights", name: "one product", y: along("intensity", "m"), dash: false }],
        rules: [{ y: ridge, text: `ridge ${number(ridge)}`, role: "compute", place: "left" }],
        points: [{ x: v.m, y: intensity, role: "weights", text, drop: "xy", below: true }],
      },
    ],
    facts: [
      { label: "Weight", value: si(f.weight(), "B", 3), role: "weights", note: `${percent(f.weight() / bytes, 2)} of the bytes` },
      { label: "Tokens in", value: si(f.tokens_in(), "B", 3), role: "activations" },
      { label: "Results out", value: si(f.tokens_out(), "B", 3), role: "muted" },
      { label: "Takes at least", value: duration(f.time_s()), note: `${percent(Math.min(1, intensity / ridge), 2)} of the peak` },
    ],
  };
};
