// A chart as an SVG file: paths, not pixels, from the same lines, ranges and ticks as on the canvas.

import { keysOf } from './legend.js';
import { hue, inks, strokeOf } from './theme.js';
import { tickText } from './ticks.js';

const MARGIN = { top: 44, right: 20, bottom: 62, left: 64 };
const LEGEND_ROW = 20;

export const xml = (text) =>
  String(text)
    .replace(/[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const text = (x, y, words, extra = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${extra}>${xml(words)}</text>`;

export function svgFile(width, height, title, body) {
  const { ink, paper } = inks();
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif" font-size="12" fill="${ink}">\n` +
    `<title>${xml(title)}</title>\n<rect width="${width}" height="${height}" fill="${paper}"/>\n${body}\n</svg>\n`
  );
}

export function chartSvg(chart, width = 860, plotHeight = 380) {
  const { lines, spec } = chart;
  const legend = layLegend(keysOf(lines), width);
  const box = {
    left: MARGIN.left,
    top: MARGIN.top,
    width: width - MARGIN.left - MARGIN.right,
    height: plotHeight,
  };
  const height = MARGIN.top + plotHeight + MARGIN.bottom + legend.rows * LEGEND_ROW - 4;
  const thin = lines.filter((line) => line.kind === 'run').length;
  const scale = { x: scaleX(chart, box), y: scaleY(chart, box) };
  const parts = [
    text(
      MARGIN.left,
      24,
      spec.unit ? `${spec.title} (${spec.unit})` : spec.title,
      'font-size="16" font-weight="600"',
    ),
    axes(chart, box, scale),
    `<clipPath id="plot-${spec.id}"><rect x="${box.left}" y="${box.top - 2}" width="${box.width}" height="${box.height + 4}"/></clipPath>`,
    `<g clip-path="url(#plot-${spec.id})" fill="none" stroke-linejoin="round" stroke-linecap="round">`,
    ...lines.map((line) => pathOf(line, scale, strokeOf(line, thin))),
    '</g>',
    ...chart
      .visibleMarks()
      .map((mark) =>
        text(
          box.left + box.width,
          markTextY(scale.y(mark.y), box.top),
          mark.name,
          `text-anchor="end" font-size="11" fill="${inks().soft}" stroke="${inks().paper}" stroke-width="3" paint-order="stroke"`,
        ),
      ),
    ...legend.items.map(({ key, x, row }) => {
      const y = MARGIN.top + plotHeight + MARGIN.bottom + row * LEGEND_ROW;
      return `<rect x="${x}" y="${y - 5}" width="16" height="3" rx="1.5" fill="${hue(key.hue)}"/>${text(x + 22, y, key.name)}`;
    }),
  ];
  return svgFile(width, height, spec.title, parts.join('\n'));
}

// Above its line, or below where the top of the chart is too near.
export const markTextY = (y, top, scale = 1) =>
  y - top < 16 * scale ? y + 14 * scale : y - 5 * scale;

const scaleX = (chart, box) => (x) =>
  box.left + ((x - chart.x[0]) / (chart.x[1] - chart.x[0])) * box.width;

function scaleY(chart, box) {
  const way = chart.log ? Math.log : (y) => y;
  const [low, high] = chart.y.map(way);
  return (y) => box.top + box.height - ((way(y) - low) / (high - low)) * box.height;
}

function pathOf(line, scale, stroke) {
  const points = line.x.map((x, i) => `${scale.x(x).toFixed(2)} ${scale.y(line.y[i]).toFixed(2)}`);
  const dashes = stroke.dash.length ? ` stroke-dasharray="${stroke.dash.join(' ')}"` : '';
  // One point is a dot: a line of no length with round ends.
  return (
    `<path class="${line.kind}" d="M${points.join('L')}${points.length === 1 ? 'h0.01' : ''}" stroke="${stroke.colour}" ` +
    `stroke-width="${points.length === 1 ? 4 : stroke.width}" stroke-opacity="${stroke.alpha}"${dashes}><title>${xml(line.name)}</title></path>`
  );
}

function axes(chart, box, scale) {
  const { soft, grid, line } = inks();
  const right = box.left + box.width;
  const bottom = box.top + box.height;
  const parts = [];
  const rule = (x0, y0, x1, y1, colour, extra = '') =>
    parts.push(
      `<line x1="${x0}" y1="${y0.toFixed(1)}" x2="${x1}" y2="${y1.toFixed(1)}" stroke="${colour}"${extra}/>`,
    );
  const yTicks = chart.yTicks(box.height);
  for (const tick of yTicks) {
    rule(box.left, scale.y(tick), right, scale.y(tick), grid);
    parts.push(
      text(
        box.left - 8,
        scale.y(tick) + 4,
        tickText(tick, yTicks, chart.log),
        `text-anchor="end" fill="${soft}"`,
      ),
    );
  }
  rule(box.left, bottom, right, bottom, line);
  const xTicks = chart.xTicks(box.width);
  for (const tick of xTicks) {
    parts.push(
      text(
        scale.x(tick * chart.unit.divide),
        bottom + 18,
        tickText(tick, xTicks),
        `text-anchor="middle" fill="${soft}"`,
      ),
    );
  }
  parts.push(
    text(
      box.left + box.width / 2,
      bottom + 36,
      chart.unit.label,
      `text-anchor="middle" fill="${soft}"`,
    ),
  );
  for (const mark of chart.visibleMarks()) {
    rule(box.left, scale.y(mark.y), right, scale.y(mark.y), soft, ' stroke-dasharray="4 4"');
  }
  return parts.join('\n');
}

function layLegend(keys, width) {
  const items = [];
  let [x, row] = [MARGIN.left, 0];
  for (const key of keys) {
    const size = 22 + 7 * key.name.length + 24;
    if (x > MARGIN.left && x + size > width - MARGIN.right) [x, row] = [MARGIN.left, row + 1];
    items.push({ key, x, row });
    x += size;
  }
  return { items, rows: keys.length ? row + 1 : 0 };
}
