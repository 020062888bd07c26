export const view = ({ v, f, along, format: { si, count, number, percent, duration } }) => {
  const total = f.total(), cached = f.cached(), calls = Math.round(v.calls);
  const without = f.prefill_s(), reused = f.prefill_cached_s(), decode = f.decode_s(), tool = f.tool_s();
  const share = (prefill) => prefill / (prefill + decode);
  const bar = (name, prefill) => ({
    name,
    parts: [
      { value: prefill, role: "prefill", name: "prefill" },
      { value: decode, role: "decode", name: "decode" },
      { value: tool, role: "muted", name: "tools" },
    ],
    text: duration(prefill + decode + tool),
  });
  return {
    sentence: `${calls === 1 ? "One call prefills" : `${count(calls)} calls prefill`} **${count(Math.round(total))} tokens** without a prefix cache and **${count(Math.round(cached))}** with one: ${number(total / cached, 3)} times fewer. Decode stays at ${duration(decode)}.`,
    charts: [
      {
        title: "Tokens prefilled so far",
        x: { label: "Calls", domain: [1, 100], control: "calls", ticks: "count" },
        y: { label: "Prefilled", unit: "tokens", domain: [0, Math.max(f.total({ calls: 100 }), 1)] },
        lines: [
          { role: "compute", name: "no cache: k²", y: along("total", "calls"), dash: false },
          { role: "kv", name: "cache: k", y: along("cached", "calls") },
        ],
        points: [{ x: v.calls, y: total, role: "compute", text: count(Math.round(total)), drop: "x" }, { x: v.calls, y: cached, role: "kv", small: true }],
      },
      {
        title: `Where the seconds go, at least, on one ${v.machine}`,
        x: { unit: "s", ticks: "unit" },
        bars: [bar("no cache", without), bar("prefix cache", reused)],
        rowHeight: 40,
      },
    ],
    facts: [
      { label: "Prefill's share without a cache", value: percent(share(without), 2), role: "prefill", note: "of prefill and decode" },
      { label: "With a cache", value: percent(share(reused), 2), role: "prefill" },
      { label: "Tokens read back for each one written", value: number(f.read_per_written(), 3) },
      { label: "KV cache at the end", value: si(f.kv(), "B", 3), role: "kv", note: f.left() < 0 ? `with the weights it does not fit on one ${v.machine}; times as if it did` : "" },
    ],
  };
};
