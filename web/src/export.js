// A chart or all the data as a file: SVG and PNG of what is seen, CSV of what it is drawn from.

import { button, h } from './dom.js';
import { fileName } from './format.js';
import { chartSvg } from './svg.js';

export function exportMenu(chart) {
  const name = () => fileName(chart.file, chart.spec.of?.() ?? '', chart.spec.id);
  return menu(`Export ${chart.spec.title}`, [
    ['SVG', () => saveText(`${name()}.svg`, 'image/svg+xml', chartSvg(chart))],
    ['PNG', () => savePng(`${name()}.png`, chartSvg(chart))],
    ['CSV', () => saveText(`${name()}.csv`, 'text/csv', chartCsv(chart))],
  ]);
}

export function menu(label, items) {
  const element = h(
    'details',
    { class: 'menu' },
    h('summary', { class: 'quiet', 'aria-label': label }, 'export'),
    h(
      'div',
      { class: 'items' },
      items.map(([text, act]) =>
        button(text, () => {
          element.open = false;
          act();
        }),
      ),
    ),
  );
  element.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') element.open = false;
  });
  const outside = (event) => {
    if (!element.contains(event.target)) element.open = false;
  };
  element.addEventListener('toggle', () => {
    if (element.open) document.addEventListener('pointerdown', outside);
    else document.removeEventListener('pointerdown', outside);
  });
  element.addEventListener('focusout', (event) => {
    if (event.relatedTarget && !element.contains(event.relatedTarget)) element.open = false;
  });
  return element;
}

export function chartCsv(chart) {
  const rows = [['setting', 'line', 'kind', chart.spec.axis(), chart.spec.id]];
  for (const line of chart.lines) {
    line.x.forEach((x, i) => rows.push([line.setting?.name, line.name, line.kind, x, line.y[i]]));
  }
  return csv(rows);
}

// Everything that was recorded by epoch, a row for each run and epoch.
export function experimentCsv(experiment) {
  const names = Object.keys(experiment.runs[0]?.curves ?? { epoch: [] });
  const scores = [...new Set(experiment.runs.flatMap((run) => Object.keys(run.scores)))];
  const rows = [['experiment', 'setting', 'run', 'seed', 'status', ...names, ...scores]];
  for (const run of experiment.runs) {
    for (let i = 0; i < run.length; ++i) {
      rows.push([
        experiment.name,
        run.setting.name,
        run.name,
        run.seed,
        run.status,
        ...names.map((name) => run.curves[name][i]),
        ...scores.map((name) => run.scores[name]?.[i]),
      ]);
    }
  }
  return csv(rows);
}

export const csv = (rows) => rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');

function cell(value) {
  if (value == null) return '';
  if (typeof value === 'number') return String(value);
  // A spreadsheet would run a text that begins like this as a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function saveText(name, type, text) {
  saveBlob(name, new Blob([text], { type: `${type};charset=utf-8` }));
}

function saveBlob(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = h('a', { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export async function savePng(name, text, scale = 2) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h('canvas', {
    width: image.naturalWidth * scale,
    height: image.naturalHeight * scale,
  });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => saveBlob(name, blob), 'image/png');
}
