/* What all widgets of the book share: controls, number formats and charts. Needs d3.js.
   A widget calls inferlab.explorer({ formulas, view, roles }); README.md tells what a view returns. */
var inferlab = (() => {
  "use strict";

  // --- numbers as the book prints them (inferlab.quantities in Python) ---

  const PREFIX = { "-12": "p", "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T",
    15: "P", 18: "E", 21: "Z", 24: "Y" };
  const exponent = (x) => (x === 0 ? 0 : Number(x.toExponential().split("e")[1]));

  const significant = (value, digits = 4) => {
    if (value === 0) return "0";
    const rounded = Number(value.toPrecision(digits));
    return rounded.toFixed(Math.max(0, digits - 1 - exponent(rounded)));
  };
  const odd = (value) => (Number.isNaN(value) ? "–" : value > 0 ? "∞" : "−∞");
  const si = (value, unit = "", digits = 4) => {
    if (!Number.isFinite(value)) return odd(value);
    const power = Math.min(24, Math.max(-12, 3 * Math.floor(exponent(Number(value.toPrecision(digits))) / 3)));
    return `${significant(value / 10 ** power, digits)} ${PREFIX[power]}${unit}`.trimEnd();
  };
  const iec = (value, unit = "B", digits = 4) => {
    let power = 0;
    while (power < 8 && Math.abs(Number(significant(value / 1024 ** power, digits))) >= 1024) power += 1;
    return `${significant(value / 1024 ** power, digits)} ${["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"][power]}${unit}`.trimEnd();
  };
  const duration = (seconds, digits = 3) => {
    if (!Number.isFinite(seconds)) return odd(seconds);
    for (const [limit, size, unit] of [[3600, 60, "min"], [86400, 3600, "h"], [Infinity, 86400, "days"]]) {
      if (Math.abs(seconds) < 60) break;
      if (Math.abs(seconds) < limit) return `${significant(seconds / size, digits)} ${unit}`;
    }
    return si(seconds, "s", digits);
  };
  const count = (value) => (Number.isFinite(value) ? d3.format(Number.isInteger(value) ? "," : ",.3~g")(value) : odd(value));
  const number = (value, digits = 4) => (Number.isFinite(value) ? d3.format(`,.${digits}~r`)(value) : odd(value));
  const percent = (share, digits = 3) => `${number(100 * share, digits)}\u00a0%`;
  const money = (value, digits = 3) => {
    if (!Number.isFinite(value)) return odd(value);
    const rounded = Number(value.toPrecision(digits)), cents = Math.abs(rounded) >= 1 && !Number.isInteger(rounded);
    return `$${cents ? d3.format(",.2f")(rounded) : Math.abs(rounded) < 1 ? number(rounded, digits) : count(rounded)}`;
  };
  const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
  const format = { si, iec, duration, count, number, percent, money, plural, significant };

  const trimmed = (text) => text.replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");
  const shown = (control, value) => {
    if (control.kind !== "slider") return String(value);
    const unit = control.unit ? ` ${control.unit}` : "";
    switch (control.format) {
      case "si": return trimmed(si(value, control.unit));
      case "time": return duration(value);
      case "percent": return `${number(value, 3)} %`;
      case "money": return `${money(value)}${unit}`;
      case "number": return number(value) + unit;
      default: return count(value) + unit;
    }
  };

  // --- elements ---

  const HTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";
  const make = (space) => (tag, attributes = {}, ...children) => {
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== undefined && child !== null));
    return element;
  };
  const h = make(HTML), s = make(SVG);
  // In JupyterLab each widget brings its own copy of this script: their ids must differ too.
  const copy = Math.random().toString(36).slice(2, 7);
  let serial = 0;
  const unique = (stem) => `il-${copy}-${stem}-${(serial += 1)}`;
  const plain = (text) => text.replaceAll("**", "");
  const rich = (text) => text.split("**").map((part, i) => (i % 2 ? h("strong", {}, part) : part));

  // Width of a label before it is drawn.
  const ruler = (() => {
    let context;
    return (text, size = 12.5) => {
      context ??= document.createElement("canvas").getContext("2d");
      context.font = `500 ${size}px system-ui, sans-serif`;
      return context.measureText(text).width;
    };
  })();

  // --- controls ---

  // The stops of a slider, so that each key press moves to another sensible number.
  const stopsOf = (c) => {
    if (c.stops.length) return [...new Set([...c.stops, c.start])].sort((a, b) => a - b);
    const stops = new Set([c.low, c.high, c.start]);
    if (c.log) {
      const each = 24; // a decade, as in the E24 series of resistors
      for (let i = Math.ceil(each * Math.log10(c.low)); i <= each * Math.log10(c.high); i += 1) {
        const stop = Number((10 ** (i / each)).toPrecision(2));
        stops.add(c.integer ? Math.round(stop) : stop);
      }
    } else {
      const n = Math.round((c.high - c.low) / c.step);
      for (let i = 0; i <= n; i += 1) stops.add(Number((c.low + i * c.step).toPrecision(12)));
    }
    return [...stops].filter((x) => x >= c.low && x <= c.high).sort((a, b) => a - b);
  };
  const nearest = (stops, value, log) => {
    const distance = (x) => (log && x > 0 && value > 0 ? Math.abs(Math.log(x / value)) : Math.abs(x - value));
    let best = 0;
    stops.forEach((stop, i) => { if (distance(stop) < distance(stops[best])) best = i; });
    return best;
  };

  const slider = (c, act) => {
    const id = unique("slider"), stops = stopsOf(c);
    const input = h("input", { type: "range", id, min: 0, max: stops.length - 1, step: 1, "data-name": c.name });
    const output = h("output", { for: id });
    const head = h("div", { class: "il-head" }, h("label", { for: id }, c.label), output);
    const box = h("div", { class: "il-control il-slider" }, head, input);
    const help = describe(box, input, c);
    input.addEventListener("input", () => act({ [c.name]: stops[input.valueAsNumber] }));
    let stop = () => {};
    if (c.play) box.append(h("div", { class: "il-play" }, ...player(input, stops, c, act, (f) => { stop = f; })));
    return {
      box: help, name: c.name, stop: () => stop(), stops,
      show(value) {
        const i = nearest(stops, value, c.log), text = shown(c, value);
        if (input.valueAsNumber !== i) input.value = i;
        input.setAttribute("aria-valuetext", text);
        input.style.setProperty("--il-filled", `${(100 * i) / (stops.length - 1)}%`);
        output.textContent = text;
      },
    };
  };

  // Buttons that walk a slider stop by stop, and by themselves.
  const player = (input, stops, c, act, keep) => {
    let timer = null;
    const play = h("button", { type: "button", class: "il-button" }, "Play");
    const back = h("button", { type: "button", class: "il-button", "aria-label": `${c.label}: back` }, "‹ Back");
    const next = h("button", { type: "button", class: "il-button", "aria-label": `${c.label}: next` }, "Next ›");
    const halt = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
    const walk = (by) => {
      const i = Math.min(stops.length - 1, Math.max(0, input.valueAsNumber + by));
      input.value = i;
      act({ [c.name]: stops[i] });
      if (i === stops.length - 1) halt();
    };
    play.addEventListener("click", () => {
      if (timer !== null) return halt();
      if (input.valueAsNumber === stops.length - 1) { input.value = 0; act({ [c.name]: stops[0] }); }
      play.textContent = "Pause";
      timer = setInterval(() => (play.isConnected ? walk(1) : halt()), 1000 * c.play);
    });
    back.addEventListener("click", () => { halt(); walk(-1); });
    next.addEventListener("click", () => { halt(); walk(1); });
    input.addEventListener("input", halt);
    keep(halt);
    return [back, play, next];
  };

  const CUSTOM = "custom", PASTED = "pasted";
  const select = (c, act, moved, over) => {
    const id = unique("select");
    const custom = h("option", { value: CUSTOM, disabled: "" }, "custom"), pasted = h("option", { value: PASTED, disabled: "" });
    const input = h("select", { id, "data-name": c.name },
      ...Object.keys(c.options).map((name) => h("option", { value: name }, name)), ...(moved.length ? [custom] : []), ...(over ? [pasted] : []));
    const box = h("div", { class: "il-control" }, h("div", { class: "il-head" }, h("label", { for: id }, c.label)), input);
    const help = describe(box, input, c);
    input.addEventListener("change", () => {
      const own = c.options[input.value];
      act({ [c.name]: input.value, ...Object.fromEntries(moved.map((key) => [key, own[key]])), ...(over && { [over.name]: null }) }, true);
    });
    return {
      box: help, name: c.name,
      show(value, values) {
        const own = over && values[over.name];
        if (own) pasted.textContent = own.name;
        input.value = own ? PASTED : moved.every((key) => values[key] === c.options[value][key]) ? value : CUSTOM;
      },
    };
  };

  const toggle = (c, act) => {
    const id = unique("toggle");
    const input = h("input", { type: "checkbox", role: "switch", id, "data-name": c.name });
    const box = h("div", { class: "il-control il-toggle" }, h("label", { for: id }, input, h("span", {}, c.label)));
    const help = describe(box, input, c);
    input.addEventListener("change", () => act({ [c.name]: input.checked }, true));
    return { box: help, name: c.name, show(value) { input.checked = value; } };
  };

  // Text that `read` turns into numbers, which stand in for an option of the select named by c.over.
  const paste = (c, act, read) => {
    const id = unique("paste"), said = h("p", { class: "il-said", role: "status" });
    const input = h("textarea", { id, rows: 5, spellcheck: "false", autocomplete: "off", "data-name": c.name, "aria-label": c.label });
    const inside = h("div", {}, input), box = h("details", { class: "il-control il-paste" }, h("summary", {}, c.label), describe(inside, input, c));
    inside.append(said);
    const say = (text, wrong = false) => { said.textContent = text; said.classList.toggle("il-wrong", wrong); input.toggleAttribute("aria-invalid", wrong); };
    let last = null;
    input.addEventListener("input", () => {
      if (!input.value.trim()) { say(""); act({ [c.name]: null }, true); return; }
      let value;
      try { value = read(input.value); } catch (error) { say(error.message, true); return; }
      last = value;
      say(`Read: ${value.name}.`);
      act({ [c.name]: value }, true);
    });
    const clear = () => { input.value = ""; say(""); };
    return { box, name: c.name, clear, show(value) { if (last && !value) clear(); last = value; } };
  };

  const describe = (box, input, c) => {
    if (c.help) {
      const id = unique("help");
      input.setAttribute("aria-describedby", id);
      box.append(h("p", { class: "il-help", id }, c.help));
    }
    return box;
  };

  // --- charts ---

  const scaleOf = (axis, domain, range) =>
    (axis.log ? d3.scaleLog().base(axis.log === 2 ? 2 : 10) : d3.scaleLinear()).domain(domain).range(range).clamp(false);

  const tickText = (axis) => {
    const plainly = (v) => (Math.abs(v) >= 0.01 && Math.abs(v) < 1 ? d3.format("~g")(v) : d3.format("~s")(v).replace(/(\d)([a-zA-Zµ])$/, "$1 $2"));
    if (axis.ticks === "count") return (v) => d3.format(",~r")(v);
    if (axis.ticks === "percent") return (v) => `${d3.format("~g")(100 * v)} %`;
    if (axis.ticks === "unit") return (v) => (v === 0 ? "0" : `${d3.format("~s")(v).replace(/([a-zA-Zµ]?)$/, " $1")}${axis.unit}`);
    if (axis.log === 2) return (v) => (v >= 1 && v < 1e5 ? d3.format(",~r")(v) : plainly(v));
    return (v) => (v === 0 ? "0" : plainly(v));
  };

  const tickValues = (axis, scale, room) => {
    if (axis.values) return axis.values;
    const limit = Math.max(2, Math.floor(room));
    if (!axis.log) return scale.ticks(limit);
    const [low, high] = scale.domain(), base = axis.log === 2 ? 2 : 10, slack = 1e-9;
    const first = Math.ceil(Math.log(low) / Math.log(base) - slack), last = Math.floor(Math.log(high) / Math.log(base) + slack);
    const every = Math.ceil((last - first + 1) / limit) || 1;
    const powers = [];
    for (let p = first; p <= last; p += 1) if ((p - (base === 10 ? 0 : first)) % every === 0) powers.push(base ** p);
    if (base === 10 && last - first < 2) {
      const fine = scale.ticks(limit).filter((v) => [1, 2, 5].includes(Number(v.toExponential()[0])));
      if (fine.length > powers.length && fine.length <= limit + 1) return fine;
    }
    return powers.map((v) => Number(v.toPrecision(12)));
  };

  const sample = (f, [low, high], log, knots = []) => {
    const n = 160, points = [];
    const at = (t) => (log ? low * (high / low) ** t : low + (high - low) * t);
    const xs = [...Array.from({ length: n + 1 }, (_, i) => at(i / n)), ...knots.filter((k) => k > low && k < high)];
    for (const x of xs.sort((a, b) => a - b)) points.push([x, f(x)]);
    return points;
  };

  // A domain that holds the values, when the view names none.
  const fit = (values, axis) => {
    const good = values.filter((v) => Number.isFinite(v) && (!axis.log || v > 0));
    if (!good.length) return axis.log ? [1, 10] : [0, 1];
    const low = Math.min(...good), high = Math.max(...good);
    if (!axis.log) return d3.scaleLinear().domain([Math.min(0, low), high || 1]).nice(5).domain();
    return [low / 1.3, high * 1.6];
  };

  // Where each name beside a point goes: of the places around its point the one that covers the least
  // of the lines and of the names before it, and stays inside.
  const place = (names, lines, { left, right, top, bottom, width }) => {
    const dots = lines.flatMap((line) => line.slice(1).flatMap(([x1, y1], i) => {
      const [x0, y0] = line[i], n = Math.min(60, Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 5)) || 1;
      return Number.isFinite(x0 + y0 + x1 + y1) ? Array.from({ length: n }, (_, k) => [x0 + ((x1 - x0) * k) / n, y0 + ((y1 - y0) * k) / n]) : [];
    }));
    const taken = [];
    return names.map((m) => {
      const w = ruler(m.text, m.size), sides = m.left ? ["end", "start", "middle"] : ["start", "end", "middle"];
      const heights = m.below ? [m.gap + 10, -m.gap] : [-m.gap, m.gap + 10];
      let best = null;
      for (const [i, dy] of heights.entries()) for (const [j, anchor] of sides.entries()) {
        const tx = m.x + { start: m.gap - 1, end: 1 - m.gap, middle: 0 }[anchor], ty = m.y + dy + (anchor === "middle" ? Math.sign(dy) * 3 : 0);
        const x0 = tx - { start: 0, end: w, middle: w / 2 }[anchor], box = [x0 - 2, ty - 12, x0 + w + 2, ty + 4];
        const hits = dots.filter(([a, b]) => a > box[0] && a < box[2] && b > box[1] && b < box[3]).length;
        const over = taken.filter((t) => t[0] < box[2] && t[2] > box[0] && t[1] < box[3] && t[3] > box[1]).length;
        const out = Math.max(0, left - box[0]) + Math.max(0, box[2] - Math.max(right, width - 4)) + Math.max(0, top - 6 - box[1]) + Math.max(0, box[3] - bottom);
        const cost = hits + 40 * over + 4 * out + 2 * i + j;
        if (!best || cost < best.cost) best = { cost, box, anchor, at: [tx, ty] };
      }
      taken.push(best.box);
      return { ...m, ...best };
    });
  };

  const chart = (svg, spec, width, colours) => {
    const narrow = width < 520;
    const rows = spec.rows ?? (spec.bars ? spec.bars.map((bar) => bar.name) : null);
    const xAxis = spec.x ?? {}, yAxis = spec.y ?? {};
    const lines = (spec.lines ?? []).map((l) => ({ ...l }));
    const points = spec.points ?? [], areas = spec.areas ?? [], bars = spec.bars ?? [], spans = spec.spans ?? [];

    // Domains, and the room that labels need.
    const xDomain = xAxis.domain ?? fit([...lines.flatMap((l) => (l.points ?? []).map((p) => p[0])), ...points.map((p) => p.x),
      ...bars.map((b) => (b.parts ? b.parts.reduce((t, p) => t + p.value, 0) : b.value)), ...spans.map((x) => x.to)], xAxis);
    for (const l of lines) l.points ??= sample(l.y, xDomain, xAxis.log, l.knots);
    const bands = areas.map((a) => {
      const value = (y) => (typeof y === "function" ? y : () => y ?? 0);
      const tops = sample(value(a.y1), xDomain, xAxis.log, a.knots);
      return { ...a, points: tops.map(([x, y]) => [x, value(a.y0)(x), y]) };
    });
    const yDomain = rows ? [0, 1] : yAxis.domain ?? fit([...lines.flatMap((l) => l.points.map((p) => p[1])),
      ...points.map((p) => p.y), ...bands.flatMap((b) => b.points.map((p) => p[2]))], yAxis);

    const ends = lines.filter((l) => l.name && (l.at === undefined || l.at === null));
    const endRoom = Math.max(0, ...ends.map((l) => ruler(l.name))) + 12;
    const outside = !narrow && ends.length > 0 && endRoom < width * 0.24 && !rows;
    const rowRoom = rows ? Math.min(width * 0.36, Math.max(...rows.map((r) => ruler(r))) + 12) : 0;
    const barRoom = bars.length ? Math.max(...bars.map((b) => ruler(b.text ?? ""))) + 10 : 0;
    const rowHeight = spec.rowHeight ?? 34;
    const tall = rows ? rows.length * rowHeight + 56 : spec.height ?? Math.max(250, Math.min(400, width * 0.55));
    const yText = tickText(yAxis);
    const inner = (margin) => [tall - margin.bottom, margin.top];
    const margin = { top: rows ? 8 : yAxis.label ? 34 : 14, right: outside ? endRoom : Math.max(14, barRoom), bottom: xAxis.label ? 46 : 28, left: rowRoom };
    const y = scaleOf(yAxis, yDomain, inner(margin));
    const yTicks = rows ? [] : tickValues(yAxis, y, (tall - margin.top - margin.bottom) / (yAxis.log ? 44 : 54));
    if (!rows) margin.left = Math.max(30, ...yTicks.map((v) => ruler(yText(v), 12) + 14));
    const left = margin.left, right = width - margin.right, top = margin.top, bottom = tall - margin.bottom;
    const x = scaleOf(xAxis, xDomain, [left, right]);
    const xText = tickText(xAxis);

    const parts = [];
    const put = (...nodes) => parts.push(...nodes.filter(Boolean));
    const text = (words, attributes) => s("text", attributes, words);
    const halo = (words, attributes) => text(words, { ...attributes, class: `il-halo ${attributes.class ?? ""}` });
    const ink = (role) => `var(--il-${role ?? "total"})`;
    const paint = (role) => `var(--il-${role ?? "total"}-fill)`;
    const dashes = (l) => (l.dash === false ? null : (l.dash ?? colours[l.role]?.dash ?? []).map((v) => v * 1.5).join(" ") || null);
    const inside = (v, scale) => { const [a, b] = scale.range(); const p = scale(v); return Number.isFinite(p) && p >= Math.min(a, b) - 0.5 && p <= Math.max(a, b) + 0.5; };

    // Ground: grid, axes, their names.
    const clip = unique("clip");
    put(s("clipPath", { id: clip }, s("rect", { x: left, y: top - 4, width: Math.max(0, right - left), height: Math.max(0, bottom - top + 8) })));
    for (const v of yTicks) {
      put(s("line", { class: "il-grid", x1: left, x2: right, y1: y(v), y2: y(v) }));
      put(text(yText(v), { class: "il-tick", x: left - 8, y: y(v) + 4, "text-anchor": "end" }));
    }
    const widest = (values) => Math.max(...values.map((v) => ruler(xText(v), 12)));
    let xTicks = xAxis.hidden ? [] : tickValues(xAxis, x, (right - left) / 72);
    while (xTicks.length > 2 && (right - left) / xTicks.length < widest(xTicks) + 16) xTicks = xTicks.filter((_, i) => i % 2 === 0);
    for (const v of xTicks) {
      const px = x(v);
      if (rows || xAxis.grid !== false) put(s("line", { class: "il-grid", x1: px, x2: px, y1: top, y2: bottom }));
      put(s("line", { class: "il-axis", x1: px, x2: px, y1: bottom, y2: bottom + 5 }));
      const word = xText(v), half = ruler(word, 12) / 2;
      put(text(word, { class: "il-tick", x: Math.min(px, width - half - 1), y: bottom + 19, "text-anchor": "middle" }));
    }
    if (!xAxis.hidden) put(s("line", { class: "il-axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    const unitOf = (axis) => (axis.unit && axis.ticks !== "unit" ? `, ${axis.unit}` : "");
    if (xAxis.label) put(text(xAxis.label + unitOf(xAxis), { class: "il-name", x: right, y: bottom + 40, "text-anchor": "end" }));
    if (yAxis.label && !rows) put(text(yAxis.label + unitOf(yAxis), { class: "il-name", x: 0, y: 14 }));

    // Shaded ranges, areas, guides, lines.
    const body = s("g", { "clip-path": `url(#${clip})` });
    put(body);
    for (const range of spec.ranges ?? []) {
      const a = Math.max(left, x(range.x[0])), b = Math.min(right, x(range.x[1]));
      if (!(b > a)) continue;
      body.append(s("rect", { class: "il-range", x: a, y: top, width: b - a, height: bottom - top, style: `fill:${paint(range.role)}` }));
      if (range.name && b - a > ruler(range.name) + 8) put(text(range.name, { class: "il-label", x: (a + b) / 2, y: top + 16, "text-anchor": "middle", style: `fill:${ink(range.role)}` }));
    }
    for (const a of bands) {
      const path = d3.area().x((p) => x(p[0])).y0((p) => y(p[1])).y1((p) => y(p[2])).defined((p) => p.every(Number.isFinite));
      body.append(s("path", { class: "il-area", d: path(a.points) ?? "", style: `fill:${paint(a.role)}` }));
      if (a.name) {
        const at = a.points[Math.round((a.points.length - 1) * (a.at ?? 0.8))], gap = y(at[1]) - y(at[2]);
        if (gap > 18) put(halo(a.name, { class: "il-label", x: x(at[0]), y: (y(at[1]) + y(at[2])) / 2 + 4, "text-anchor": "middle", style: `fill:${ink(a.role)}` }));
      }
    }
    const rules = [];
    for (const r of spec.rules ?? []) {
      const role = r.role ?? "muted", style = `stroke:${ink(role)}`;
      if (r.x !== undefined && inside(r.x, x)) {
        const px = x(r.x), flip = px + ruler(r.text ?? "") + 8 > right;
        body.append(s("line", { class: "il-rule", x1: px, x2: px, y1: top, y2: bottom, style }));
        if (r.text) {
          const low = r.place === "bottom";
          rules.push(halo(r.text, { class: "il-label il-small", x: px + (flip ? -6 : 6), y: low ? bottom - 8 : top + 10, "text-anchor": flip ? "end" : "start", style: `fill:${ink(role)}` }));
        }
      }
      if (r.y !== undefined && inside(r.y, y)) {
        body.append(s("line", { class: "il-rule", x1: left, x2: right, y1: y(r.y), y2: y(r.y), style }));
        const start = r.place === "left";
        if (r.text) rules.push(halo(r.text, { class: "il-label il-small", x: start ? left + 6 : right - 4, y: y(r.y) - 6, "text-anchor": start ? "start" : "end", style: `fill:${ink(role)}` }));
      }
    }
    const path = d3.line().x((p) => x(p[0])).y((p) => y(p[1])).defined((p) => Number.isFinite(y(p[1])) && Number.isFinite(x(p[0])));
    const named = []; // names beside a point, placed last, where they cover least
    const labels = [], legend = []; // names at the ends of lines; without room for them, a legend
    for (const l of lines) {
      body.append(s("path", { class: `il-line${l.faint ? " il-faint" : ""}`, d: path(l.points) ?? "", "stroke-dasharray": dashes(l), style: `stroke:${ink(l.role)}` }));
      if (!l.name) continue;
      const visible = l.points.filter((p) => inside(p[0], x) && inside(p[1], y));
      if (!visible.length) continue;
      if (l.at !== undefined && l.at !== null) {
        const p = visible[Math.min(visible.length - 1, Math.round((visible.length - 1) * l.at))];
        named.push({ x: x(p[0]), y: y(p[1]), text: l.name, role: l.role, gap: 6, size: 12.5 });
        continue;
      }
      const p = visible[visible.length - 1], px = x(p[0]), atEnd = px > right - 3;
      if (!outside) legend.push(l);
      else if (atEnd) labels.push({ x: right + 8, y: y(p[1]) + 4, anchor: "start", l, free: true });
      else labels.push({ x: px - 8, y: Math.max(y(p[1]), top) + 4, anchor: "end", l, free: true });
    }
    // Labels at line ends move apart until none covers another.
    for (const anchor of ["start", "end"]) {
      const group = labels.filter((m) => m.free && m.anchor === anchor).sort((a, b) => a.y - b.y);
      for (let i = 1; i < group.length; i += 1) group[i].y = Math.max(group[i].y, group[i - 1].y + 16);
      for (let i = group.length - 1, floor = bottom - 4; i >= 0; i -= 1) { group[i].y = Math.min(group[i].y, floor); floor = group[i].y - 16; }
    }
    for (const m of labels) {
      const x0 = m.anchor === "start" ? m.x : Math.max(m.x, left + (m.anchor === "end" ? ruler(m.l.name) : ruler(m.l.name) / 2));
      put(halo(m.l.name, { class: "il-label", x: x0, y: m.y, "text-anchor": m.anchor, style: `fill:${ink(m.l.role)}` }));
    }
    put(...rules);

    // Rows: bars and spans.
    if (rows) {
      const band = d3.scaleBand().domain(rows).range([top, bottom]).paddingInner(0.3).paddingOuter(0.15);
      for (const name of rows) put(text(name, { class: "il-row", x: left - 10, y: band(name) + band.bandwidth() / 2 + 4, "text-anchor": "end" }));
      for (const bar of bars) {
        let from = xAxis.log ? xDomain[0] : 0;
        const pieces = bar.parts ?? [{ value: bar.value, role: bar.role }];
        for (const piece of pieces) {
          const to = from + piece.value, x0 = Math.min(x(from), right), x1 = Math.min(x(to), right);
          put(s("rect", { class: "il-bar", x: x0, y: band(bar.name), width: Math.max(0, x1 - x0), height: band.bandwidth(), style: `fill:${paint(piece.role)}`, opacity: bar.faint ? 0.35 : null }));
          if (piece.name && x1 - x0 > ruler(piece.name, 12) + 10) put(text(piece.name, { class: "il-onbar", x: (x0 + x1) / 2, y: band(bar.name) + band.bandwidth() / 2 + 4, "text-anchor": "middle" }));
          from = to;
        }
        if (bar.text) put(halo(bar.text, { class: "il-label il-value", x: Math.min(x(from), right) + 6, y: band(bar.name) + band.bandwidth() / 2 + 4 }));
      }
      for (const span of spans) {
        const x0 = Math.max(left, x(span.from)), x1 = Math.min(right, x(span.to));
        if (!(x1 > x0)) continue;
        put(s("rect", { class: "il-bar il-span", x: x0, y: band(span.row), width: Math.max(1, x1 - x0 - 0.5), height: band.bandwidth(), rx: 2, style: `fill:${paint(span.role)}`, opacity: span.faint ? 0.3 : null }));
        if (span.text && x1 - x0 > ruler(span.text, 12) + 8) put(text(span.text, { class: "il-onbar", x: (x0 + x1) / 2, y: band(span.row) + band.bandwidth() / 2 + 4, "text-anchor": "middle" }));
      }
    }

    // Points, each with drop lines and a name that keeps inside.
    for (const p of points) {
      if (!inside(p.x, x)) continue;
      const px = x(p.x), py = Math.min(bottom, Math.max(top, y(p.y)));
      if (!Number.isFinite(py)) continue;
      if (p.drop?.includes("x")) body.append(s("line", { class: "il-drop", x1: px, x2: px, y1: py, y2: bottom, style: `stroke:${ink(p.role)}` }));
      if (p.drop?.includes("y")) body.append(s("line", { class: "il-drop", x1: left, x2: px, y1: py, y2: py, style: `stroke:${ink(p.role)}` }));
      put(s("circle", { class: `il-point${p.small ? " il-minor" : ""}`, cx: px, cy: py, r: p.small ? 4 : 6.5, style: `fill:${ink(p.role)}` }));
      if (p.text) named.push({ x: px, y: py, text: p.text, role: p.role, below: p.below, left: p.side === "left", gap: 10, size: p.small ? 12 : 13.8, style: p.small ? "il-small" : "il-strong" });
    }
    place(named, lines.map((l) => l.points.map((p) => [x(p[0]), y(p[1])])), { left, right, top, bottom, width }).forEach((m) =>
      put(halo(m.text, { class: `il-label ${m.style ?? ""}`, x: m.at[0], y: m.at[1], "text-anchor": m.anchor, style: `fill:${ink(m.role)}` })));

    svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", tall);
    svg.replaceChildren(...parts);
    const keys = legend.map((l) => h("span", {}, s("svg", { width: 24, height: 8, "aria-hidden": "true" },
      s("line", { class: `il-line${l.faint ? " il-faint" : ""}`, x1: 1, x2: 23, y1: 4, y2: 4, "stroke-dasharray": dashes(l), style: `stroke:${ink(l.role)}` })), l.name));
    return { invert: (px) => x.invert(Math.min(right, Math.max(left, px))), keys };
  };

  // --- the look ---

  const css = (roles) => {
    const colours = (ground) => Object.entries(roles).map(([name, role]) => `--il-${name}:${role[ground]};--il-${name}-fill:${role.fill}`).join(";");
    const dark = ['html[data-theme="dark"] .il', '[data-jp-theme-light="false"] .il', ".vscode-dark .il"].join(",");
    return `
.il{${colours("light")};--il-ground:var(--pst-color-background,var(--jp-layout-color0,#fff));--il-text:var(--pst-color-text-base,var(--jp-content-font-color1,#1f2328));
--il-quiet:color-mix(in srgb,var(--il-text) 68%,var(--il-ground));--il-hair:color-mix(in srgb,var(--il-text) 13%,var(--il-ground));--il-accent:var(--pst-color-primary,var(--jp-brand-color1,#0068a5));
color:var(--il-text);background:var(--il-ground);border:1px solid var(--il-hair);border-radius:10px;padding:1.1rem 1.25rem 1rem;margin:1.25rem 0;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",Arial,sans-serif;font-size:15px;line-height:1.45;box-sizing:border-box;max-width:100%;overflow:clip}
${dark}{${colours("dark")}}
.il *{box-sizing:border-box}
.il-top{display:flex;align-items:baseline;justify-content:space-between;gap:1rem;margin-bottom:.85rem}
.il-title{font-weight:650;font-size:1.05em;margin:0;letter-spacing:-.005em}
.il-button{font:inherit;font-size:.86em;color:var(--il-quiet);background:none;border:1px solid var(--il-hair);border-radius:6px;padding:.2rem .7rem;min-height:30px;cursor:pointer;white-space:nowrap}
.il-button:hover{color:var(--il-text);border-color:var(--il-quiet)}
.il :is(button,select,input,textarea,summary):focus-visible{outline:2px solid var(--il-accent);outline-offset:2px}
.il-controls{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,185px),1fr));gap:.9rem 1.6rem;align-items:start;margin-bottom:1rem}
.il-head{display:flex;justify-content:space-between;align-items:baseline;gap:.6rem;font-size:.9em}
.il-head label{color:var(--il-quiet);margin:0}
.il-head output{font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}
.il-head{flex-wrap:wrap;row-gap:0}
.il-help{font-size:.82em;color:var(--il-quiet);margin:.15rem 0 0}
.il select{font:inherit;font-size:.93em;width:100%;min-height:34px;padding:.25rem 1.9rem .25rem .6rem;margin-top:.25rem;color:var(--il-text);border:1px solid color-mix(in srgb,var(--il-text) 30%,var(--il-ground));border-radius:6px;appearance:none;text-overflow:ellipsis;
background:var(--il-ground) linear-gradient(45deg,transparent 50%,var(--il-quiet) 50%) no-repeat calc(100% - 16px) 55%/5px 5px;background-image:linear-gradient(45deg,transparent 50%,var(--il-quiet) 50%),linear-gradient(-45deg,transparent 50%,var(--il-quiet) 50%);background-position:calc(100% - 16px) 55%,calc(100% - 11px) 55%;background-size:5px 5px;background-repeat:no-repeat}
.il select option{color:var(--il-text);background:var(--il-ground)}
.il input[type=range]{appearance:none;width:100%;height:34px;margin:0;background:none;cursor:pointer;touch-action:pan-y;display:block}
.il input[type=range]::-webkit-slider-runnable-track{height:4px;border-radius:2px;background:linear-gradient(to right,var(--il-accent) var(--il-filled,0%),color-mix(in srgb,var(--il-text) 22%,var(--il-ground)) 0)}
.il input[type=range]::-moz-range-track{height:4px;border-radius:2px;background:color-mix(in srgb,var(--il-text) 22%,var(--il-ground))}
.il input[type=range]::-moz-range-progress{height:4px;border-radius:2px;background:var(--il-accent)}
.il input[type=range]::-webkit-slider-thumb{appearance:none;width:18px;height:18px;margin-top:-7px;border-radius:50%;background:var(--il-ground);border:2.5px solid var(--il-accent);transition:transform .12s}
.il input[type=range]::-moz-range-thumb{width:13px;height:13px;border-radius:50%;background:var(--il-ground);border:2.5px solid var(--il-accent)}
.il input[type=range]:active::-webkit-slider-thumb{transform:scale(1.15)}
.il-play{display:flex;gap:.5rem}
.il-paste{grid-column:1/-1;font-size:.93em}
.il-paste summary{cursor:pointer;min-height:34px;padding:.4rem 0;color:var(--il-quiet)}
.il textarea{display:block;width:100%;box-sizing:border-box;font:12.5px/1.4 ui-monospace,monospace;padding:.5rem .6rem;resize:vertical;color:var(--il-text);background:var(--il-ground);border:1px solid color-mix(in srgb,var(--il-text) 30%,var(--il-ground));border-radius:6px}
.il-said{margin:.3rem 0 0}
.il-said:empty{margin:0}
.il-said.il-wrong{padding-left:.6rem;border-left:3px solid var(--il-compute-fill)}
.il-toggle label{display:flex;align-items:center;gap:.6rem;min-height:44px;cursor:pointer;margin:0;font-size:.93em}
.il-toggle input{appearance:none;flex:none;width:34px;height:20px;border-radius:10px;margin:0;background:color-mix(in srgb,var(--il-text) 45%,var(--il-ground));position:relative;cursor:pointer;transition:background .15s}
.il-toggle input::after{content:"";position:absolute;left:3px;top:3px;width:14px;height:14px;border-radius:50%;background:var(--il-ground);transition:transform .15s}
.il-toggle input:checked{background:var(--il-accent)}
.il-toggle input:checked::after{transform:translateX(14px)}
.il-sentence{margin:0 0 .9rem;padding:.1rem 0 .1rem .8rem;border-left:3px solid var(--il-accent);font-size:1em;min-height:2.9em;text-wrap:pretty}
.il-sentence strong{white-space:nowrap;font-weight:650;font-variant-numeric:tabular-nums}
.il-chart{margin:0 0 .4rem}
.il-chart>svg{display:block;max-width:100%;touch-action:pan-y;overflow:visible}
.il-chart-title{font-size:.92em;font-weight:600;margin:.6rem 0 .2rem}
.il-legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:0 0 .35rem;font-size:.86em}
.il-legend span{display:inline-flex;align-items:center;gap:.4rem}
.il [hidden]{display:none!important}
.il-drag>svg{cursor:ew-resize}
.il text{font-family:inherit;font-size:12.5px;fill:var(--il-text)}
.il .il-tick{font-size:12px;fill:var(--il-quiet);font-variant-numeric:tabular-nums}
.il .il-name{font-size:12.5px;fill:var(--il-quiet);font-weight:500}
.il .il-row{font-size:13px}
.il .il-label{font-weight:500}
.il .il-strong{font-weight:650;font-size:13px}
.il .il-small{font-size:12px;font-weight:450}
.il .il-value{font-variant-numeric:tabular-nums;font-weight:600}
.il .il-onbar{fill:#14181e;font-size:12px;font-weight:550}
.il-halo{paint-order:stroke;stroke:var(--il-ground);stroke-width:4px;stroke-linejoin:round}
.il-grid{stroke:var(--il-hair);stroke-width:1;shape-rendering:crispEdges}
.il-axis{stroke:color-mix(in srgb,var(--il-text) 45%,var(--il-ground));stroke-width:1;shape-rendering:crispEdges}
.il-line{fill:none;stroke-width:2.6;stroke-linecap:round;stroke-linejoin:round}
.il-line[stroke-dasharray]{stroke-linecap:butt}
.il-faint{opacity:.4;stroke-width:1.6}
.il-area{opacity:.34}
.il-range{opacity:.09}
.il-rule{stroke-width:1.2;stroke-dasharray:4 4}
.il-drop{stroke-width:1.2;stroke-dasharray:1.5 4;stroke-linecap:round;opacity:.8}
.il-point{stroke:var(--il-ground);stroke-width:2.5}
.il-minor{stroke-width:1.5}
.il dl.il-facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:0 1.2rem;margin:.8rem 0 0!important;padding-top:.1rem;border-top:1px solid var(--il-hair)}
.il-facts div{display:grid;grid-row:span 3;grid-template-rows:subgrid;align-content:start;min-width:0;margin-top:.7rem}
.il .il-facts :is(dt,dd){float:none;width:auto}
.il .il-facts dt{font-size:.82em;font-weight:400;color:var(--il-quiet);margin:0;display:flex;align-items:flex-start;gap:.4rem;line-height:1.3}
.il-facts dt i{flex:none;width:9px;height:9px;border-radius:2px;margin-top:.28em}
.il .il-facts dd{font-size:1.12em;font-weight:600;font-variant-numeric:tabular-nums;margin:.05rem 0 0!important;letter-spacing:-.01em}
.il .il-facts dd.il-note{font-size:.82em;font-weight:400;color:var(--il-quiet);line-height:1.3;letter-spacing:0}
.il .il-table{overflow-x:auto;margin:.8rem 0 0}
.il .il-table table{border-collapse:collapse;width:100%;font-size:.9em;font-variant-numeric:tabular-nums}
.il .il-table th,.il .il-table td{padding:.35rem .6rem;text-align:right;border-bottom:1px solid var(--il-hair);white-space:nowrap}
.il .il-table th{white-space:normal!important;vertical-align:bottom}
.il .il-table :is(th,td):first-child{text-align:left;padding-left:0}
.il .il-table th{font-weight:500;color:var(--il-quiet)}
@media (max-width:480px){.il .il-table table{font-size:.82em}.il .il-table :is(th,td){padding:.3rem .3rem}.il-many{grid-template-columns:1fr 1fr;gap:.6rem 1rem}.il-many .il-head{flex-direction:column}.il{padding:.9rem .85rem .8rem;border-radius:8px}.il-sentence{min-height:4.3em}.il-many+.il-sentence{position:sticky;bottom:0;z-index:2;background:var(--il-ground);box-shadow:0 -.5rem .5rem -.3rem var(--il-ground),0 .5rem 0 var(--il-ground)}.il dl.il-facts{grid-template-columns:repeat(auto-fit,minmax(118px,1fr))}}
@media (prefers-reduced-motion:reduce){.il *{transition:none!important}}
@media print{.il-button,.il input[type=range]{display:none}}
`;
  };

  const dress = (element, roles) => {
    const root = element.getRootNode(), home = root.head ?? (root === element ? element : root);
    if (!home.querySelector?.("style[data-inferlab]")) home.append(Object.assign(h("style", { "data-inferlab": "" }), { textContent: css(roles) }));
  };

  // --- a widget ---

  const environment = (controls, values) => {
    const seen = {};
    for (const c of controls) if (c.kind === "select") Object.assign(seen, c.options[values[c.name]], { [c.name]: values[c.name] });
    for (const c of controls) if (c.kind === "paste" && values[c.name]) Object.assign(seen, values[c.name], { [c.over]: values[c.name].name });
    for (const c of controls) {
      if (c.kind === "slider") seen[c.name] = values[c.name];
      if (c.kind === "toggle") seen[c.name] = values[c.name] ? 1 : 0;
    }
    return seen;
  };

  // Everything that a view needs to draw one moment; pure, so that tests can call it without a page.
  const scene = ({ formulas, view }, v, data) => {
    const f = Object.fromEntries(Object.entries(formulas).map(([name, formula]) => [name, (changes) => formula(changes ? { ...v, ...changes } : v)]));
    const along = (name, key) => (x) => formulas[name]({ ...v, [key]: x });
    return view({ v, f, along, data, format });
  };

  const between = (from, to, t) => {
    const now = { ...to };
    for (const [key, end] of Object.entries(to)) {
      const begin = from[key];
      if (typeof begin !== "number" || typeof end !== "number" || begin === end) continue;
      now[key] = begin > 0 && end > 0 ? begin * (end / begin) ** t : begin + (end - begin) * t;
    }
    return now;
  };

  const explorer = ({ formulas, view, roles, read }) => ({
    formulas,
    view,
    read,
    render({ model, el }) {
      const { title, controls, data } = model.get("spec");
      const start = { ...model.get("values") };
      const sliders = new Set(controls.filter((c) => c.kind === "slider").map((c) => c.name));
      const moves = (c) => Object.keys(Object.values(c.options)[0]).filter((key) => sliders.has(key));
      let values = { ...start }, drawn = environment(controls, values), frame = 0, quiet = 0, width = 0;

      const act = (changes, glide = false) => {
        values = { ...values, ...changes };
        model.set("values", values);
        model.save_changes();
        update(glide);
      };
      const over = (c) => controls.find((other) => other.kind === "paste" && other.over === c.name);
      const build = { slider: (c) => slider(c, act), select: (c) => select(c, act, moves(c), over(c)), toggle: (c) => toggle(c, act), paste: (c) => paste(c, act, read) };
      const built = controls.map((c) => build[c.kind](c));
      const reset = h("button", { type: "button", class: "il-button il-reset" }, "Reset");
      reset.addEventListener("click", () => { built.forEach((b) => { b.stop?.(); b.clear?.(); }); act(start, true); });

      const sentence = h("p", { class: "il-sentence", "aria-live": "polite", "aria-atomic": "true" });
      const charts = h("div", { class: "il-charts" }), facts = h("dl", { class: "il-facts" }), table = h("div", { class: "il-table" });
      const name = unique("title");
      const root = h("section", { class: "il", "aria-labelledby": name },
        h("div", { class: "il-top" }, h("p", { class: "il-title", id: name }, title), reset),
        h("div", { class: `il-controls${built.length > 4 ? " il-many" : ""}` }, ...built.map((b) => b.box)), sentence, charts, facts, table);
      el.append(root);
      dress(el, roles);

      const figures = []; // one per chart: its box, its svg and how to read x off the pointer
      const figureFor = (i) => {
        if (figures[i]) return figures[i];
        const svg = s("svg", { role: "img" }), caption = h("p", { class: "il-chart-title" }), legend = h("p", { class: "il-legend" });
        const figure = { box: h("div", { class: "il-chart" }, caption, legend, svg), svg, caption, legend, read: null, control: null };
        const drag = (event) => {
          const control = built.find((b) => b.name === figure.control);
          if (!control || !(event.buttons & 1)) return;
          const at = figure.read.invert(event.clientX - svg.getBoundingClientRect().left);
          act({ [figure.control]: control.stops[nearest(control.stops, at, true)] });
        };
        svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture?.(event.pointerId); drag(event); });
        svg.addEventListener("pointermove", drag);
        charts.append(figure.box);
        return (figures[i] = figure);
      };

      const draw = (v, settled) => {
        const out = scene({ formulas, view }, v, data);
        const list = out.charts ?? (out.chart ? [out.chart] : []);
        list.forEach((spec, i) => {
          const figure = figureFor(i);
          figure.box.hidden = false;
          figure.caption.hidden = !spec.title;
          figure.caption.textContent = spec.title ?? "";
          figure.control = spec.x?.control ?? null;
          figure.box.classList.toggle("il-drag", Boolean(figure.control));
          if (settled) figure.svg.setAttribute("aria-label", spec.label ?? `${title}. ${plain(out.sentence ?? "")}`);
          figure.read = chart(figure.svg, spec, width, roles);
          figure.legend.hidden = figure.read.keys.length < 2;
          figure.legend.replaceChildren(...figure.read.keys);
        });
        figures.slice(list.length).forEach((figure) => { figure.box.hidden = true; });
        facts.hidden = !out.facts?.length;
        facts.replaceChildren(...(out.facts ?? []).map((fact) => h("div", {},
          h("dt", {}, fact.role ? h("i", { style: `background:var(--il-${fact.role}-fill)` }) : null, fact.label),
          h("dd", {}, fact.value), fact.note ? h("dd", { class: "il-note" }, fact.note) : null)));
        table.hidden = !out.table;
        if (out.table) {
          table.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...out.table.head.map((x) => h("th", { scope: "col" }, x)))),
            h("tbody", {}, ...out.table.rows.map((row) => h("tr", {}, ...row.map((x) => h("td", {}, x)))))));
          table.toggleAttribute("tabindex", table.scrollWidth > table.clientWidth); // so that keys can scroll it
        }
        if (settled) {
          // Screen readers wait while the reader is still moving.
          sentence.setAttribute("aria-busy", "true");
          sentence.replaceChildren(...rich(out.sentence ?? ""));
          sentence.hidden = !out.sentence;
          clearTimeout(quiet);
          quiet = setTimeout(() => sentence.setAttribute("aria-busy", "false"), 350);
        }
      };

      const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
      const update = (glide) => {
        for (const b of built) b.show(values[b.name], values);
        root.dataset.values = JSON.stringify(values);
        const goal = environment(controls, values), from = drawn;
        cancelAnimationFrame(frame);
        if (!width) return;
        if (!glide || still()) { drawn = goal; draw(goal, true); return; }
        const begin = performance.now(), length = 380;
        const tick = (now) => {
          const t = Math.min(1, Math.max(0, (now - begin) / length)), eased = t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2;
          drawn = t < 1 ? between(from, goal, eased) : goal;
          draw(drawn, t === 1);
          if (t < 1) frame = requestAnimationFrame(tick);
        };
        frame = requestAnimationFrame(tick);
      };

      const measure = () => {
        const now = Math.floor(charts.clientWidth);
        if (now > 0 && now !== width) { width = now; update(false); }
      };
      const watch = new ResizeObserver(measure);
      watch.observe(charts);
      measure();
      update(false);
      const follow = () => {
        const theirs = model.get("values");
        if (theirs !== values) { values = { ...theirs }; update(false); }
      };
      model.on("change:values", follow);
      return () => {
        watch.disconnect();
        cancelAnimationFrame(frame);
        clearTimeout(quiet);
        built.forEach((b) => b.stop?.());
        model.off("change:values", follow);
      };
    },
  });

  return { explorer, scene, environment, format, stopsOf };
})();
