// A chart of the last minutes, drawn as plain SVG. Colours are classes of console.css: s1 to s6. Whoever points at a
// second reads its values.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 160, LEFT = 40, BOTTOM = 20, TOP = 8, LABEL = 76;

const locale = document.documentElement.lang;
const short = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
const clock = (second) => new Date(second * 1000).toLocaleTimeString(locale,
  { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export function element(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

// The least of 4, 10, 20, 50, 100… that is not below the value, so that the scale seldom jumps, and its half is whole.
export function ceiling(value) {
  if (value <= 4) return 4;
  if (value <= 10) return 10;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((bound) => bound >= value);
}

// series: [{ name, color, values: Map(second → number) }]. stacked: each lies on the one before; else lines.
export class Chart {
  constructor(host, { spanS, stacked = false, top = 0, unit = "" }) {
    Object.assign(this, { spanS, stacked, top, unit, pointed: null });
    this.svg = element("svg", { height: HEIGHT, role: "img", class: "chart" });
    host.append(this.svg);
    this.svg.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.svg.addEventListener("pointerdown", (event) => this.#point(event.offsetX));
    this.svg.addEventListener("pointerleave", () => this.#point(null));
  }

  // x: where, in the picture; null: nowhere.
  #point(x) {
    const part = x === null ? -1 : (x - LEFT) / (this.svg.clientWidth - LEFT);
    this.pointed = part < 0 ? null : Math.round(Math.min(part, 1) * (this.spanS - 1));
    if (this.drawn) this.draw(...this.drawn);
  }

  draw(series, now, label) {
    this.drawn = [series, now, label];
    const first = now - this.spanS + 1;
    const width = this.svg.clientWidth;
    const x = (second) => LEFT + ((second - first) / (this.spanS - 1)) * (width - LEFT);
    const highest = this.#most(series, first, now);
    const most = this.top ? Math.max(this.top, highest) : ceiling(highest);
    const y = (value) => TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM);
    this.svg.replaceChildren(...this.#axes(most, y, x, now, width));
    const floor = new Map();
    for (const { color, values } of series) {
      this.svg.append(...(this.stacked ? [this.#area(values, floor, color, first, now, x, y)]
        : this.#line(values, color, first, now, x, y)));
    }
    if (this.pointed !== null) this.svg.append(...this.#readout(series, first + this.pointed, x));
    this.svg.setAttribute("aria-label", label);
  }

  #readout(series, second, x) {
    const found = series.filter(({ values }) => values.has(second) && (values.get(second) || !this.stacked));
    const told = found.map(({ name, values }) => `${name} ${exact.format(values.get(second))}${this.unit}`);
    const right = x(second) > (LEFT + this.svg.clientWidth) / 2;
    return [
      element("line", { x1: x(second), x2: x(second), y1: TOP, y2: HEIGHT - BOTTOM, class: "pointer" }),
      element("text", { x: x(second) + (right ? -6 : 6), y: TOP + 22, class: "readout", "text-anchor": right ? "end" : "start" },
        [clock(second), ...(told.length ? told : ["—"])].join(" · ")),
    ];
  }

  #most(series, first, now) {
    let most = 0;
    for (let second = first; second <= now; second++) {
      const values = series.map((each) => each.values.get(second) ?? 0);
      most = Math.max(most, this.stacked ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values));
    }
    return most;
  }

  #axes(most, y, x, now, width) {
    const parts = [];
    for (const value of [0, most / 2, most]) {
      parts.push(element("line", { x1: LEFT, x2: width, y1: y(value), y2: y(value), class: "rule" }));
      parts.push(element("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short.format(value)));
    }
    const step = [30, 60, 120, 300].find((each) => (each / this.spanS) * (width - LEFT) >= LABEL) ?? this.spanS;
    for (let back = 0; back < this.spanS; back += step) {
      if (back && x(now - back) < LEFT + LABEL / 2) break;
      parts.push(element("text", { x: x(now - back), y: HEIGHT - 5, "text-anchor": back ? "middle" : "end" }, clock(now - back)));
    }
    return parts;
  }

  #area(values, floor, color, first, now, x, y) {
    const upper = [], lower = [];
    for (let second = first; second <= now; second++) {
      const below = floor.get(second) ?? 0;
      const above = below + (values.get(second) ?? 0);
      floor.set(second, above);
      upper.push(`${x(second).toFixed(1)},${y(above).toFixed(1)}`);
      lower.unshift(`${x(second).toFixed(1)},${y(below).toFixed(1)}`);
    }
    return element("polygon", { points: [...upper, ...lower].join(" "), class: `area ${color}` });
  }

  // With a dot where it ends: a second alone is to be seen too.
  #line(values, color, first, now, x, y) {
    let path = "", last = null;
    for (let second = first; second <= now; second++) {
      const value = values.get(second);
      if (value === undefined) {
        continue;
      }
      path += `${last === null ? "M" : "L"}${x(second).toFixed(1)},${y(value).toFixed(1)}`;
      last = second;
    }
    const line = element("path", { d: path, class: `line ${color}` });
    if (last === null) return [line];
    return [line, element("circle", { cx: x(last), cy: y(values.get(last)), r: 2.5, class: `dot ${color}` })];
  }
}
