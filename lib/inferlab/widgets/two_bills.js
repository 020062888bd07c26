export const view = ({ v, f, format: { count, number, money, percent, duration, significant } }) => {
  const training = f.training_usd(), month = f.month_usd(), year = f.year_usd(), even = f.even(), busy = f.busy();
  const when = even < 1 ? "within the first day" : even <= 3650 ? `on day ${count(Math.ceil(even))}` : `after ${count(Math.round(even / 365))} years`;
  const bill = (day) => f.served_usd({ day });
  const low = 10 ** Math.floor(Math.log10(Math.min(training, bill(1)))), high = 10 ** Math.ceil(Math.log10(Math.max(training, bill(3650))));
  return {
    sentence: `Training costs **${money(training)}** once. Serving costs **${money(month)}** a month, and passes the training bill **${when}**.`,
    chart: {
      x: { label: "Days of service", log: true, domain: [1, 3650], ticks: "count" },
      y: { label: "Paid so far", unit: "USD", log: true, domain: [low, high] },
      lines: [
        { role: "compute", name: "training", y: () => training, at: 0.15 },
        { role: "decode", name: "serving", y: bill, at: 0.35 },
      ],
      rules: [{ x: 365, text: "one year", role: "muted", place: "bottom" }],
      points: even >= 1 && even <= 3650 ? [{ x: even, y: training, role: "total", text: `day ${count(Math.ceil(even))}`, drop: "x", below: true }] : [],
    },
    facts: [
      { label: "Training", value: duration(f.training_s()), note: `of one machine, for ${number(f.tokens() / 1e9, 3)} billion tokens`, role: "compute" },
      { label: "A year of serving", value: money(year), note: `${number(year / training, 3)} times the training` },
      { label: "Machines busy day and night", value: significant(busy, 3) },
      { label: "Decode's share of a request", value: percent(f.decode_share(), 2), role: "decode" },
      { label: "A thousand requests", value: money(1000 * f.request_usd()) },
    ],
  };
};
