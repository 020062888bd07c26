/* Runs the widgets of a published page, where no kernel answers. The page carries the state of each
   widget as JSON, its ES module included; this script gives that module a model to read and write,
   as anywidget would (https://anywidget.dev/en/afm), and an element to draw in.
   Messages to Python have nobody to reach: a widget that sends them does not belong on a page. */
(() => {
  "use strict";
  const KIND = "application/vnd.jupyter.widget-";

  // A widget's state with change events, as much of Backbone's model as anywidget promises.
  const makeModel = (state) => {
    const listeners = new Map();
    const emit = (name, ...args) => [...(listeners.get(name) ?? [])].forEach((listener) => listener(...args));
    const model = {
      get: (name) => state[name],
      set(name, value) {
        const changes = typeof name === "object" ? name : { [name]: value };
        const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
        Object.assign(state, changes);
        changed.forEach((key) => emit(`change:${key}`, model, state[key]));
        if (changed.length) emit("change", model);
      },
      on(names, listener) {
        for (const name of names.split(/\s+/)) listeners.set(name, [...(listeners.get(name) ?? []), listener]);
      },
      off(names, listener) {
        for (const name of names ? names.split(/\s+/) : [...listeners.keys()]) {
          listeners.set(name, listener ? (listeners.get(name) ?? []).filter((one) => one !== listener) : []);
        }
      },
      save_changes() {},
      send() {},
    };
    return model;
  };

  // Two widgets of one class have the same module text: it is evaluated once.
  const modules = new Map();
  const load = (source) => {
    if (!modules.has(source)) {
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      modules.set(source, import(url).then(({ default: made }) => (typeof made === "function" ? made() : made)));
    }
    return modules.get(source);
  };

  const readJson = (kind) => [...document.querySelectorAll(`script[type="${KIND}${kind}+json"]`)]
    .map((script) => ({ script, content: JSON.parse(script.textContent) }));

  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

  const readModels = () => {
    const models = new Map();
    for (const { content } of readJson("state")) {
      for (const [id, { state, buffers = [], model_module: origin }] of Object.entries(content.state)) {
        for (const { path, data } of buffers) path.slice(0, -1).reduce((part, key) => part[key], state)[path.at(-1)] = bytes(data);
        models.set(id, { model: makeModel(state), origin, initialised: null });
      }
    }
    return models;
  };

  const show = async (entry, view) => {
    const { model } = entry, place = document.createElement("div");
    const stand = view.nextElementSibling?.matches(".widget-fallback") ? view.nextElementSibling : null;
    place.className = "anywidget-static";
    view.after(place);
    try {
      if (entry.origin !== "anywidget") throw new Error(`${entry.origin} needs a kernel: use an anywidget on a page`);
      const css = model.get("_css");
      if (css) place.append(Object.assign(document.createElement("style"), { textContent: css }));
      const el = place.appendChild(document.createElement("div"));
      const widget = await load(model.get("_esm"));
      entry.initialised ??= Promise.resolve(widget.initialize?.({ model, experimental: {} }));
      await entry.initialised;
      stand?.remove(); // first, so that the widget measures the width that it will have
      await widget.render?.({ model, el, experimental: {} });
      place.dataset.ready = "true";
    } catch (error) {
      console.error(error);
      place.replaceChildren("This widget did not start; the values above are its first ones.");
      if (stand) place.before(stand);
      else place.textContent = "This widget needs a running kernel: open the notebook to use it.";
    }
  };

  const start = async () => {
    const models = readModels();
    for (const { script, content } of readJson("view")) {
      const entry = models.get(content.model_id);
      if (entry) await show(entry, script);
    }
    document.documentElement.dataset.widgets = "ready";
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
