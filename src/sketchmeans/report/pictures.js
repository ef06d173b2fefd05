// Draws samples, in their features and in the embedding. Text from the data goes into text nodes
// only.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("samples").textContent);
  const count = data.cluster.length;
  const scale = Math.min(1.1, Math.max(0.5, 2.2 / Math.pow(count / 60, 0.3)));
  const LETTER = 7.6; // the width of a digit, about
  const chosen = new Set(); // clusters that are pressed in the legend
  let hovered = null; // the cluster whose button is pointed at
  const pictures = [];

  function svg(name, attributes, parent) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.appendChild(element);
    return element;
  }

  function html(name, text, parent) {
    const element = document.createElement(name);
    if (text !== null) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  const lookOf = (cluster) => data.looks[cluster % data.looks.length];
  function mark(cluster, parent) {
    const [colour, shape] = lookOf(cluster);
    return svg("path", { class: `mark c${colour}`, d: data.marks[shape] }, parent);
  }
  const lit = (cluster) =>
    (chosen.size === 0 && hovered === null) || chosen.has(cluster) || hovered === cluster;
  const visible = (index) => lit(data.cluster[index]);

  function shaken(feature) {
    // The same in every browser and at every visit: a hash of the sample and the feature.
    const by = data.shakes[feature];
    if (!by) return data.values[feature];
    return data.values[feature].map((value, index) => {
      let h = Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(feature + 1, 0x85ebca6b);
      h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
      h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
      return value === null ? null : value + by * (((h ^ (h >>> 15)) >>> 0) / 0x80000000 - 1);
    });
  }

  function range(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return low <= high ? [low, high] : [0, 1];
  }

  function ticks(low, high, most) {
    const rough = (high - low) / most;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
    const digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
    const far = Math.max(Math.abs(low), Math.abs(high));
    const all = Math.max(0, Math.min(12, Math.floor(Math.log10(far / step) + 1e-9)));
    const words = (value) => value && (far >= 1e6 || far < 1e-4)
      ? value.toExponential(all).replace(/\.?0*e\+?/, "e") : value.toFixed(value ? digits : 0);
    return found.map((value) => [value, words(value).replaceAll("-", "−")]);
  }

  function ticksThatFit(low, high, room) {
    for (let most = 6; most > 1; most--) {
      const found = ticks(low, high, most);
      const longest = Math.max(0, ...found.map(([, words]) => words.length));
      if (found.length * (longest * LETTER + 12) < room || most === 2) return found;
    }
  }

  function tell(tip, index) {
    tip.replaceChildren();
    const head = html("strong", null, tip);
    const swatch = svg("svg", { class: "swatch", viewBox: "-6 -6 12 12", "aria-hidden": "true" }, head);
    mark(data.cluster[index], swatch);
    html("span", data.id[index], head);
    const body = html("tbody", null, html("table", null, tip));
    const line = (name, value) => {
      const row = html("tr", null, body);
      html("th", name, row);
      html("td", value, row);
    };
    line("cluster", data.cluster[index]);
    if (data.truth) line("true label", data.truth.names[data.truth.of[index]]);
    for (const text of data.texts) line(text.name, text.names[text.of[index]]);
    data.features.forEach((name, feature) => {
      const value = data.values[feature][index];
      if (!data.indicators.includes(feature)) line(name, value === null ? "missing" : value);
    });
  }

  function pointAll(index, picture) {
    for (const one of pictures) one.point(index, one === picture);
  }

  function makePicture(setup) {
    const figure = document.getElementById(setup.id);
    const plot = figure.querySelector(".plot");
    const tip = figure.querySelector(".tip");
    const axisOf = (axis) => "feature" in axis
      ? { name: data.features[axis.feature], at: shaken(axis.feature) } : axis;
    const all = setup.axes.map(axisOf);
    const size = { width: 0, height: 0, left: 0, right: 8, top: 8, bottom: 44 };
    const inner = { width: 0, height: 0 };
    let axes = setup.start.slice();
    let view = null; // what is seen: x0, x1, y0, y1 in units of the data
    let here = -1; // the sample that is pointed at
    let waiting = false;
    let order = null; // samples from left to right

    const root = svg("svg", { "aria-hidden": "true" });
    plot.insertBefore(root, tip);
    const clip = svg("clipPath", { id: `inside-${setup.id}` }, root);
    const frames = [svg("rect", {}, clip), svg("rect", { class: "back" }, root)];
    const grid = svg("g", {}, root);
    const points = svg("g", { "clip-path": `url(#inside-${setup.id})` }, root);
    const names = svg("g", { "clip-path": `url(#inside-${setup.id})` }, root);
    frames.push(svg("rect", { class: "frame" }, root));
    const ring = svg("circle", { r: 7, class: "here", visibility: "hidden" }, points);
    const box = svg("rect", { class: "box", visibility: "hidden" }, root);

    const groups = new Map();
    const marks = data.cluster.map((cluster) => {
      if (!groups.has(cluster)) {
        groups.set(cluster, svg("g", { class: "group", "data-cluster": cluster }));
      }
      return mark(cluster, groups.get(cluster));
    });
    for (const cluster of [...groups.keys()].sort((a, b) => a - b)) {
      points.insertBefore(groups.get(cluster), ring);
    }

    const at = (which, index) => all[axes[which]].at[index];
    const there = (index) => at(0, index) !== null && at(1, index) !== null;
    const across = (x) => size.left + ((x - view.x0) / (view.x1 - view.x0)) * inner.width;
    const down = (y) => size.top + ((view.y1 - y) / (view.y1 - view.y0)) * inner.height;
    const back = (px, py) => [
      view.x0 + ((px - size.left) / inner.width) * (view.x1 - view.x0),
      view.y1 - ((py - size.top) / inner.height) * (view.y1 - view.y0),
    ];
    const center = () => [size.left + inner.width / 2, size.top + inner.height / 2];

    function showAll() {
      const ends = axes.map((axis) => range(all[axis].at));
      const wide = ends.map(([low, high]) => high - low);
      const rooms = ends.map(([, high], which) => wide[which] * 0.05 || Math.abs(high) * 0.05 || 1);
      const [[x0, x1], [y0, y1]] = ends.map(([low, high], which) => [low - rooms[which], high + rooms[which]]);
      view = { x0, x1, y0, y1 };
      size.left = 0;
      makeRoom();
      const alike = Math.max(...wide) <= data.alike * Math.min(...wide);
      if (setup.scale === "equal" || (setup.scale === "alike" && alike)) {
        // One unit is as long up as across.
        const unit = Math.max((x1 - x0) / inner.width, (y1 - y0) / inner.height);
        const half = [(unit * inner.width) / 2, (unit * inner.height) / 2];
        const middle = [(x0 + x1) / 2, (y0 + y1) / 2];
        view.x0 = middle[0] - half[0]; view.x1 = middle[0] + half[0];
        view.y0 = middle[1] - half[1]; view.y1 = middle[1] + half[1];
      }
      draw();
    }

    function makeRoom() {
      // The numbers beside the axis have the room that they need, and the points what is left.
      const longest = Math.max(...ticks(view.y0, view.y1, 6).map(([, words]) => words.length), 3);
      const left = Math.min(0.4 * size.width, 26 + LETTER * longest);
      if (left <= size.left) return;
      size.left = left;
      inner.width = size.width - size.left - size.right;
      for (const frame of frames) {
        frame.setAttribute("x", size.left);
        frame.setAttribute("width", inner.width);
      }
    }

    function cut(text, room) {
      // A name that is longer than its axis ends in three dots.
      while (text.textContent.length > 2 && text.getComputedTextLength() > room) {
        text.textContent = text.textContent.slice(0, -2) + "…";
      }
    }

    function draw() {
      makeRoom();
      grid.replaceChildren();
      const floor = size.top + inner.height;
      for (const [value, words] of ticksThatFit(view.x0, view.x1, inner.width)) {
        const x = across(value);
        svg("line", { x1: x, x2: x, y1: size.top, y2: floor, class: "grid" }, grid);
        svg("text", { x, y: floor + 17, "text-anchor": "middle", class: "tick" }, grid).textContent = words;
      }
      for (const [value, words] of ticks(view.y0, view.y1, 6)) {
        const y = down(value);
        svg("line", { x1: size.left, x2: size.left + inner.width, y1: y, y2: y, class: "grid" }, grid);
        svg("text", { x: size.left - 6, y: y + 4, "text-anchor": "end" }, grid).textContent = words;
      }
      const middle = { x: size.left + inner.width / 2, y: size.top + inner.height / 2 };
      const below = svg("text", { x: middle.x, y: size.height - 6, "text-anchor": "middle" }, grid);
      below.textContent = all[axes[0]].name;
      cut(below, inner.width);
      const turn = `translate(12 ${middle.y}) rotate(-90)`;
      const beside = svg("text", { transform: turn, "text-anchor": "middle" }, grid);
      beside.textContent = all[axes[1]].name;
      cut(beside, inner.height);
      for (let index = 0; index < count; index++) {
        marks[index].setAttribute("visibility", there(index) ? "inherit" : "hidden");
        if (!there(index)) continue;
        const place = `translate(${across(at(0, index)).toFixed(2)} ${down(at(1, index)).toFixed(2)})`;
        marks[index].setAttribute("transform", `${place} scale(${scale.toFixed(2)})`);
      }
      name();
      point(here, tip.classList.contains("on"));
    }

    function name() {
      // The number of each cluster stands at its most typical member, where there is room.
      names.replaceChildren();
      const taken = [];
      for (const { number, at: index } of data.clusters) {
        if (index === null || !there(index) || !lit(number)) continue;
        const x = across(at(0, index)), y = down(at(1, index));
        const half = 5 * String(number).length + 2;
        if (taken.some(([a, b, h]) => Math.abs(a - x) < h + half && Math.abs(b - y) < 19)) continue;
        taken.push([x, y, half]);
        const attributes = { x, y: Math.max(y - 10, size.top + 14), class: "name", "text-anchor": "middle" };
        svg("text", attributes, names).textContent = number;
      }
    }

    function drawSoon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(); });
    }

    function zoom(factor, px, py) {
      const [x, y] = back(px, py);
      const width = (view.x1 - view.x0) / factor;
      if (!(width > 1e-12 * (Math.abs(x) + 1e-300)) || !(width < 1e300)) return;
      view = {
        x0: x + (view.x0 - x) / factor, x1: x + (view.x1 - x) / factor,
        y0: y + (view.y0 - y) / factor, y1: y + (view.y1 - y) / factor,
      };
      drawSoon();
    }

    function move(px, py) {
      const dx = (px / inner.width) * (view.x1 - view.x0);
      const dy = (py / inner.height) * (view.y1 - view.y0);
      view = { x0: view.x0 - dx, x1: view.x1 - dx, y0: view.y0 + dy, y1: view.y1 + dy };
      drawSoon();
    }

    function nearest(px, py) {
      let best = -1, least = 12 * 12;
      for (let index = 0; index < count; index++) {
        if (!visible(index) || !there(index)) continue;
        const dx = across(at(0, index)) - px, dy = down(at(1, index)) - py;
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = index; }
      }
      return best;
    }

    function point(index, told) {
      const seen = index >= 0 && there(index);
      const changed = index !== here || !tip.classList.contains("on");
      here = index;
      tip.classList.toggle("on", seen && told);
      ring.setAttribute("visibility", seen ? "visible" : "hidden");
      if (!seen) return;
      const x = across(at(0, index)), y = down(at(1, index));
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", y);
      if (!told) return;
      if (changed) tell(tip, index);
      const ratio = plot.clientWidth / size.width; // not 1 on paper
      const right = x < size.width / 2;
      const room = plot.clientWidth - tip.offsetWidth;
      const left = right ? x * ratio + 14 : x * ratio - tip.offsetWidth - 14;
      tip.style.left = `${Math.max(0, Math.min(room, left))}px`;
      tip.style.top = `${Math.max(0, y * ratio - tip.offsetHeight / 2)}px`;
    }

    function place(event) {
      const frame = root.getBoundingClientRect();
      const ratio = size.width / frame.width;
      return [(event.clientX - frame.left) * ratio, (event.clientY - frame.top) * ratio];
    }

    let held = null;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const [x, y] = place(event);
      held = { x, y, fromX: x, fromY: y, boxed: event.shiftKey };
      plot.setPointerCapture(event.pointerId);
      if (event.pointerType === "mouse") plot.focus({ preventScroll: true });
      else pointAll(nearest(x, y), picture);
      if (event.shiftKey) event.preventDefault(); // no text is selected
    });
    plot.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (!held) { pointAll(nearest(x, y), picture); return; }
      if (held.boxed) {
        box.setAttribute("x", Math.min(x, held.fromX));
        box.setAttribute("y", Math.min(y, held.fromY));
        box.setAttribute("width", Math.abs(x - held.fromX));
        box.setAttribute("height", Math.abs(y - held.fromY));
        box.setAttribute("visibility", "visible");
      } else {
        move(x - held.x, y - held.y);
        held.x = x; held.y = y;
      }
    });
    plot.addEventListener("pointerup", (event) => {
      if (held && held.boxed) {
        const [x, y] = place(event);
        box.setAttribute("visibility", "hidden");
        const wide = Math.abs(x - held.fromX), high = Math.abs(y - held.fromY);
        if (wide > 5 && high > 5) {
          const factor = Math.min(inner.width / wide, inner.height / high);
          const middle = [(x + held.fromX) / 2, (y + held.fromY) / 2];
          move(center()[0] - middle[0], center()[1] - middle[1]);
          zoom(factor, ...center());
        }
      }
      held = null;
    });
    plot.addEventListener("pointercancel", () => {
      held = null;
      box.setAttribute("visibility", "hidden");
    });
    plot.addEventListener("pointerleave", () => { if (!held) pointAll(-1, picture); });
    plot.addEventListener("dblclick", showAll);
    plot.addEventListener("wheel", (event) => {
      // The page scrolls under a picture that nobody has asked for; with Ctrl the browser zooms.
      if (document.activeElement !== plot || event.ctrlKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...place(event));
    }, { passive: false });

    function step(by) {
      if (!order) {
        order = [...data.cluster.keys()].filter(there).sort((a, b) => at(0, a) - at(0, b));
      }
      const able = order.filter(visible);
      if (!able.length) return;
      const now = able.indexOf(here);
      pointAll(able[now < 0 ? 0 : (now + by + able.length) % able.length], picture);
    }
    function leave() {
      if (here >= 0) pointAll(-1, picture);
      else plot.blur();
    }
    const keys = {
      "+": () => zoom(1.5, ...center()), "=": () => zoom(1.5, ...center()),
      "-": () => zoom(1 / 1.5, ...center()), "0": showAll,
      ArrowRight: () => step(1), ArrowLeft: () => step(-1),
      Escape: leave,
    };
    const pans = {
      ArrowRight: [-60, 0], ArrowLeft: [60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60],
    };
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.shiftKey && pans[event.key]) move(...pans[event.key]);
      else if (keys[event.key]) keys[event.key]();
      else return;
      event.preventDefault();
    });
    const act = {
      closer: () => zoom(1.5, ...center()), farther: () => zoom(1 / 1.5, ...center()), whole: showAll,
    };
    for (const button of figure.querySelectorAll("[data-do]")) {
      button.addEventListener("click", act[button.dataset.do]);
    }
    figure.querySelectorAll("select").forEach((select, which) => {
      all.forEach((axis, index) => { html("option", axis.name, select).value = index; });
      select.value = axes[which];
      select.addEventListener("change", () => {
        axes[which] = Number(select.value);
        order = null;
        showAll();
      });
    });

    function highlight() {
      for (const [cluster, group] of groups) group.classList.toggle("dim", !lit(cluster));
      name();
      if (here >= 0 && !visible(here)) point(-1, false);
    }
    function fit() {
      // One unit of the drawing is one pixel, so that letters and marks keep their size.
      const width = Math.max(260, plot.clientWidth);
      if (width === size.width) return;
      size.width = width;
      size.height = Math.max(280, Math.min(620, Math.round(width * 0.74)));
      inner.height = size.height - size.top - size.bottom;
      root.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
      for (const frame of frames) {
        frame.setAttribute("y", size.top);
        frame.setAttribute("height", inner.height);
      }
      showAll();
    }
    const picture = { point, highlight };
    pictures.push(picture);
    fit();
    new ResizeObserver(fit).observe(plot);
  }

  data.pictures.forEach(makePicture);

  const legend = document.getElementById("legend");
  const buttons = [];
  function highlight() {
    for (const picture of pictures) picture.highlight();
    for (const [cluster, button] of buttons) button.setAttribute("aria-pressed", chosen.has(cluster));
  }
  for (const { number, size: members } of data.clusters) {
    const button = html("button", null, legend);
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    const swatch = svg("svg", { class: "swatch", viewBox: "-6 -6 12 12", "aria-hidden": "true" }, button);
    mark(number, swatch);
    button.appendChild(document.createTextNode(` ${number} (${members.toLocaleString("en")})`));
    button.addEventListener("click", () => {
      if (chosen.has(number)) chosen.delete(number); else chosen.add(number);
      hovered = null;
      highlight();
    });
    button.addEventListener("pointerenter", (event) => {
      if (event.pointerType === "mouse") { hovered = number; highlight(); }
    });
    button.addEventListener("pointerleave", () => { hovered = null; highlight(); });
    buttons.push([number, button]);
  }
})();
