// One experiment: its controls beside its panels. The panels are given a source whose experiment is
// replaced by fresh data while watching.

import { captionPanel } from './captions.js';
import { Chart } from './chart.js';
import { controls } from './controls.js';
import { button, h } from './dom.js';
import { experimentCsv, saveText } from './export.js';
import { fileName, plural } from './format.js';
import { gradientSpecs, lossSpecs, measureSpec } from './panels.js';
import { resultTable } from './result_table.js';
import { runsPanel } from './runs.js';
import { choicesOf } from './state.js';
import { xrayPanel } from './xray.js';

export function experimentView(experiment, title, alone) {
  const choices = choicesOf(experiment.name);
  const source = { experiment };
  const file = title === experiment.name ? title : `${title}-${experiment.name}`;
  const chart = (spec) => new Chart(spec, choices, file);
  const curves = [measureSpec(source, choices), ...lossSpecs(source, choices)].map(chart);
  const gradients = gradientSpecs(source, choices).map(chart);
  const side = controls(source, choices);
  const facts = h('p', { class: 'facts' });
  const table = resultTable(source);
  const xray = xrayPanel(source, choices, file);
  const captions = captionPanel(source, choices, file);
  const runs = runsPanel(source, choices);
  const parts = [side, ...curves, ...gradients, table, xray, captions, runs];
  const show = () => facts.replaceChildren(...factsOf(source.experiment));
  show();

  return {
    name: experiment.name,
    element: h(
      'div',
      { class: 'experiment' },
      h(
        'div',
        { class: 'intro' },
        // Unseen under a title that says the same: the headings below it are of the third level.
        h('h2', { class: alone && experiment.name === title && 'unseen' }, experiment.name),
        facts,
        button(
          'all data as CSV',
          () => saveText(`${fileName(file)}.csv`, 'text/csv', experimentCsv(source.experiment)),
          { class: 'quiet' },
        ),
      ),
      side.element,
      h(
        'div',
        { class: 'panels' },
        h(
          'section',
          { 'aria-label': 'Curves', class: 'charts' },
          curves.map((item) => item.element),
        ),
        table.element,
        section(
          'Gradients',
          'Norm of the gradient before clipping, over the updates of an epoch, and how many updates were clipped.',
          h(
            'div',
            { class: 'charts three' },
            gradients.map((item) => item.element),
          ),
        ),
        xray.element,
        captions.element,
        runs.element,
      ),
    ),
    update(fresh) {
      source.experiment = fresh;
      show();
      for (const part of parts) part.update();
    },
    destroy() {
      for (const part of parts) part.destroy();
    },
  };
}

export const section = (name, about, ...children) =>
  h(
    'section',
    { 'aria-label': name },
    h('h3', null, name),
    about && h('p', { class: 'hint' }, about),
    ...children,
  );

function factsOf(experiment) {
  const counts = new Map();
  for (const run of experiment.runs) counts.set(run.status, (counts.get(run.status) ?? 0) + 1);
  const states = [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
  return [
    [
      experiment.task && `task ${experiment.task}`,
      plural(experiment.settings.length, 'setting'),
      plural(experiment.runs.length, 'run') + (states && ` (${states})`),
    ]
      .filter(Boolean)
      .join(' · '),
  ];
}
