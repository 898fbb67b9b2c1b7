// The other panels: tables, x-ray, captions, configs.

import { chartOf, check, counts, same } from './harness.mjs';
import {
  captionExperiment,
  generator,
  sampleExperiment,
  sampleReport,
  sampleXray,
} from './sample.mjs';

export function panelTests(suite) {
  suite.test('TableNumbers', () => {
    const experiment = sampleExperiment();
    return suite.withPage(sampleReport([experiment]), {}, async (page) => {
      const table = page.locator('section[aria-label="Results"] table');
      same(await table.locator('thead th').allTextContents(), experiment.table.columns, 'columns');
      const rows = await table.locator('tbody tr').all();
      const cells = await Promise.all(rows.map((row) => row.locator('th, td').allTextContents()));
      same(cells, experiment.table.rows, 'rows');
    });
  });

  suite.test('SeveralExperimentsAreTabs', () => {
    const other = sampleExperiment({ name: 'other', settings: ['plain'], seeds: 2, seed: 3 });
    return suite.withPage(sampleReport([sampleExperiment(), other]), {}, async (page) => {
      same(await counts(await chartOf(page, 'valid_measure')), [15, 3], 'first');
      await page.getByLabel('Show plain', { exact: true }).uncheck();
      await page.getByRole('button', { name: 'other' }).click();
      same(await counts(await chartOf(page, 'valid_measure')), [2, 1], 'second');
      await page.getByRole('button', { name: 'sample' }).click();
      same(await counts(await chartOf(page, 'valid_measure')), [10, 2], 'the first as it was left');
    });
  });

  suite.test('XrayPanels', () => {
    const experiment = sampleExperiment();
    const random = generator(5);
    const measured = [
      experiment.settings[0].runs[0],
      experiment.settings[0].runs[1],
      experiment.settings[1].runs[0],
    ];
    for (const run of measured) run.xray = sampleXray([0, 10, 20, 30], random);
    return suite.withPage(sampleReport([experiment]), {}, async (page) => {
      const share = await chartOf(page, 'cell_share');
      same(await counts(share), [3, 2], 'shares of three runs in two settings');
      same(
        await share.evaluate((element) =>
          element.chart.lines[0].y.map((y) => Math.round(10 * y) / 10),
        ),
        [20, 25, 30, 35],
        'shares',
      );
      const map = page.locator('[data-chart="heatmap"]');
      await map.scrollIntoViewIfNeeded();
      same(await map.locator('rect').count(), 8 * 5, 'a cell for each lag and order');
      const panel = page.locator('section[aria-label="Gradient x-ray"]');
      same(await panel.locator('option').count(), 3, 'runs to choose from');
      const cell = map.locator('rect[data-lag="4"][data-order="1"]');
      await cell.hover();
      const line = measured[0].xray[3];
      const said = await map.locator('.readout').textContent();
      check(
        said.startsWith(`lag 8, 1 × h: ${Number(line.states.by_order[4][1].toPrecision(4))} (`),
        `the cell's value: ${said}`,
      );
      check(
        said.includes(`share of the cell path ${(100 * line.states.cell_share[4]).toFixed(1)}%`),
        `the share: ${said}`,
      );
      const late = await cell.getAttribute('fill');
      await panel.getByLabel('Epoch').fill('0');
      check(
        (await panel.locator('output').textContent()) === 'epoch 0, detach 0.25, 100 steps',
        'the first epoch',
      );
      check((await cell.getAttribute('fill')) !== late, 'another epoch, another colour');
      check(/\d/.test(await map.locator('.scale').textContent()), 'a legend with numbers');
    });
  });

  suite.test('CaptionsAndScores', () =>
    suite.withPage(sampleReport([captionExperiment()]), {}, async (page) => {
      const panel = page.locator('section[aria-label="Captions"]');
      await panel.scrollIntoViewIfNeeded();
      const says = () => panel.locator('.says').allTextContents();
      same(
        (await says()).map((text) => text.trim()),
        ['image 474 of plain/seed-1 after 6', 'image 661 of plain/seed-1 after 6'],
        'last epoch',
      );
      await panel.getByLabel('Epoch').fill('1');
      same((await says())[0].trim(), 'image 474 of plain/seed-1 after 2', 'second epoch');
      same(await panel.locator('mark').allTextContents(), ['2', '2'], 'new words');
      await panel.locator('select').selectOption({ label: 'detach-0.25/seed-2' });
      same(
        (await says())[0].trim(),
        'image 474 of detach-0.25/seed-2 after 2',
        'another run, the same epoch',
      );
      const chart = await chartOf(page, 'scores');
      same(
        await chart.evaluate((element) => element.chart.lines.map((line) => line.name)),
        ['Bleu_1', 'Bleu_4', 'CIDEr'],
        'scores',
      );
      same(await chart.evaluate((element) => element.chart.lines[2].y[0]), 39.5, 'CIDEr times 100');
    }),
  );

  suite.test('ConfigsAndMachines', () => {
    const experiment = sampleExperiment();
    Object.assign(experiment.settings[1].runs[2], {
      status: 'diverged',
      message: 'the loss is not finite',
    });
    return suite.withPage(sampleReport([experiment]), {}, async (page) => {
      const panel = page.locator('section[aria-label="Runs"]');
      await panel.scrollIntoViewIfNeeded();
      await panel.locator('tbody').first().waitFor();
      same(
        await panel.locator('[aria-label="All runs"] tbody tr').count(),
        15,
        'a row for each run',
      );
      const row = panel.locator('tr', { hasText: 'detach-0.25/seed-3' });
      check((await row.textContent()).includes('the loss is not finite'), 'why it ended');
      check((await row.textContent()).includes('90.30%'), 'its test accuracy');
      await panel.getByLabel('Config and machine of').selectOption({ label: 'detach-0.25/seed-3' });
      same(
        await panel.locator('.differs dt').allTextContents(),
        ['detach', 'seed'],
        'what differs is marked',
      );
      check(
        (await panel.locator('.session').textContent()).includes('A test processor'),
        'the machine',
      );
    });
  });

  suite.test('WhatDiffersIsToldByTask', () => {
    const experiment = sampleExperiment({ settings: ['plain', 'detach-0.25', 'pixels'], seeds: 2 });
    const [plain, , pixels] = experiment.settings;
    for (const run of pixels.runs)
      run.config = { task: 'mnist', order: 'rows', hidden: '64', seed: run.config.seed };
    plain.runs[1].config = {}; // could not be read
    return suite.withPage(sampleReport([experiment]), {}, async (page) => {
      const panel = page.locator('section[aria-label="Runs"]');
      await panel.scrollIntoViewIfNeeded();
      await panel.locator('.differs').first().waitFor();
      const tables = await panel.locator('table.texts').all();
      same(
        await Promise.all(tables.map((table) => table.locator('tr').allInnerTexts())),
        [
          ['setting\tdetach\tseed', 'plain\t0\t1', 'detach-0.25\t0.25\t1, 2'],
          ['setting\tseed', 'pixels\t1, 2'],
        ],
        'only what differs among the runs of a task',
      );
      same(
        await panel.locator('h4').allTextContents(),
        ['What differs in copy', 'What differs in mnist', 'Machine'],
        'each table says of which task',
      );
      await panel.getByLabel('Config and machine of').selectOption({ label: 'pixels/seed-1' });
      same(await panel.locator('.differs dt').allTextContents(), ['seed'], 'and only that is marked');
    });
  });

  suite.test('TableShowsThatItScrolls', () => {
    const experiment = sampleExperiment();
    const { table } = experiment;
    for (let i = 0; i < 20; ++i) table.columns.push(`column ${i}`);
    for (const row of table.rows) while (row.length < table.columns.length) row.push('12.34 (1-2)');
    return suite.withPage(sampleReport([experiment]), {}, async (page) => {
      const results = page.locator('section[aria-label="Results"]');
      await results.scrollIntoViewIfNeeded();
      const hint = results.getByText('Scroll sideways');
      await hint.waitFor();
      const shadows = () =>
        results.locator('.edges').evaluate((frame) => [
          getComputedStyle(frame.querySelector('tbody th')).boxShadow !== 'none',
          getComputedStyle(frame, '::after').opacity === '1',
        ]);
      same(await shadows(), [false, true], 'more to the right');
      const region = results.getByRole('region', { name: 'Table of results' });
      await region.focus();
      await page.keyboard.press('ArrowRight');
      await page.waitForFunction(() => document.activeElement.scrollLeft > 1);
      await page.waitForFunction(() => document.querySelector('.edges').dataset.before === 'true');
      same(await shadows(), [true, true], 'more on both sides');
      await region.evaluate((box) => box.scrollTo(1e6, 0));
      await page.waitForFunction(() => document.querySelector('.edges').dataset.after === 'false');
      same(await shadows(), [true, false], 'more to the left');
    });
  });

  suite.test('TableThatFitsHasNoHint', () =>
    suite.withPage(sampleReport(), {}, async (page) => {
      const results = page.locator('section[aria-label="Results"]');
      await results.locator('[data-after="false"]').waitFor();
      check(!(await results.getByText('Scroll sideways').isVisible()), 'no hint');
    }),
  );

  suite.test('PanelsWithoutDataAreNotThere', () =>
    suite.withPage(sampleReport(), {}, async (page) => {
      check(!(await page.locator('section[aria-label="Captions"]').isVisible()), 'no captions');
      check(!(await page.locator('section[aria-label="Gradient x-ray"]').isVisible()), 'no x-ray');
    }),
  );
}
