// What the cursor points at: the nearest line, drawn on top, and a box that names it with the means
// of the other settings at the same place. Arrow keys move it too.

import { h, setVars, svg } from './dom.js';
import { duration, short } from './format.js';
import { nearest } from './lines.js';
import { hue } from './theme.js';

const MOST_MEANS = 8;
const NEAR = 60; // pixels from a line within which it counts as pointed at

export class Hover {
  constructor(chart) {
    Object.assign(this, { chart, plot: chart.plot, at: null, drawn: null });
    this.path = svg('path', { fill: 'none' });
    this.dot = svg('circle', { r: 4 });
    this.layer = svg('svg', { class: 'focus', 'aria-hidden': 'true' }, this.path, this.dot);
    this.box = h('div', { class: 'tip', hidden: true });
    this.spoken = h('p', { class: 'unseen', 'aria-live': 'polite' });
    const { over, root } = this.plot;
    over.append(this.layer, this.box);
    root.append(this.spoken);
    over.tabIndex = 0;
    over.setAttribute('role', 'application');
    over.setAttribute(
      'aria-label',
      `${chart.spec.title}, ${chart.lines.length} lines. Left and right move along a line, up and down change it.`,
    );
    over.addEventListener('keydown', (event) => this.key(event));
    over.addEventListener('blur', () => this.hide());
    this.layer.setAttribute('visibility', 'hidden');
    this.plot.hooks.setCursor = [() => this.move()];
  }

  move() {
    const { left, top } = this.plot.cursor;
    if (left == null || left < 0) {
      this.hide();
      return;
    }
    const x = this.plot.posToVal(left, 'x');
    let best = null;
    this.chart.lines.forEach((line, index) => {
      const i = nearest(line.x, x);
      if (line.x[i] < this.chart.x[0] || line.x[i] > this.chart.x[1]) return;
      const dx = this.plot.valToPos(line.x[i], 'x') - left;
      const dy = this.plot.valToPos(line.y[i], 'y') - top;
      // Along x points are dense, so a line that ended long ago loses.
      const distance = Math.hypot(dx, dy);
      if (!best || distance < best.distance) best = { index, i, distance };
    });
    this.show(best && best.distance < NEAR ? best : null, x, left, top);
  }

  // focus: {index, i} of a line's point, or null; x: where the cursor is
  show(focus, x, left, top) {
    const { chart, plot } = this;
    this.at = focus;
    const line = focus && chart.lines[focus.index];
    const rows = [];
    if (line) rows.push(row(line, chart.spec.format(line.y[focus.i]), true));
    const means = chart.lines.filter((item) => item.kind !== 'run' && item !== line);
    const here = line ? line.x[focus.i] : means.length ? means[0].x[nearest(means[0].x, x)] : x;
    for (const mean of means.slice(0, MOST_MEANS)) {
      const i = nearest(mean.x, here);
      const away = Math.abs(plot.valToPos(mean.x[i], 'x') - plot.valToPos(here, 'x'));
      if (away < 20) rows.push(row(mean, chart.spec.format(mean.y[i]), false));
    }
    if (!rows.length) {
      this.hide();
      return;
    }
    this.box.replaceChildren(h('div', { class: 'where' }, where(chart.spec.axis(), here)), ...rows);
    this.box.hidden = false;
    const { width, height } = plot.over.getBoundingClientRect();
    const [w, t] = [this.box.offsetWidth, this.box.offsetHeight];
    const x0 =
      left + 16 + w < width ? left + 16 : Math.max(Math.min(left - 16 - w, width - w), -40);
    setVars(this.box, {
      left: `${x0}px`,
      top: `${Math.max(-8, Math.min(top - t / 2, height - t))}px`,
    });
    this.mark(focus, line);
  }

  mark(focus, line) {
    this.layer.setAttribute('visibility', line ? 'visible' : 'hidden');
    if (!line) return;
    const position = (i) => [
      this.plot.valToPos(line.x[i], 'x'),
      this.plot.valToPos(line.y[i], 'y'),
    ];
    const [cx, cy] = position(focus.i);
    this.dot.setAttribute('cx', cx);
    this.dot.setAttribute('cy', cy);
    this.dot.setAttribute('fill', hue(line.hue));
    if (this.drawn === line) return;
    this.drawn = line;
    this.path.setAttribute('stroke', hue(line.hue));
    this.path.setAttribute('stroke-width', line.kind === 'run' ? 2.2 : 4);
    this.path.setAttribute(
      'd',
      line.x
        .map(
          (_, i) =>
            `${i ? 'L' : 'M'}${position(i)
              .map((value) => value.toFixed(1))
              .join(' ')}`,
        )
        .join(''),
    );
  }

  // Where the reader was, for the hover of the next drawing of the same chart.
  place() {
    const { over, cursor } = this.plot;
    return {
      focused: document.activeElement === over,
      pointed: cursor.left >= 0 ? { left: cursor.left, top: cursor.top } : null,
      name: this.at && this.chart.lines[this.at.index].name,
      i: this.at?.i,
    };
  }

  restore({ focused, pointed, name, i }) {
    if (focused) this.plot.over.focus({ preventScroll: true });
    if (pointed) this.plot.setCursor(pointed);
    const index = this.chart.lines.findIndex((line) => line.name === name);
    if (!focused || index < 0) return;
    this.go(index, Math.min(i, this.chart.lines[index].x.length - 1));
  }

  hide() {
    this.at = null;
    this.drawn = null;
    this.box.hidden = true;
    this.layer.setAttribute('visibility', 'hidden');
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === 'Escape') this.hide();
    if (!step) return;
    event.preventDefault();
    const { lines } = this.chart;
    let { index, i } = this.at ?? { index: lines.length - 1, i: -1 };
    if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      const x = lines[index].x[Math.max(i, 0)];
      index = (index + step + lines.length) % lines.length;
      i = nearest(lines[index].x, x);
    } else {
      const stride = event.shiftKey ? Math.max(1, Math.round(lines[index].x.length / 20)) : 1;
      i = Math.min(Math.max(i + step * stride, 0), lines[index].x.length - 1);
    }
    this.go(index, i);
  }

  go(index, i) {
    const line = this.chart.lines[index];
    this.show(
      { index, i },
      line.x[i],
      this.plot.valToPos(line.x[i], 'x'),
      this.plot.valToPos(line.y[i], 'y'),
    );
    this.spoken.textContent = `${line.name}, ${where(this.chart.spec.axis(), line.x[i])}: ${this.chart.spec.format(line.y[i])}`;
  }
}

function row(line, value, strong) {
  return h(
    'div',
    { class: strong ? 'row strong' : 'row' },
    h('i', { class: line.kind === 'run' ? 'thin' : 'thick', vars: { '--hue': hue(line.hue) } }),
    h('span', { class: 'who' }, line.name),
    h('span', { class: 'value' }, value),
  );
}

const where = (axis, x) =>
  axis === 'seconds'
    ? duration(x)
    : `${axis} ${axis === 'epoch' ? short(x, 6) : Math.round(x).toLocaleString('en')}`;
