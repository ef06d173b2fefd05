// Draws the embedding. Text from the data goes into text nodes only.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("picture").textContent);
  const plot = document.getElementById("plot");
  const tip = document.getElementById("tip");
  const count = data.cluster.length;
  const size = { width: 0, height: 0, left: 62, right: 10, top: 10, bottom: 46 };
  const inner = { width: 0, height: 0 };
  const chosen = new Set();
  let axes = data.start.slice();
  let view = null; // what is seen: x0, x1, y0, y1 in units of the data
  let here = -1; // the sample that is pointed at
  let waiting = false;

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

  const root = svg("svg", { "aria-hidden": "true" });
  plot.insertBefore(root, tip);
  const clip = svg("clipPath", { id: "inside" }, root);
  const frames = [svg("rect", {}, clip), svg("rect", { class: "back" }, root)];
  const grid = svg("g", {}, root);
  const points = svg("g", { "clip-path": "url(#inside)" }, root);
  frames.push(svg("rect", { class: "frame" }, root));
  const ring = svg("circle", { r: 7, class: "here", visibility: "hidden" }, points);
  const box = svg("rect", { class: "box", visibility: "hidden" }, root);

  const groups = new Map();
  const scale = Math.min(1.1, Math.max(0.5, 2.2 / Math.pow(count / 60, 0.3)));
  function lookOf(cluster) {
    return [cluster % data.colours, Math.floor(cluster / data.colours) % data.marks.length];
  }
  const marks = data.cluster.map((cluster) => {
    if (!groups.has(cluster)) {
      groups.set(cluster, svg("g", { class: "group", "data-cluster": cluster }));
    }
    const [colour, shape] = lookOf(cluster);
    const attributes = { class: `mark c${colour}`, d: data.marks[shape] };
    return svg("path", attributes, groups.get(cluster));
  });
  for (const cluster of [...groups.keys()].sort((a, b) => a - b)) {
    points.insertBefore(groups.get(cluster), ring);
  }

  const at = (which, index) => data.axes[axes[which]].at[index];
  const across = (x) => size.left + ((x - view.x0) / (view.x1 - view.x0)) * inner.width;
  const down = (y) => size.top + ((view.y1 - y) / (view.y1 - view.y0)) * inner.height;
  const back = (px, py) => [
    view.x0 + ((px - size.left) / inner.width) * (view.x1 - view.x0),
    view.y1 - ((py - size.top) / inner.height) * (view.y1 - view.y0),
  ];

  function range(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
    return [low - room, high + room];
  }

  function showAll() {
    const [x0, x1] = range(data.axes[axes[0]].at);
    const [y0, y1] = range(data.axes[axes[1]].at);
    view = { x0, x1, y0, y1 };
    if (data.equal) {
      // One unit is as long up as across: distances are what K-means sees.
      const unit = Math.max((x1 - x0) / inner.width, (y1 - y0) / inner.height);
      const half = [(unit * inner.width) / 2, (unit * inner.height) / 2];
      const middle = [(x0 + x1) / 2, (y0 + y1) / 2];
      view.x0 = middle[0] - half[0]; view.x1 = middle[0] + half[0];
      view.y0 = middle[1] - half[1]; view.y1 = middle[1] + half[1];
    }
    draw();
  }

  function ticks(low, high) {
    const rough = (high - low) / 6;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
    const digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
    return found.map((value) => [value, value.toFixed(digits).replace("-", "−")]);
  }

  function draw() {
    grid.replaceChildren();
    const floor = size.top + inner.height;
    for (const [value, words] of ticks(view.x0, view.x1)) {
      const x = across(value);
      svg("line", { x1: x, x2: x, y1: size.top, y2: floor, class: "grid" }, grid);
      svg("text", { x, y: floor + 18, "text-anchor": "middle" }, grid).textContent = words;
    }
    for (const [value, words] of ticks(view.y0, view.y1)) {
      const y = down(value);
      svg("line", { x1: size.left, x2: size.left + inner.width, y1: y, y2: y, class: "grid" }, grid);
      svg("text", { x: size.left - 6, y: y + 4, "text-anchor": "end" }, grid).textContent = words;
    }
    const middle = { x: size.left + inner.width / 2, y: size.top + inner.height / 2 };
    svg("text", { x: middle.x, y: size.height - 6, "text-anchor": "middle" }, grid)
      .textContent = data.axes[axes[0]].name;
    const turn = `translate(13 ${middle.y}) rotate(-90)`;
    svg("text", { transform: turn, "text-anchor": "middle" }, grid)
      .textContent = data.axes[axes[1]].name;
    for (let index = 0; index < count; index++) {
      const place = `translate(${across(at(0, index)).toFixed(2)} ${down(at(1, index)).toFixed(2)})`;
      marks[index].setAttribute("transform", `${place} scale(${scale.toFixed(2)})`);
    }
    point(here);
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

  const visible = (index) => chosen.size === 0 || chosen.has(data.cluster[index]);

  function nearest(px, py) {
    let best = -1, least = 12 * 12;
    for (let index = 0; index < count; index++) {
      if (!visible(index)) continue;
      const dx = across(at(0, index)) - px, dy = down(at(1, index)) - py;
      if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = index; }
    }
    return best;
  }

  function point(index) {
    const changed = index !== here;
    here = index;
    tip.classList.toggle("on", index >= 0);
    ring.setAttribute("visibility", index >= 0 ? "visible" : "hidden");
    if (index < 0) return;
    const x = across(at(0, index)), y = down(at(1, index));
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    if (changed) tell(index);
    const ratio = plot.clientWidth / size.width; // not 1 on paper
    const right = x < size.width / 2;
    const room = plot.clientWidth - tip.offsetWidth;
    const left = right ? x * ratio + 14 : x * ratio - tip.offsetWidth - 14;
    tip.style.left = `${Math.max(0, Math.min(room, left))}px`;
    tip.style.top = `${Math.max(0, y * ratio - tip.offsetHeight / 2)}px`;
  }

  function tell(index) {
    tip.replaceChildren();
    html("strong", data.id[index], tip);
    const body = html("tbody", null, html("table", null, tip));
    const line = (name, value) => {
      const row = html("tr", null, body);
      html("th", name, row);
      html("td", value, row);
    };
    line("cluster", data.cluster[index]);
    if (data.truth) line("true label", data.truth.names[data.truth.of[index]]);
    data.features.forEach((name, feature) => {
      const value = data.values[feature][index];
      line(name, value === null ? "" : value);
    });
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
    if (event.shiftKey) event.preventDefault(); // no text is selected
  });
  plot.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!held) { point(nearest(x, y)); return; }
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
  plot.addEventListener("pointerleave", () => { if (!held) point(-1); });
  plot.addEventListener("dblclick", showAll);
  plot.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...place(event));
  }, { passive: false });

  const center = () => [size.left + inner.width / 2, size.top + inner.height / 2];
  let order = null; // samples from left to right
  function step(by) {
    if (!order) {
      order = [...data.cluster.keys()].sort((a, b) => at(0, a) - at(0, b));
    }
    const able = order.filter(visible);
    if (!able.length) return;
    const now = able.indexOf(here);
    point(able[now < 0 ? 0 : (now + by + able.length) % able.length]);
  }
  const keys = {
    "+": () => zoom(1.5, ...center()), "=": () => zoom(1.5, ...center()),
    "-": () => zoom(1 / 1.5, ...center()), "0": showAll,
    ArrowRight: () => step(1), ArrowLeft: () => step(-1),
    Escape: () => point(-1),
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
  document.getElementById("closer").addEventListener("click", () => zoom(1.5, ...center()));
  document.getElementById("farther").addEventListener("click", () => zoom(1 / 1.5, ...center()));
  document.getElementById("whole").addEventListener("click", showAll);

  ["across", "up"].forEach((name, which) => {
    const select = document.getElementById(name);
    data.axes.forEach((axis, index) => { html("option", axis.name, select).value = index; });
    select.value = axes[which];
    select.addEventListener("change", () => {
      axes[which] = Number(select.value);
      order = null;
      showAll();
    });
  });

  const legend = document.getElementById("legend");
  const buttons = [];
  function highlight() {
    for (const [cluster, group] of groups) {
      group.classList.toggle("dim", chosen.size > 0 && !chosen.has(cluster));
    }
    buttons.forEach(([cluster, button]) => button.setAttribute("aria-pressed", chosen.has(cluster)));
    if (here >= 0 && !visible(here)) point(-1);
  }
  for (const { number, size: members } of data.clusters) {
    const button = html("button", null, legend);
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    const swatch = svg("svg", { class: "swatch", viewBox: "-6 -6 12 12", "aria-hidden": "true" }, button);
    const [colour, shape] = lookOf(number);
    svg("path", { class: `mark c${colour}`, d: data.marks[shape] }, swatch);
    button.appendChild(document.createTextNode(` ${number} (${members.toLocaleString("en")})`));
    button.addEventListener("click", () => {
      if (chosen.has(number)) chosen.delete(number); else chosen.add(number);
      highlight();
    });
    buttons.push([number, button]);
  }
  function fit() {
    // One unit of the drawing is one pixel, so that letters and marks keep their size.
    const width = Math.max(300, plot.clientWidth);
    if (width === size.width) return;
    size.width = width;
    size.height = Math.max(300, Math.min(540, Math.round(width * 0.68)));
    inner.width = size.width - size.left - size.right;
    inner.height = size.height - size.top - size.bottom;
    root.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    for (const frame of frames) {
      frame.setAttribute("x", size.left);
      frame.setAttribute("y", size.top);
      frame.setAttribute("width", inner.width);
      frame.setAttribute("height", inner.height);
    }
    showAll();
  }
  fit();
  new ResizeObserver(fit).observe(plot);
})();
