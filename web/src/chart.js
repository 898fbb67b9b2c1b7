// One chart: uPlot draws axes and lines, this file gives it ranges, ticks, marks and a frame with
// buttons. It is drawn when it is about to be seen and again when its lines change.
//
// spec: id, title, unit     text for the frame
//       lines(log)          what to draw, see lines.js
//       marks               [{y, name}] dashed lines across
//       axis()              epoch, update or seconds
//       format(y)           a value as text
//       log, most, height   log scale to begin with (true, false, 'auto'); upper end of y, if any; pixels
//       legend              whether the frame names the lines
//       at()                x of a vertical mark, or null

import uPlot from 'uplot';
import { button, h, whenSeen } from './dom.js';
import { exportMenu } from './export.js';
import { Hover } from './hover.js';
import { keysOf, legend } from './legend.js';
import { xUnit } from './lines.js';
import { onPrint, printing } from './print.js';
import { chartSvg, markTextY } from './svg.js';
import { hue, inks, onTheme, strokeOf } from './theme.js';
import { logTicks, niceTicks, tickText, yRange } from './ticks.js';

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const facets = [
  { scale: 'x', auto: false },
  { scale: 'y', auto: false },
];
const PAPER = { wide: 700, half: 344 }; // pixels of a chart on A4
const paths = uPlot.paths.linear();

export class Chart {
  constructor(spec, choices, file) {
    Object.assign(this, {
      spec,
      choices,
      file,
      plot: null,
      lines: [],
      seen: false,
      suits: spec.log === true,
    });
    this.mount = h('div', { class: 'plot', vars: { '--height': `${spec.height}px` } });
    this.legend = h('div', { class: 'legend', hidden: !spec.legend });
    this.note = h('p', { class: 'nothing', hidden: true }, 'No values to draw.');
    this.logButton = button('log', () => this.toggleLog(), {
      class: 'quiet',
      'aria-pressed': String(this.log),
      title: 'Logarithmic y axis',
    });
    this.zoomButton = button('reset zoom', () => this.zoom(null), { class: 'quiet', hidden: true });
    this.element = h(
      'figure',
      { class: `chart ${spec.class ?? ''}`, 'data-chart': spec.id },
      h(
        'figcaption',
        null,
        h('span', { class: 'name' }, spec.title),
        spec.unit && h('span', { class: 'unit' }, spec.unit),
        h('span', { class: 'tools' }, this.zoomButton, this.logButton, exportMenu(this)),
      ),
      this.legend,
      this.mount,
      this.note,
    );
    this.element.chart = this; // for tests, and for the curious
    this.stop = [
      onTheme(() => {
        this.plot?.redraw(false);
        this.name();
      }),
      choices.onChange((what) => (what === 'zoom' ? this.rescale() : this.update())),
      onPrint(() => this.toPaper()),
    ];
    this.stop.push(
      whenSeen(this.element, () => {
        this.seen = true;
        this.update();
        this.resizer = new ResizeObserver(() => this.resize());
        this.resizer.observe(this.mount);
      }),
    );
  }

  get log() {
    return this.choices.log[this.spec.id] ?? this.suits;
  }

  destroy() {
    this.stop.forEach((stop) => stop());
    this.resizer?.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  toggleLog() {
    this.choices.log[this.spec.id] = !this.log;
    this.update();
  }

  zoom(range) {
    this.choices.zoom = range;
    this.choices.changed('zoom');
  }

  // Takes the lines anew: other runs, another axis, fresh data.
  update() {
    if (!this.seen) return;
    const place = this.plot && this.hover.place();
    this.plot?.destroy();
    this.plot = null;
    if (this.spec.log === 'auto' && !this.lines.length)
      this.suits = suitsLog(this.spec.lines(false));
    this.lines = this.spec.lines(this.log);
    const thin = this.lines.filter((line) => line.kind === 'run').length;
    Object.assign(this.element.dataset, {
      curves: thin,
      means: this.lines.length - thin,
      axis: this.spec.axis(),
      log: this.log,
    });
    this.logButton.setAttribute('aria-pressed', String(this.log));
    this.note.hidden = this.lines.length > 0;
    this.mount.hidden = this.lines.length === 0;
    if (!this.lines.length) {
      this.toPaper();
      return;
    }
    this.name();
    this.measure();
    this.strokes = this.lines.map((line) => strokeOf(line, thin));
    this.plot = new uPlot(
      this.options(),
      [null, ...this.lines.map((line) => [line.x, line.y])],
      this.mount,
    );
    this.hover = new Hover(this);
    if (place) queueMicrotask(() => this.plot && this.hover.restore(place)); // once it is drawn
    this.element.dataset.drawn = 'true';
    this.toPaper();
  }

  // While the page is printed the chart is paths: a canvas keeps the width it has on the screen.
  toPaper() {
    this.paper?.remove();
    this.paper = null;
    if (printing() && this.plot) {
      const width = this.spec.class === 'wide' ? PAPER.wide : PAPER.half;
      const text = chartSvg(this, width, Math.min(this.spec.height, 0.6 * width));
      const file = new DOMParser().parseFromString(text, 'image/svg+xml');
      this.paper = document.importNode(file.documentElement, true);
      this.paper.classList.add('paper');
      this.element.append(this.paper);
    }
    this.element.classList.toggle('printed', this.paper != null);
  }

  name() {
    if (this.spec.legend) this.legend.replaceChildren(...legend(keysOf(this.lines)));
  }

  // Ranges and ticks for the lines and the zoom as they are now.
  measure() {
    let [low, high] = [Infinity, -Infinity];
    for (const { x } of this.lines) {
      low = Math.min(low, x[0]);
      high = Math.max(high, x[x.length - 1]);
    }
    if (low > 0 && low < high * 0.2) low = 0;
    if (low === high) [low, high] = [low - 1, high + 1];
    const [from, to] = this.choices.zoom ?? [low, high];
    this.x = [from, to];
    this.y = yRange(this.lines, this.spec.marks ?? [], {
      log: this.log,
      from,
      to,
      most: this.spec.most,
    });
    this.unit = xUnit(this.spec.axis(), high);
    this.zoomButton.hidden = this.choices.zoom == null;
  }

  xTicks(width) {
    const { divide } = this.unit;
    const whole = this.spec.axis() === 'seconds' ? 0 : 1;
    return niceTicks(
      this.x[0] / divide,
      this.x[1] / divide,
      Math.max(2, Math.min(10, width / 60)),
      whole,
    );
  }

  yTicks(height) {
    const count = Math.max(2, Math.min(7, height / 45));
    return this.log ? logTicks(...this.y, count) : niceTicks(...this.y, count);
  }

  options() {
    const line = () => inks().grid;
    const axis = { stroke: () => inks().soft, font: FONT, ticks: { show: false } };
    return {
      mode: 2,
      width: Math.max(this.mount.clientWidth, 120),
      height: this.spec.height,
      padding: [10, 12, 0, 0],
      legend: { show: false },
      cursor: {
        points: { show: false },
        dataIdx: () => null,
        y: false,
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.zoom(null) },
      },
      scales: {
        x: { time: false, auto: false, range: () => this.x },
        y: { distr: this.log ? 3 : 1, auto: false, range: () => this.y },
      },
      axes: [
        {
          ...axis,
          scale: 'x',
          size: 24,
          gap: 6,
          label: this.unit.label,
          labelSize: 20,
          labelGap: 0,
          labelFont: FONT,
          grid: { show: false },
          border: { show: true, stroke: () => inks().line, width: 1 },
          splits: (u) =>
            this.xTicks(u.bbox.width / devicePixelRatio).map((tick) => tick * this.unit.divide),
          values: (u, ticks) => texts(ticks.map((tick) => tick / this.unit.divide)),
        },
        {
          ...axis,
          scale: 'y',
          gap: 6,
          grid: { stroke: line, width: 1 },
          size: (u, values) => 14 + 7 * Math.max(2, ...(values ?? []).map((value) => value.length)),
          incrs: (u, at, min, max) => [Math.max(max - min, 5)], // any will do: splits decides
          splits: (u) => this.yTicks(u.bbox.height / devicePixelRatio),
          values: (u, ticks) => texts(ticks, this.log),
          filter: (u, ticks) => ticks,
        },
      ],
      series: [
        null,
        ...this.lines.map((item, i) => ({
          facets,
          paths,
          pxAlign: 0,
          stroke: () => hue(item.hue),
          width: this.strokes[i].width,
          alpha: this.strokes[i].alpha,
          dash: this.strokes[i].dash,
          points: { show: false },
          spanGaps: true,
        })),
      ],
      hooks: {
        drawAxes: [(u) => this.drawMarks(u)],
        draw: [(u) => this.drawDots(u), (u) => this.nameMarks(u)],
        setSelect: [(u) => this.select(u)],
      },
    };
  }

  select(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    const range = [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')];
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.zoom(range);
  }

  drawMarks(u) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = inks().soft;
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 4 * ratio]);
    for (const mark of this.visibleMarks()) {
      const y = u.valToPos(mark.y, 'y', true);
      stroke(ctx, bbox.left, y, bbox.left + bbox.width, y);
    }
    const at = this.spec.at?.();
    if (at != null && at >= this.x[0] && at <= this.x[1]) {
      const x = u.valToPos(at, 'x', true);
      stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
    }
    ctx.restore();
  }

  nameMarks(u) {
    // over the curves, with a rim of paper
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = FONT.replace('12px', `${11 * ratio}px`);
    ctx.textAlign = 'right';
    ctx.textBaseline = 'alphabetic';
    ctx.lineJoin = 'round';
    ctx.lineWidth = 3 * ratio;
    ctx.strokeStyle = inks().paper;
    ctx.fillStyle = inks().soft;
    for (const mark of this.visibleMarks()) {
      const place = [
        bbox.left + bbox.width,
        markTextY(u.valToPos(mark.y, 'y', true), bbox.top, ratio),
      ];
      ctx.strokeText(mark.name, ...place);
      ctx.fillText(mark.name, ...place);
    }
    ctx.restore();
  }

  visibleMarks() {
    return (this.spec.marks ?? []).filter((mark) => mark.y >= this.y[0] && mark.y <= this.y[1]);
  }

  drawDots(u) {
    // a line of one point would not be seen
    this.lines.forEach((line, i) => {
      if (line.x.length !== 1) return;
      u.ctx.beginPath();
      u.ctx.fillStyle = this.strokes[i].colour;
      u.ctx.arc(
        u.valToPos(line.x[0], 'x', true),
        u.valToPos(line.y[0], 'y', true),
        (line.kind === 'run' ? 2.5 : 4) * devicePixelRatio,
        0,
        7,
      );
      u.ctx.fill();
    });
  }

  rescale() {
    if (!this.plot) return;
    this.hover.hide();
    this.measure();
    this.plot.batch(() => {
      this.plot.setScale('y', { min: this.y[0], max: this.y[1] });
      this.plot.setScale('x', { min: this.x[0], max: this.x[1] });
    });
  }

  resize() {
    const width = this.mount.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width)
      this.plot.setSize({ width, height: this.spec.height });
  }
}

const texts = (ticks, log) => ticks.map((tick) => tickText(tick, ticks, log));

// Whether a few values stand so far out that they would flatten the rest.
function suitsLog(lines) {
  const most = lines.reduce((max, line) => line.y.reduce((a, b) => Math.max(a, b), max), 0);
  const some = lines.flatMap((line) => line.y.filter((_, i) => i % 16 === 0)).sort((a, b) => a - b);
  return some[0] > 0 && most > 8 * some[some.length >> 1];
}

function stroke(ctx, x0, y0, x1, y1) {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}
