// What a captioner says about the same images as it learns, and its scores by epoch.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { fixed } from './format.js';
import { compact } from './lines.js';
import { runPicker } from './run_picker.js';
import { slider } from './slider.js';

export function captionPanel(source, choices, file) {
  let run = null;
  let epoch = 0; // its place in the run
  const scores = new Chart(
    {
      id: 'scores',
      title: 'Scores of the run',
      unit: '× 100',
      height: 300,
      class: 'wide',
      legend: true,
      axis: () => choices.axis,
      lines: (log) =>
        Object.entries(run?.scores ?? {})
          .map(([name, curve], i) => ({
            kind: 'score',
            name,
            hue: i,
            ...compact(run.curves[choices.axis], curve, 100, log),
          }))
          .filter((line) => line.x.length),
      format: (y) => fixed(y, 1),
      of: () => run.name,
      at: () => run?.curves[choices.axis][epoch],
    },
    choices,
    file,
  );
  const tools = h('div', { class: 'pickers' });
  const list = h('ul', { class: 'captions' });
  const element = h(
    'section',
    { 'aria-label': 'Captions' },
    h('h3', null, 'Captions'),
    h(
      'p',
      { class: 'hint' },
      'What the run says about the same validation images after each epoch; new words are marked.',
    ),
    h('div', { class: 'card' }, tools, list),
    h('div', { class: 'charts' }, scores.element),
  );

  const pace = slider(
    'Epoch',
    (i) => `epoch ${run.curves.epoch[i] ?? i + 1}`,
    (i) => {
      epoch = i;
      choices.picked.captionEpoch = i === count(run) - 1 ? null : i; // null: the newest one
      list.replaceChildren(...run.samples.map((sample) => captionOf(sample, i)));
      scores.plot?.redraw(false);
    },
  );
  const picker = runPicker('Run', choices, 'captionRun', () => update());
  tools.append(picker.element, pace.element);
  const update = () => {
    const runs = source.experiment.runs.filter((item) => item.samples.length && count(item));
    element.hidden = runs.length === 0;
    if (!runs.length) return;
    run = picker.pick(runs);
    scores.element.hidden = !Object.keys(run.scores).length;
    scores.update();
    pace.set(count(run), choices.picked.captionEpoch ?? count(run) - 1);
  };
  update();
  return { element, update, destroy: () => scores.destroy() };
}

const count = (run) => Math.max(0, ...run.samples.map((sample) => sample.captions.length));

function captionOf(sample, i) {
  const before = new Set((sample.captions[i - 1] ?? sample.captions[i] ?? '').split(' '));
  const words = (sample.captions[i] || '–').split(' ');
  return h(
    'li',
    null,
    h('span', { class: 'image' }, `image ${sample.image}`),
    h(
      'span',
      { class: 'says' },
      words.flatMap((word) => [before.has(word) ? word : h('mark', null, word), ' ']),
    ),
  );
}
