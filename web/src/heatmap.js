// Norm of the gradient by lag (across) and order (down), on a logarithmic scale of colour that is the
// same for every epoch of the run.

import { h, svg } from './dom.js';
import { menu, savePng, saveText, csv } from './export.js';
import { fileName, fixed, short } from './format.js';
import { svgFile, xml } from './svg.js';
import { inks, onTheme, ramp } from './theme.js';

const ROW = 34;
const LEFT = 92;
const BOTTOM = 44;
const DECADES = 6; // what is smaller than the largest by more than this has the colour of nothing

export function heatMap(file) {
  const host = h('div', { class: 'heat', tabindex: 0, role: 'application' });
  const scale = h('div', { class: 'scale' });
  const readout = h('p', { class: 'readout', 'aria-live': 'polite' });
  const element = h(
    'figure',
    { class: 'heatmap', 'data-chart': 'heatmap' },
    h(
      'figcaption',
      null,
      h('span', { class: 'name' }, 'Norm by lag and order'),
      h(
        'span',
        { class: 'tools' },
        menu('Export norm by lag and order', [
          ['SVG', () => saveText(`${name()}.svg`, 'image/svg+xml', fileOf(now))],
          ['PNG', () => savePng(`${name()}.png`, fileOf(now))],
          ['CSV', () => saveText(`${name()}.csv`, 'text/csv', csvOf(now.line))],
        ]),
      ),
    ),
    host,
    scale,
    readout,
  );
  const name = () => fileName(file, 'xray', `epoch-${now.line.epoch ?? 0}`);
  let now = null; // {line, low, high}: what is shown, and the span of its colours
  let at = [0, 0]; // lag and order that are pointed at

  const point = (lag, order) => {
    const { lags, orders } = now.line;
    at = [
      Math.min(Math.max(lag, 0), lags.length - 1),
      Math.min(Math.max(order, 0), orders.length - 1),
    ];
    host.querySelectorAll('rect.at').forEach((rect) => rect.classList.remove('at'));
    host.querySelector(`rect[data-lag="${at[0]}"][data-order="${at[1]}"]`)?.classList.add('at');
    readout.textContent = describe(now.line, ...at);
  };
  const draw = () => {
    if (!now || !host.clientWidth) return;
    const parts = layout(now, host.clientWidth);
    host.replaceChildren(
      svg(
        'svg',
        {
          width: parts.width,
          height: parts.height,
          viewBox: `0 0 ${parts.width} ${parts.height}`,
          'aria-hidden': 'true',
        },
        parts.cells.map((cell) =>
          svg('rect', {
            x: cell.x,
            y: cell.y,
            width: cell.width,
            height: cell.height,
            fill: cell.fill,
            'data-lag': cell.lag,
            'data-order': cell.order,
          }),
        ),
        parts.texts.map((item) =>
          svg('text', { x: item.x, y: item.y, 'text-anchor': item.anchor }, item.text),
        ),
      ),
    );
    const steps = Array.from({ length: 13 }, (_, i) => i / 12);
    scale.replaceChildren(
      h('span', null, 'norm'),
      h('span', null, short(now.low, 2)),
      h('span', {
        class: 'bar',
        'aria-hidden': 'true',
        vars: { background: `linear-gradient(90deg, ${steps.map(ramp).join(',')})` },
      }),
      h('span', null, short(now.high, 2)),
    );
    host.setAttribute(
      'aria-label',
      'Norm of the gradient by lag and order. Arrow keys move through it.',
    );
    point(...at);
  };
  host.addEventListener('pointermove', (event) => {
    const rect = event.target.closest?.('rect');
    if (rect) point(Number(rect.dataset.lag), Number(rect.dataset.order));
  });
  host.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      event.key
    ];
    if (!step) return;
    event.preventDefault();
    point(at[0] + step[0], at[1] + step[1]);
  });
  const sizes = new ResizeObserver(draw);
  sizes.observe(host);
  const forget = onTheme(draw);
  return {
    element,
    show(line, all) {
      const values = all.flatMap((item) => item.byOrder.flat()).filter((value) => value > 0);
      const high = values.reduce((most, value) => Math.max(most, value), 0) || 1;
      const low = Math.max(
        values.reduce((least, value) => Math.min(least, value), high),
        high / 10 ** DECADES,
      );
      now = { line, high, low: low < high ? low : high / 10 };
      draw();
    },
    destroy() {
      sizes.disconnect();
      forget();
    },
  };
}

// Order of a row as words.
const orderText = (order) =>
  order === '0' ? 'cell path' : order === 'rest' ? 'the rest' : `${order} × h`;

function layout({ line, low, high }, width) {
  const { lags, orders, byOrder } = line;
  const cell = (width - LEFT - 8) / lags.length;
  const cells = [];
  const texts = orders.map((order, o) => ({
    x: LEFT - 10,
    y: o * ROW + ROW / 2 + 4,
    anchor: 'end',
    text: orderText(order),
  }));
  const every = Math.max(1, Math.ceil(34 / cell));
  lags.forEach((lag, l) => {
    orders.forEach((_, o) => {
      const value = byOrder[l]?.[o];
      const fill = value > 0 ? ramp(Math.log(value / low) / Math.log(high / low)) : ramp(0);
      cells.push({
        x: LEFT + l * cell,
        y: o * ROW,
        width: Math.max(cell - 1.5, 0.5),
        height: ROW - 1.5,
        fill,
        lag: l,
        order: o,
      });
    });
    if (l % every === 0)
      texts.push({
        x: LEFT + (l + 0.5) * cell,
        y: orders.length * ROW + 16,
        anchor: 'middle',
        text: short(lag),
      });
  });
  texts.push({
    x: LEFT + (width - LEFT) / 2,
    y: orders.length * ROW + 36,
    anchor: 'middle',
    text: 'lag (steps back)',
  });
  return { width, height: orders.length * ROW + BOTTOM, cells, texts };
}

function describe(line, l, o) {
  const value = line.byOrder[l]?.[o];
  const words = `lag ${short(line.lags[l])}, ${orderText(line.orders[o])}: ${short(value)}`;
  const parts = [];
  if (line.norm[l] != null) parts.push(`whole gradient ${short(line.norm[l])}`);
  if (line.shareByLag[l] != null)
    parts.push(`share of the cell path ${fixed(100 * line.shareByLag[l], 1, '%')}`);
  return parts.length ? `${words} (at this lag: ${parts.join(', ')})` : words;
}

function fileOf(now, width = 860) {
  const { height, cells, texts } = layout(now, width - 32);
  const title = `Norm by lag and order, epoch ${now.line.epoch ?? 0}`;
  return svgFile(
    width,
    height + 60,
    title,
    [
      `<text x="16" y="26" font-size="16" font-weight="600">${xml(title)}</text>`,
      '<g transform="translate(16 44)">',
      ...cells.map(
        (c) =>
          `<rect x="${c.x.toFixed(1)}" y="${c.y}" width="${c.width.toFixed(1)}" height="${c.height}" fill="${c.fill}"/>`,
      ),
      ...texts.map(
        (t) =>
          `<text x="${t.x.toFixed(1)}" y="${t.y}" text-anchor="${t.anchor}" fill="${inks().soft}">${xml(t.text)}</text>`,
      ),
      '</g>',
    ].join('\n'),
  );
}

const csvOf = (line) =>
  csv([
    ['lag', 'norm', 'cell_share', ...line.orders.map((order) => `order_${order}`)],
    ...line.lags.map((lag, l) => [
      lag,
      line.norm[l],
      line.shareByLag[l],
      ...line.orders.map((_, o) => line.byOrder[l]?.[o]),
    ]),
  ]);
