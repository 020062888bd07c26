export const view = ({ v, f, data, format: { count, duration, plural } }) => {
  const run = data[v.policy], k = Math.min(Math.round(v.step), run.steps.length), step = run.steps[k - 1];
  const [one, two] = [step.chunks[0], step.chunks[1]], B = step.decodes;
  const takes = f.step_s({
    here1: one ? 1 : 0, new1: one ? one[1] : 0, cached1: one ? one[2] : 0,
    here2: two ? 1 : 0, new2: two ? two[1] : 0, cached2: two ? two[2] : 0,
    B, C: step.cached,
  });
  const names = Object.keys(run.tokens);
  const decoding = names.filter((id) => run.spans.some(([who, phase, from, to]) => who === id && phase === "decode" && from <= step.start && to >= step.end));
  const computes = [
    ...step.chunks.map(([id, fresh, cached]) => `computes **${plural(fresh, "token")}** of ${id}'s prompt${cached ? ` (${count(cached)} are done)` : ""}`),
    ...(B ? [`decodes one token for **${decoding.slice(0, B).join(", ").replace(/, (?=[^,]*$)/, " and ")}**`] : []),
  ];
  const end = Math.max(...Object.values(data).flatMap((each) => each.steps.map((s) => s.end)));
  const roles = { queue: "total", prefill: "prefill", decode: "decode" };
  const out = (id) => run.tokens[id].filter((t) => t <= step.end + 1e-9).length;
  return {
    sentence: `Step ${k} of ${run.steps.length} ${computes.join(" and ")}. It takes **${duration(takes)}** and ends at ${duration(step.end)}.`,
    chart: {
      x: { label: "Time", unit: "s", domain: [0, end], ticks: "unit" },
      rows: names,
      spans: run.spans.flatMap(([row, phase, from, to]) => {
        const now = Math.min(Math.max(step.end, from), to), parts = [];
        if (now > from) parts.push({ row, from, to: now, role: roles[phase] });
        if (to > now) parts.push({ row, from: now, to, role: roles[phase], faint: true });
        return parts;
      }),
      ranges: [{ x: [step.start, step.end], role: "compute" }],
      rules: [{ x: step.end, text: "", role: "compute" }],
      label: `Gantt chart of three requests: queue, prefill and decode, up to ${duration(step.end)}.`,
    },
    facts: [
      { label: "Prompt tokens in this step", value: count(step.chunks.reduce((sum, c) => sum + c[1], 0)), role: "prefill" },
      { label: "Sequences decoding", value: count(B), role: "decode" },
      { label: "KV cache", value: `${count(step.kv)} tokens`, role: "kv" },
      { label: "Waiting", value: count(step.waiting), role: "total" },
    ],
    table: {
      head: ["Request", "Tokens out", "First token after", "Longest stall"],
      rows: names.map((id) => [id, `${out(id)} of ${run.tokens[id].length}`, duration(run.ttft[id]), duration(run.stall[id])]),
    },
  };
};
