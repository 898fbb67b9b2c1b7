// Files the reader can save.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartOf, check, same } from './harness.mjs';
import { generator, sampleExperiment, sampleReport, sampleXray } from './sample.mjs';

async function save(page, frame, kind, out) {
  await frame.locator('.menu summary').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    frame.getByRole('button', { name: kind }).click(),
  ]);
  const file = join(out, download.suggestedFilename());
  await download.saveAs(file);
  return [download.suggestedFilename(), readFileSync(file)];
}

// Elements of an SVG by selector, counted by the browser's own XML parser.
const countIn = (page, text, selector) =>
  page.evaluate(
    ([source, wanted]) => {
      const file = new DOMParser().parseFromString(source, 'image/svg+xml');
      return file.querySelector('parsererror') ? -1 : file.querySelectorAll(wanted).length;
    },
    [text, selector],
  );

export function exportTests(suite) {
  const experiment = sampleExperiment({ seeds: 3 });
  experiment.settings[0].runs[0].name = 'a "quoted", <odd> & name';
  experiment.settings[0].runs[1].name = '=1+1';
  experiment.settings[0].runs[0].xray = sampleXray([5, 10], generator(2));
  const report = { ...sampleReport([experiment]), title: '../etc: a <title>' };

  suite.test('SavesAChartAsSvg', () =>
    suite.withPage(report, {}, async (page) => {
      const [name, bytes] = await save(
        page,
        await chartOf(page, 'valid_measure'),
        'SVG',
        suite.out,
      );
      same(name, 'etc-a-title-sample-valid-measure.svg', 'a safe name');
      const text = bytes.toString();
      same(await countIn(page, text, 'path.run'), 9, 'a path for each run');
      same(await countIn(page, text, 'path.mean'), 3, 'and each mean');
      same(await countIn(page, text, 'image, foreignObject, script'), 0, 'vectors alone');
      const points = await page.evaluate(
        (source) =>
          new DOMParser()
            .parseFromString(source, 'image/svg+xml')
            .querySelector('path.run')
            .getAttribute('d')
            .split('L').length,
        text,
      );
      same(points, 60, 'every epoch is a point');
      check(text.includes('threshold 99%'), 'marks are named');
    }),
  );

  suite.test('SavesAChartAsPng', () =>
    suite.withPage(report, {}, async (page) => {
      const [name, bytes] = await save(page, await chartOf(page, 'train_loss'), 'PNG', suite.out);
      check(name.endsWith('.png'), name);
      same(bytes.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n', 'a PNG');
      same(bytes.readUInt32BE(16), 1720, 'twice as wide as the SVG');
    }),
  );

  suite.test('SavesAChartAsCsv', () =>
    suite.withPage(report, {}, async (page) => {
      const [, bytes] = await save(page, await chartOf(page, 'train_loss'), 'CSV', suite.out);
      const rows = bytes.toString().split('\r\n');
      same(rows[0], 'setting,line,kind,epoch,train_loss', 'head');
      same(
        rows[1],
        `plain,"a ""quoted"", <odd> & name",run,1,${experiment.settings[0].runs[0].curves.train_loss[0]}`,
        'first row',
      );
      const second = rows.find((row) => row.includes('1+1'));
      check(second.startsWith("plain,'=1+1,run,1,"), `no formula for a spreadsheet: ${second}`);
      const want = experiment.settings.flatMap((setting) => [
        ...setting.runs.map((run) => run.curves.epoch.length),
        56,
      ]);
      same(
        rows.length,
        2 + want.reduce((sum, length) => sum + length, 0),
        'rows of runs and means',
      );
    }),
  );

  suite.test('SavesAllDataAsCsv', () =>
    suite.withPage(report, {}, async (page) => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'all data as CSV' }).click(),
      ]);
      const rows = readFileSync(await download.path(), 'utf8')
        .trim()
        .split('\r\n');
      same(
        rows[0].split(',').slice(0, 9),
        [
          'experiment',
          'setting',
          'run',
          'seed',
          'status',
          'epoch',
          'update',
          'seconds',
          'train_loss',
        ],
        'head',
      );
      same(rows.length, 1 + 3 * (60 + 58 + 56), 'a row for each run and epoch');
      const { curves } = experiment.settings[2].runs[2];
      same(
        rows.at(-1).split(',').slice(2, 9),
        [
          'detach-0.5/seed-3',
          '3',
          'finished',
          '56',
          '56000',
          String(curves.seconds[55]),
          String(curves.train_loss[55]),
        ],
        'last row',
      );
    }),
  );

  suite.test('SavesTheHeatMap', () =>
    suite.withPage(report, {}, async (page) => {
      const map = page.locator('[data-chart="heatmap"]');
      await map.scrollIntoViewIfNeeded();
      const [name, bytes] = await save(page, map, 'SVG', suite.out);
      same(name, 'etc-a-title-sample-xray-epoch-10.svg', 'name');
      same(await countIn(page, bytes.toString(), 'g rect'), 40, 'cells');
      const [, table] = await save(page, map, 'CSV', suite.out);
      same(
        table.toString().split('\r\n')[0],
        'lag,norm,cell_share,order_0,order_1,order_2,order_3,order_rest',
        'head',
      );
    }),
  );
}
