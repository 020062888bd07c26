export const view = ({ v, f, along, format: { si, count, number, duration, plural } }) => {
  const turn = Math.round(v.turn), shown = v.cache ? "reused" : "anew";
  const now = f[shown]({ turn }), first = f[shown]({ turn: 1 }), users = f.users({ turn });
  const end = Math.max(20, 2 ** Math.ceil(Math.log2(turn * 1.2)));
  const top = Math.max(f.constant({ turn: end }), f.anew({ turn: end }));
  return {
    sentence: `In turn ${turn} the prompt has **${count(f.prompt({ turn }))} tokens** and the first token comes after at least **${duration(now)}**${v.cache ? " with a prefix cache" : ""}, ${number(now / first, 3)} times what turn 1 takes. At a constant ${count(Math.round(v.speed))} tokens/s it would be ${duration(f.constant({ turn }))}.`,
    chart: {
      x: { label: "Turn", domain: [1, end], control: "turn", ticks: "count" },
      y: { label: "Time to first token", unit: "s", domain: [0, top * 1.05] },
      lines: [
        { role: "muted", name: "constant speed", y: along("constant", "turn") },
        { role: "prefill", name: "computed anew", y: along("anew", "turn"), faint: v.cache },
        { role: "kv", name: "prefix cache", y: along("reused", "turn"), faint: !v.cache },
      ],
      points: [{ x: turn, y: now, role: v.cache ? "kv" : "prefill", text: duration(now), drop: "xy" }],
    },
    facts: [
      { label: "Constant speed", value: duration(f.constant({ turn })), role: "muted" },
      { label: "Computed anew, at least", value: duration(f.anew({ turn })), role: "prefill" },
      { label: "With a prefix cache, at least", value: duration(f.reused({ turn })), role: "kv" },
      { label: "KV of the conversation", value: si(f.kv({ turn }), "B", 3), role: "kv", note: users >= 1 ? `${plural(users, "conversation")} like it fit beside the weights` : "with the weights it does not fit" },
    ],
  };
};
