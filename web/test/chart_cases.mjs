// Curves: how many, which values, and what the reader can do with them.

import { chartOf, check, close, counts, inkOfMeans, same } from './harness.mjs';
import { sampleExperiment, sampleReport } from './sample.mjs';

const experiment = sampleExperiment();
const report = sampleReport([experiment]);
const runs = experiment.settings.flatMap((setting) => setting.runs);

const lineOf = (chart, name) =>
  chart.evaluate((element, wanted) => {
    const line = element.chart.lines.find((item) => item.name === wanted);
    return line && { x: line.x, y: line.y };
  }, name);

export function chartTests(suite) {
  suite.test('CountsTheCurves', () =>
    suite.withPage(report, {}, async (page) => {
      for (const id of [
        'valid_measure',
        'valid_loss',
        'train_loss',
        'grad_norm_mean',
        'grad_norm_max',
        'clipped',
      ]) {
        const chart = await chartOf(page, id);
        same(await counts(chart), [15, 3], `runs and means of ${id}`);
        same(
          await chart.evaluate((element) => element.chart.plot.series.length - 1),
          18,
          `series of ${id}`,
        );
        const ink = await inkOfMeans(chart);
        check(Math.min(...ink) > 100, `every mean of ${id} is drawn, in ${ink} pixels`);
      }
    }),
  );

  suite.test('CurvesHaveTheValuesOfTheData', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      const run = runs[3];
      const line = await lineOf(chart, run.name);
      same(line.x, run.curves.epoch, 'epochs');
      run.curves.valid_measure.forEach((value, i) =>
        close(line.y[i], 100 * value, 1e-9, `epoch ${i + 1}`),
      );
    }),
  );

  suite.test('TheMeanReachesAsFarAsAllRuns', () =>
    suite.withPage(report, {}, async (page) => {
      const mean = await lineOf(await chartOf(page, 'valid_measure'), 'plain, mean');
      const own = experiment.settings[0].runs;
      same(mean.x.length, 56, 'epochs of the shortest run');
      for (const i of [0, 17, 55]) {
        const want = own.reduce((sum, run) => sum + run.curves.valid_measure[i], 0) / own.length;
        close(mean.y[i], 100 * want, 1e-9, `mean at epoch ${i + 1}`);
      }
    }),
  );

  suite.test('HugeValuesHaveAxesToo', () => {
    const wild = sampleExperiment();
    const { curves } = wild.settings[0].runs[0];
    const values = { train_loss: [-1e300, 1e300], grad_norm_max: [1e-250, 1e250] };
    for (const [id, ends] of Object.entries(values)) [curves[id][5], curves[id][9]] = ends;
    // No axis reaches from one to the other; the page goes on.
    [curves.valid_loss[5], curves.valid_loss[9]] = [-1.7e308, 1.7e308];
    [curves.grad_norm_mean[5], curves.grad_norm_mean[9]] = [1e-300, 1e300];
    return suite.withPage(sampleReport([wild]), {}, async (page) => {
      for (const id of ['valid_loss', 'grad_norm_mean']) await chartOf(page, id);
      for (const [id, [low, high]] of Object.entries(values)) {
        const chart = await chartOf(page, id);
        if (low < 0) await chart.getByTitle('Logarithmic y axis').click();
        const { min, max, texts } = await chart.evaluate((element) => {
          const { scales, axes } = element.chart.plot;
          return { min: scales.y.min, max: scales.y.max, texts: axes[1]._values };
        });
        check(min <= low && high <= max && max < Infinity, `${id} from ${min} to ${max}`);
        check(texts.length >= 3 && texts.length < 20, `ticks of ${id}: ${texts}`);
        for (const text of texts) check(!/[kM]$|NaN|Inf/.test(text), `a tick of ${id}: ${text}`);
      }
    });
  });

  suite.test('HoverNamesTheRunAndItsValue', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      const run = runs[7];
      const spot = await chart.evaluate((element, name) => {
        const { plot, lines } = element.chart;
        const line = lines.find((item) => item.name === name);
        const box = plot.over.getBoundingClientRect();
        return [box.left + plot.valToPos(line.x[9], 'x'), box.top + plot.valToPos(line.y[9], 'y')];
      }, run.name);
      await page.mouse.move(...spot);
      const tip = chart.locator('.tip');
      await tip.waitFor({ state: 'visible', timeout: 3000 });
      same(await tip.locator('.where').textContent(), 'epoch 10', 'place');
      same(await tip.locator('.strong .who').textContent(), run.name, 'nearest run');
      same(
        await tip.locator('.strong .value').textContent(),
        `${(100 * run.curves.valid_measure[9]).toFixed(2)}%`,
        'value',
      );
      same(await tip.locator('.row').count(), 4, 'the run and the means of three settings');
      await page.mouse.move(5, 5);
      await tip.waitFor({ state: 'hidden', timeout: 3000 });
    }),
  );

  suite.test('KeysMoveAlongALine', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      await chart.locator('.u-over').focus();
      for (let i = 0; i < 3; ++i) await page.keyboard.press('ArrowRight');
      const said = await chart.locator('[aria-live]').textContent();
      check(said.startsWith('detach-0.5, mean, epoch 3: '), `it says where it is: ${said}`);
      await page.keyboard.press('ArrowUp');
      check(
        (await chart.locator('[aria-live]').textContent()).startsWith(
          'detach-0.25, mean, epoch 3: ',
        ),
        'up changes the line',
      );
    }),
  );

  suite.test('HidesARunAndASetting', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      await page.getByLabel('Runs of plain').click();
      await page.getByLabel('Show plain/seed-2').uncheck();
      same(await counts(chart), [14, 3], 'one run hidden');
      same(await lineOf(chart, 'plain/seed-2'), undefined, 'the hidden run');
      await page.getByLabel('Show detach-0.5', { exact: true }).uncheck();
      same(await counts(chart), [9, 2], 'a setting hidden too');
      same(await counts(await chartOf(page, 'train_loss')), [9, 2], 'in every chart');
      await page.getByRole('button', { name: 'hide all' }).click();
      check(
        (await chart.getByText('No values to draw.').isVisible()) &&
          !(await chart.locator('canvas').count()),
        'nothing is left',
      );
      await page.getByRole('button', { name: 'show all' }).click();
      same(await counts(chart), [15, 3], 'all are back');
      check(await page.getByLabel('Show plain/seed-2').isChecked(), 'its box too');
      await page.getByLabel('each run').uncheck();
      same(await counts(chart), [0, 3], 'means alone');
    }),
  );

  suite.test('SwitchesTheAxis', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      for (const [label, name] of [
        ['updates', 'update'],
        ['time', 'seconds'],
        ['epochs', 'epoch'],
      ]) {
        await page.getByLabel(label, { exact: true }).check();
        same(await chart.getAttribute('data-axis'), name, 'axis');
        same((await lineOf(chart, runs[1].name)).x, runs[1].curves[name], `x in ${label}`);
        const [from, to] = await chart.evaluate((element) => [
          element.chart.plot.scales.x.min,
          element.chart.plot.scales.x.max,
        ]);
        same(
          [from, to],
          [0, Math.max(...runs.flatMap((run) => run.curves[name]))],
          `range of ${label}`,
        );
      }
    }),
  );

  suite.test('LogScale', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      const spread = () =>
        chart.evaluate((element) => {
          const { plot } = element.chart;
          return [
            plot.scales.y.distr,
            plot.valToPos(20, 'y') - plot.valToPos(40, 'y'),
            plot.valToPos(40, 'y') - plot.valToPos(80, 'y'),
          ];
        });
      same((await spread())[0], 1, 'linear at first');
      await chart.getByRole('button', { name: 'log' }).click();
      const [kind, low, high] = await spread();
      same(kind, 3, 'logarithmic');
      close(low, high, 0.01, 'doubling takes as much room everywhere');
      same(
        await chart.getByRole('button', { name: 'log' }).getAttribute('aria-pressed'),
        'true',
        'the button is down',
      );
    }),
  );

  suite.test('DragZoomsAndComesBack', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      const range = () =>
        chart.evaluate((element) => [
          element.chart.plot.scales.x.min,
          element.chart.plot.scales.x.max,
        ]);
      const box = await chart.locator('.u-over').boundingBox();
      await page.mouse.move(box.x + box.width / 4, box.y + 60);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2, box.y + 80, { steps: 4 });
      await page.mouse.up();
      const [from, to] = await range();
      close(from, 15, 0.2, 'from a quarter');
      close(to, 30, 0.2, 'to a half');
      await chart.getByRole('button', { name: 'reset zoom' }).click();
      same(await range(), [0, 60], 'all of it again');
    }),
  );

  suite.test('DrawsChanceAndThreshold', () =>
    suite.withPage(report, {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      const marks = await chart.evaluate((element) =>
        element.chart.visibleMarks().map((mark) => mark.name),
      );
      same(marks, ['chance 12.5%', 'threshold 99%'], 'marks');
    }),
  );

  suite.test('ManyRunsOpenFast', async () => {
    const many = sampleExperiment({
      settings: ['plain', 'detach-0.1', 'detach-0.25', 'detach-0.5'],
      seeds: 50,
      epochs: 600,
    });
    await suite.withPage(sampleReport([many]), {}, async (page) => {
      const opened = await page.waitForFunction(
        () =>
          ['valid_measure', 'valid_loss', 'train_loss'].every((id) =>
            document.querySelector(`[data-chart="${id}"][data-drawn]`),
          ) &&
          new Promise((done) =>
            requestAnimationFrame(() => setTimeout(() => done(performance.now()))),
          ),
      );
      const time = await opened.jsonValue();
      same(await counts(await chartOf(page, 'valid_measure')), [200, 4], 'curves');
      const moves = await page.evaluate(async () => {
        const over = document.querySelector('[data-chart="valid_measure"] .u-over');
        const box = over.getBoundingClientRect();
        const times = [];
        for (let i = 0; i < 40; ++i) {
          const start = performance.now();
          over.dispatchEvent(
            new MouseEvent('mousemove', {
              bubbles: true,
              clientX: box.left + (box.width * i) / 40,
              clientY: box.top + 20 + i,
              view: window,
            }),
          );
          void document.body.offsetHeight; // the layout counts too
          times.push(performance.now() - start);
          await new Promise(requestAnimationFrame);
        }
        return times.sort((a, b) => a - b);
      });
      console.log(
        `             200 runs x 600 epochs: drawn after ${time.toFixed(0)} ms, ` +
          `a move of the cursor takes ${moves[20].toFixed(1)} ms (longest ${moves.at(-1).toFixed(1)} ms)`,
      );
      // Bounds for a machine that is busy with other work; alone it takes a tenth of them.
      check(time < 10000, `opened within 10 s, took ${time} ms`);
      check(moves[20] < 250, `moves within 250 ms, took ${moves[20]} ms`);
    });
  });
}
