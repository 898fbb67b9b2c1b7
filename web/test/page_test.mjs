// node test/page_test.mjs REPORT_HTML_TEMPLATE OUT_DIR [NAME]
// Opens the page with generated runs in a real browser and uses it as a reader would.

import { axeTests } from './axe_cases.mjs';
import { chartTests } from './chart_cases.mjs';
import { dataTests } from './data_cases.mjs';
import { exportTests } from './export_cases.mjs';
import { Suite, startBrowser } from './harness.mjs';
import { lookTests } from './look_cases.mjs';
import { panelTests } from './panel_cases.mjs';
import { paperTests } from './paper_cases.mjs';
import { watchTests } from './watch_cases.mjs';

const [template, out, only = ''] = process.argv.slice(2);
if (!template || !out) {
  console.error('usage: node test/page_test.mjs REPORT_HTML_TEMPLATE OUT_DIR [NAME]');
  process.exit(2);
}
const browser = await startBrowser();
const suite = new Suite('Page', browser, template, out);
for (const add of [
  chartTests,
  panelTests,
  exportTests,
  dataTests,
  lookTests,
  paperTests,
  axeTests,
  watchTests,
])
  add(suite);
const failed = await suite.run(only);
await browser.close();
process.exit(failed ? 1 : 0);
