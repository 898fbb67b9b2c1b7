// The gradient x-ray: how much of the gradient took the cell path, over training and by lag.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { fixed, plural } from './format.js';
import { heatMap } from './heatmap.js';
import { runLines } from './lines.js';
import { runPicker } from './run_picker.js';
import { slider } from './slider.js';

export function xrayPanel(source, choices, file) {
  const share = new Chart(
    {
      id: 'cell_share',
      title: 'Share of the cell path',
      unit: '% over the weights',
      height: 260,
      class: 'wide',
      legend: true,
      most: 100,
      axis: () => choices.axis,
      lines: (log) =>
        runLines(
          measured(source.experiment),
          choices,
          (run) => run.xray.map((line) => line.cellShare),
          { times: 100, log },
        ),
      format: (y) => fixed(y, 2, '%'),
    },
    choices,
    file,
  );
  const map = heatMap(file);
  const tools = h('div', { class: 'pickers' });
  const element = h(
    'section',
    { 'aria-label': 'Gradient x-ray' },
    h('h3', null, 'Gradient x-ray'),
    h(
      'p',
      { class: 'hint' },
      'The gradient split by how often its path went through h. Order 0 is the cell path alone; its share is its norm over the sum of the norms of all orders.',
    ),
    h('div', { class: 'charts' }, share.element),
    h('div', { class: 'card' }, tools, map.element),
  );

  let lines = [];
  const pace = slider(
    'Epoch',
    (i) => lineText(lines[i]),
    (i) => {
      choices.picked.xrayLine = i === lines.length - 1 ? null : i; // null: the newest one
      map.show(lines[i], lines);
    },
  );
  const picker = runPicker('Run', choices, 'xrayRun', () => update());
  tools.append(picker.element, pace.element);
  const update = () => {
    const runs = source.experiment.runs.filter((run) => run.xray.length);
    element.hidden = runs.length === 0;
    share.update();
    if (!runs.length) return;
    lines = picker.pick(runs).xray.filter((line) => line.byOrder.length);
    pace.element.hidden = map.element.hidden = !lines.length;
    if (lines.length) pace.set(lines.length, choices.picked.xrayLine ?? lines.length - 1);
  };
  update();
  return { element, update, destroy: () => [share, map].forEach((item) => item.destroy()) };
}

function lineText(line) {
  const parts = [line.epoch == null ? 'untrained network' : `epoch ${line.epoch}`];
  if (line.detach != null) parts.push(`detach ${line.detach}`);
  if (line.weightScale != null) parts.push(`weights × ${line.weightScale}`);
  if (line.steps != null) parts.push(plural(line.steps, 'step'));
  return parts.join(', ');
}

// The experiment as lines.js wants it, with the epochs of the x-ray in place of those of training.
function measured(experiment) {
  return {
    settings: experiment.settings.map((setting) => {
      setting.measured ??= {
        name: setting.name,
        index: setting.index,
        runs: setting.runs
          .filter((run) => run.xray.length)
          .map((run) => ({ ...run, ...times(run) })),
      };
      return setting.measured;
    }),
  };
}

function times(run) {
  const place = new Map(run.curves.epoch.map((epoch, i) => [epoch, i]));
  const at = (line, name) =>
    line.epoch === 0 ? 0 : (run.curves[name][place.get(line.epoch)] ?? null);
  return {
    length: run.xray.length,
    curves: {
      epoch: run.xray.map((line, i) => line.epoch ?? i),
      update: run.xray.map((line) => line.update ?? at(line, 'update')),
      seconds: run.xray.map((line) => at(line, 'seconds')),
    },
  };
}
