// A page that follows runs: fresh data, the reader's choices kept, and the program's end.

import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chartOf, check, counts, guard, same } from './harness.mjs';
import { fillPage, sampleExperiment, sampleReport } from './sample.mjs';

export function watchTests(suite) {
  suite.test('FollowsRunsAndSaysWhenTheyEnd', async () => {
    const shorter = { ...sampleReport([sampleExperiment({ epochs: 20 })]), watching: true };
    const longer = {
      ...sampleReport([sampleExperiment({ epochs: 40, seeds: 6 })]),
      watching: true,
    };
    const file = join(suite.out, 'watched.html');
    fillPage(suite.template, file, shorter);
    let data = shorter;
    let asked = 0;
    const server = createServer((request, answer) => {
      if (request.url === '/data.json') ++asked;
      answer.end(request.url === '/data.json' ? JSON.stringify(data) : readFileSync(file));
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const home = `http://127.0.0.1:${server.address().port}/`;
    const context = await suite.browser.newContext({ viewport: { width: 1280, height: 900 } });
    const faults = [];
    try {
      const page = await context.newPage();
      page.opened = home;
      guard(page, faults, (url) => url === `${home}data.json`);
      await page.clock.install();
      await page.goto(home);
      await page.clock.runFor(500);
      const chart = await chartOf(page, 'valid_measure');
      same(await counts(chart), [15, 3], 'as it was opened');
      await page.getByLabel('Show detach-0.5', { exact: true }).uncheck();
      await page.getByLabel('updates', { exact: true }).check();
      data = longer;
      await page.clock.runFor(3100);
      await page.waitForSelector('[data-chart="valid_measure"][data-curves="12"]', {
        timeout: 5000,
      });
      same(await counts(chart), [12, 2], 'new runs are there, the hidden setting is not');
      same(await chart.evaluate((element) => element.chart.lines[0].x.length), 40, 'more epochs');
      check(await page.getByLabel('updates', { exact: true }).isChecked(), 'the axis is kept');
      check(
        (await page.locator('.live').textContent()).startsWith('updated'),
        'it says it is live',
      );
      check(asked >= 1, 'it asked for the data');
      same(faults, [], 'quiet while the program runs');
      server.closeAllConnections?.();
      await new Promise((done) => server.close(done));
      await page.clock.runFor(3100);
      await page.locator('.live[data-kind="gone"]').waitFor({ timeout: 5000 });
      same(await counts(chart), [12, 2], 'what it had stays');
    } finally {
      await context.close();
      server.close();
    }
    rmSync(file);
    same(
      faults.filter((fault) => fault.startsWith('error')),
      [],
      'no errors',
    );
  });
}
