// The page: reads its data, shows it, and follows it while it is watched.

import { parseReport } from './data.js';
import { h } from './dom.js';
import { experimentView } from './experiment.js';
import { header } from './header.js';
import { startPrint } from './print.js';
import { startTheme } from './theme.js';
import { watch } from './watch.js';

const page = document.getElementById('page');
const main = h('main', { id: 'main' });
const top = header();
let report;
let chosen = null; // name of the experiment that is shown
let view = null;

// A fault in one kind of data must not leave an empty page.
function show(fresh) {
  try {
    draw(fresh);
  } catch (error) {
    console.error(error);
    view = null;
    main.replaceChildren(
      h('p', { class: 'empty', role: 'alert' }, `This data cannot be shown: ${error.message}`),
    );
  }
}

function draw(fresh) {
  report = fresh;
  document.title = `${report.title} · hdetach`;
  top.update(report);
  const { experiments } = report;
  const experiment = experiments.find((item) => item.name === chosen) ?? experiments[0];
  tabs.update(experiments, experiment);
  if (!experiment) {
    view?.destroy();
    view = null;
    main.replaceChildren(
      h(
        'p',
        { class: 'empty' },
        report.watching
          ? 'No runs yet. They appear here as they begin.'
          : 'There are no runs to show.',
      ),
    );
    return;
  }
  main.setAttribute('aria-label', experiment.name);
  if (view && view.name === experiment.name) {
    view.update(experiment);
    return;
  }
  view?.destroy();
  view = experimentView(experiment, report.title, experiments.length === 1);
  main.replaceChildren(view.element);
}

function experimentTabs() {
  const element = h('nav', { class: 'tabs', 'aria-label': 'Experiments' });
  let names = null;
  const update = (experiments, current) => {
    chosen = current?.name ?? null;
    element.hidden = experiments.length < 2;
    const now = JSON.stringify(experiments.map((item) => item.name));
    if (now !== names) {
      names = now;
      element.replaceChildren(
        ...experiments.map((item) =>
          h(
            'button',
            {
              type: 'button',
              onclick: () => {
                chosen = item.name;
                show(report);
              },
            },
            item.name,
          ),
        ),
      );
    }
    experiments.forEach((item, i) =>
      element.children[i].setAttribute('aria-current', item === current ? 'page' : 'false'),
    );
  };
  return { element, update };
}

const tabs = experimentTabs();
startTheme();
page.replaceChildren(
  top.element,
  tabs.element,
  main,
  h(
    'footer',
    null,
    'Drag across a chart to zoom, double-click to see all of it. This page needs no network.',
  ),
);
show(parseReport(document.getElementById('report-data')?.textContent ?? ''));
startPrint();
document.documentElement.dataset.ready = 'true';
if (report.watching) watch(show, top.live);
