// Report data as the program makes it (DATA.md), from a fixed seed, and the page filled with it.

import { readFileSync, writeFileSync } from 'node:fs';

// A small generator of our own, so that every machine makes the same data.
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function sampleRun(setting, seed, epochs, random) {
  const rate = 0.5 + random();
  const at = Array.from({ length: epochs }, (_, i) => i);
  const level = (i) => 1 - Math.exp((-3 * rate * (i + 1)) / 60);
  const noise = (size) => size * (random() - 0.5);
  return {
    name: `${setting}/seed-${seed}`,
    folder: `runs/sample/${setting}/seed-${seed}`,
    seed,
    status: 'finished',
    message: 'all epochs done',
    curves: {
      epoch: at.map((i) => i + 1),
      update: at.map((i) => 1000 * (i + 1)),
      seconds: at.map((i) => (1.5 + 0.1 * seed) * (i + 1)),
      train_loss: at.map((i) => 0.3 * (1.02 - level(i)) + noise(0.004)),
      valid_loss: at.map((i) => 0.3 * (1.03 - level(i)) + noise(0.004)),
      valid_measure: at.map((i) => 0.125 + 0.85 * level(i) + noise(0.02)),
      grad_norm_mean: at.map(() => 0.2 + noise(0.1)),
      grad_norm_max: at.map(() => 3 + noise(1)),
      clipped: at.map(() => 0.05 + noise(0.02)),
      skipped: at.map(() => 0),
      updates_per_second: at.map(() => 600 + noise(10)),
    },
    scores: {},
    samples: [],
    test: { accuracy: 0.9 + 0.001 * seed },
    xray: [],
    config: {
      task: 'copy',
      hidden: '128',
      detach: setting.replace(/\D*/, '') || '0',
      seed: String(seed),
    },
    sessions: [{ commit: 'abc123', cpu: 'A test processor', gpu: 'none', threads: 2 }],
  };
}

export function sampleExperiment({
  name = 'sample',
  settings = ['plain', 'detach-0.25', 'detach-0.5'],
  seeds = 5,
  epochs = 60,
  seed = 7,
} = {}) {
  const random = generator(seed);
  return {
    name,
    task: 'copy',
    measure: { name: 'accuracy', sign: '%' },
    chance: 0.125,
    threshold: 0.99,
    table: {
      columns: ['setting', 'paper', 'best', 'epochs to 99%'],
      rows: settings.map((setting, i) => [
        setting,
        String(35 + i),
        `41.${i} (38.1-44.0)`,
        `${120 + i}`,
      ]),
    },
    settings: settings.map((setting) => ({
      name: setting,
      // Not all runs are as long, as when some stop early.
      runs: Array.from({ length: seeds }, (_, i) =>
        sampleRun(setting, i + 1, epochs - 2 * (i % 3), random),
      ),
    })),
  };
}

export function sampleReport(experiments = [sampleExperiment()]) {
  return {
    format: 1,
    title: 'sample',
    about: [
      'hdetach report runs/sample -o report.html',
      'hdetach 0.1.0 (abc123), a test processor',
    ],
    made: '2026-11-16T02:40:00Z',
    watching: false,
    notices: [],
    experiments,
  };
}

const LAGS = [0, 1, 2, 4, 8, 16, 32, 64];
const ORDERS = ['0', '1', '2', '3', 'rest'];

export function sampleXray(epochs, random) {
  return epochs.map((epoch, place) => {
    const byOrder = LAGS.map((lag) =>
      ORDERS.map(
        (_, order) =>
          (0.6 ** Math.abs(order - 1) *
            Math.exp(-lag * (0.01 + 0.02 * order)) *
            (0.8 + 0.4 * random())) /
          (1 + place),
      ),
    );
    const sums = byOrder.map((row) => row.reduce((sum, value) => sum + value, 0));
    return {
      epoch,
      update: 1000 * epoch,
      weight_scale: null,
      detach: 0.25,
      steps: 100,
      orders: ORDERS,
      weights: { norm: 1.2, by_order: [0.3, 0.5, 0.2, 0.1, 0.1], cell_share: 0.2 + 0.05 * place },
      states: {
        lags: LAGS,
        norm: sums,
        by_order: byOrder,
        cell_share: byOrder.map((row, l) => row[0] / sums[l]),
      },
    };
  });
}

export function captionExperiment(epochs = 6) {
  const experiment = sampleExperiment({
    name: 'captions',
    settings: ['plain', 'detach-0.25'],
    seeds: 2,
    epochs,
  });
  Object.assign(experiment, {
    task: 'caption',
    measure: { name: 'CIDEr', sign: '' },
    chance: null,
    threshold: null,
  });
  for (const run of experiment.settings.flatMap((setting) => setting.runs)) {
    const { length } = run.curves.epoch;
    const curve = (top) => Array.from({ length }, (_, i) => top * (1 - 0.5 ** (i + 1)));
    run.scores = { Bleu_1: curve(0.68), Bleu_4: curve(0.26), CIDEr: curve(0.79) };
    run.samples = [474, 661].map((image) => ({
      image_id: image,
      captions: Array.from({ length }, (_, i) => `image ${image} of ${run.name} after ${i + 1}`),
    }));
    run.test = { CIDEr: 0.793, Bleu_4: 0.26 };
  }
  return experiment;
}

// The page with data in it, as the program writes it.
export function fillPage(template, file, data) {
  const json = typeof data === 'string' ? data : JSON.stringify(data);
  const page = readFileSync(template, 'utf8');
  if (page.split('@REPORT_DATA@').length !== 2)
    throw new Error(`${template} does not hold the place for the data once`);
  writeFileSync(
    file,
    page.replace('@REPORT_DATA@', () => json.replaceAll('<', '\\u003c')),
  );
}
