// Spaces and line ends are part of a token: show them.
const visible = (text) => text.replaceAll(" ", "␣").replaceAll("\n", "⏎");

export const view = ({ v, f, data, format: { percent } }) => {
  const { prompt, tokens } = data[v.prompt];
  const chances = tokens.map(([, z]) => f.share({ z }));
  // The nucleus: tokens in order until their sum reaches top-p.
  let sum = 0;
  const kept = chances.map((p) => { const inside = sum < v.top_p; sum += inside ? p : 0; return inside; });
  const all = v.top_p >= 1, within = sum >= v.top_p && !all;
  const divisor = within ? sum : all ? 1 : v.top_p;
  const shown = chances.map((p, i) => (kept[i] ? p / divisor : 0));
  const n = kept.filter(Boolean).length;
  const choice = all ? "Any of the 49,152 tokens may come"
    : within ? `Top-p keeps **${n === 1 ? "one token" : `${n} tokens`}**`
    : "Top-p keeps these ten and more";
  return {
    sentence: `After “${prompt.replaceAll("\n", "⏎")}” the likeliest token is **${visible(tokens[0][0])}**, with a chance of **${percent(shown[0])}**. ${choice}.`,
    chart: {
      title: "The ten likeliest next tokens",
      x: { label: "Chance", domain: [0, 1], ticks: "percent" },
      bars: tokens.map(([text], i) => ({
        name: visible(text), value: shown[i], role: kept[i] ? "decode" : "muted",
        text: kept[i] ? percent(shown[i]) : "cut off",
      })),
      label: `Bars of the chances of ten tokens; ${visible(tokens[0][0])} leads with ${percent(shown[0])}.`,
    },
    facts: [
      { label: "The other 49,142 together", value: within ? "cut off" : percent(all ? f.rest() : Math.max(0, 1 - shown.reduce((a, b) => a + b, 0))), role: "muted" },
      { label: "Without top-p the likeliest has", value: percent(chances[0]) },
    ],
  };
};
