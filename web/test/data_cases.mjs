// Data that is hostile, broken, empty or newer than the page.

import { chartOf, check, counts, same } from './harness.mjs';
import { sampleExperiment, sampleReport } from './sample.mjs';

const HOSTILE =
  '</script><script>window.harmed=1;alert(1)</script><img src=x onerror="window.harmed=2">';

export function dataTests(suite) {
  suite.test('AScriptAsANameIsHarmless', () => {
    const experiment = sampleExperiment({ name: HOSTILE, settings: [HOSTILE, 'plain'], seeds: 2 });
    const run = experiment.settings[0].runs[0];
    Object.assign(run, {
      name: HOSTILE,
      folder: HOSTILE,
      status: HOSTILE,
      message: HOSTILE,
      config: { [HOSTILE]: HOSTILE },
      sessions: [{ [HOSTILE]: HOSTILE }],
      test: { [HOSTILE]: 0.5 },
      scores: { [HOSTILE]: [0.1, 0.2] },
      samples: [{ image_id: HOSTILE, captions: [HOSTILE, HOSTILE] }],
    });
    experiment.measure.name = HOSTILE;
    experiment.table.rows[0][1] = HOSTILE;
    const report = {
      ...sampleReport([experiment]),
      title: HOSTILE,
      about: [HOSTILE],
      made: HOSTILE,
      notices: [HOSTILE],
    };
    return suite.withPage(report, {}, async (page) => {
      same(await page.locator('h1').textContent(), HOSTILE, 'the title is text');
      const chart = await chartOf(page, 'valid_measure');
      await page.getByText('2', { exact: true }).first().click(); // opens the runs of the setting
      const box = await chart.locator('.u-over').boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 4);
      await chartOf(page, 'scores');
      const runs = page.locator('section[aria-label="Runs"]');
      await runs.scrollIntoViewIfNeeded();
      await runs.locator('dl').first().waitFor();
      same(
        await page.evaluate(() => [
          window.harmed ?? null,
          document.querySelectorAll('img, script:not(#report-data)').length,
        ]),
        [null, 1],
        'nothing ran',
      );
    });
  });

  suite.test('NoticesAreShown', () => {
    const report = {
      ...sampleReport(),
      notices: ['runs/x/metrics.jsonl:7: not JSON; the line is left out', 'second'],
    };
    return suite.withPage(report, {}, async (page) => {
      check(await page.getByText('the line is left out').isVisible(), 'a notice is seen');
      await page.getByText('2 notices').click();
      check(!(await page.getByText('the line is left out').isVisible()), 'and folds away');
    });
  });

  suite.test('ANewerFormatIsSaidAndStillShown', () =>
    suite.withPage({ ...sampleReport(), format: 2 }, {}, async (page) => {
      check(
        await page.getByText('The data has format 2, this page knows format 1').isVisible(),
        'notice',
      );
      same(await counts(await chartOf(page, 'valid_measure')), [15, 3], 'curves all the same');
    }),
  );

  const odd = {
    Nothing: {},
    Null: 'null',
    AList: '[]',
    NotJson: '{"format": 1, "experi',
    NoText: '',
    NoExperiments: { ...sampleReport([]) },
    EmptyExperiment: sampleReport([{}]),
    NoRuns: sampleReport([{ name: 'x', settings: [{ name: 'plain', runs: [] }, {}] }]),
    OddTypes: sampleReport([
      {
        name: 3,
        measure: 'x',
        table: { columns: 'a', rows: [1, ['b', null]] },
        settings: { a: 1 },
      },
      null,
      'text',
    ]),
    NullRuns: sampleReport([
      {
        settings: [
          {
            runs: [
              null,
              {},
              { curves: null, xray: [null, {}, { weights: {}, states: {} }], samples: [null] },
            ],
          },
        ],
      },
    ]),
  };
  for (const [name, data] of Object.entries(odd)) {
    suite.test(`ShowsSomethingFor${name}`, () =>
      suite.withPage(data, {}, async (page) => {
        check((await page.locator('h1').textContent()).length > 0, 'a title');
        check(
          (await page.locator('main').innerText()).trim().length > 10,
          'words, not an empty page',
        );
      }),
    );
  }

  suite.test('RunsWithNothingYetAndNulls', () => {
    const experiment = sampleExperiment({ seeds: 2 });
    const [first, second] = experiment.settings[0].runs;
    Object.assign(first, { status: 'waiting', curves: {} });
    second.curves.valid_measure[5] = null;
    second.curves.valid_loss = [null, null];
    delete second.config;
    delete second.test;
    experiment.settings[1].runs[0].curves = { valid_measure: [0.5] };
    return suite.withPage(sampleReport([experiment]), {}, async (page) => {
      const chart = await chartOf(page, 'valid_measure');
      same(await counts(chart), [5, 3], 'runs that began');
      same(
        await chart.evaluate((element) => element.chart.lines[0].x.length),
        57,
        'the epoch without a value is left out',
      );
      same(await counts(await chartOf(page, 'valid_loss')), [3, 2], 'runs with a loss');
      const runs = page.locator('section[aria-label="Runs"]');
      await runs.scrollIntoViewIfNeeded();
      check(
        (await runs.locator('tr', { hasText: 'plain/seed-1' }).textContent()).includes('waiting'),
        'its status',
      );
    });
  });
}
