// Which charts there are: what each one draws and how its values read.

import { fixed, short } from './format.js';
import { runLines } from './lines.js';

function curve(source, choices, name, rest, times = 1) {
  return {
    id: name,
    height: 240,
    axis: () => choices.axis,
    lines: (log) => runLines(source.experiment, choices, (run) => run.curves[name], { times, log }),
    format: (y) => short(y),
    ...rest,
  };
}

export function measureSpec(source, choices) {
  const { measure } = source.experiment;
  const percent = measure.sign === '%';
  return {
    ...curve(
      source,
      choices,
      'valid_measure',
      {
        title: `Validation ${measure.name}`,
        unit: percent ? '%' : '× 100',
        class: 'wide',
        legend: true,
        height: 380,
        most: percent ? 100 : null,
        format: (y) => fixed(y, 2, measure.sign),
      },
      100,
    ),
    get marks() {
      const { chance, threshold } = source.experiment;
      return [
        [chance, 'chance'],
        [threshold, 'threshold'],
      ]
        .filter(([y]) => y != null)
        .map(([y, name]) => ({ y: 100 * y, name: `${name} ${short(100 * y)}${measure.sign}` }));
    },
  };
}

export const lossSpecs = (source, choices) => [
  curve(source, choices, 'valid_loss', { title: 'Validation loss', log: 'auto' }),
  curve(source, choices, 'train_loss', { title: 'Training loss', log: 'auto' }),
];

export const gradientSpecs = (source, choices) => [
  curve(source, choices, 'grad_norm_mean', { title: 'Mean norm', log: true }),
  curve(source, choices, 'grad_norm_max', { title: 'Largest norm', log: true }),
  curve(
    source,
    choices,
    'clipped',
    {
      title: 'Clipped updates',
      unit: '%',
      most: 100,
      format: (y) => fixed(y, 1, '%'),
    },
    100,
  ),
];
