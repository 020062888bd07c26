export const view = ({ v, f, along, format: { si, count, number, duration } }) => {
  const prefill = f.prefill_s(), step = f.step_s(), transfer = f.transfer_s(), together = f.together_s(), apart = f.total();
  const gain = together / apart, pools = f.pools();
  const hidden = transfer <= prefill;
  return {
    sentence: `A prompt of ${count(Math.round(v.N))} tokens leaves **${si(f.kv(), "B", 3)}** to send: **${duration(transfer)}** over this link, ${hidden ? "less" : "more"} than the ${duration(prefill)} of its prefill. A token then takes **${duration(apart)}** instead of **${duration(together)}**, ${gain >= 1 ? `a pace ${number(gain, 3)} times as high` : `so apart is slower`}.`,
    charts: [
      {
        title: "Time per output token",
        x: { unit: "s", ticks: "unit" },
        bars: [
          { name: "together", parts: [{ value: step, role: "decode", name: "its own step" }, { value: together - step, role: "prefill", name: "others' prefills" }], text: duration(together) },
          { name: "apart", parts: [{ value: step, role: "decode", name: "its own step" }, { value: apart - step, role: "network", name: "its share of the transfer" }], text: duration(apart) },
        ],
        rowHeight: 40,
      },
      {
        title: "The transfer against the prefill",
        x: { label: "Prompt", unit: "tokens", log: true, domain: [64, 131072], control: "N" },
        y: { label: "Time", unit: "s", log: true, domain: [1e-5, 1e3] },
        lines: [
          { role: "prefill", name: "prefill", y: along("prefill_s", "N") },
          { role: "network", name: "transfer", y: along("transfer_s", "N") },
        ],
        points: [{ x: v.N, y: transfer, role: "network", text: duration(transfer), drop: "x", below: true }, { x: v.N, y: prefill, role: "prefill", text: duration(prefill) }],
      },
    ],
    facts: [
      { label: "Link at which both take equally long", value: si(f.break_even(), "B/s", 3), role: "network" },
      { label: "Prefill GPUs for each decode GPU", value: number(pools, 3), role: "prefill" },
      { label: "Longest stall together", value: duration(prefill + step), note: "a whole prompt in one step" },
    ],
  };
};
