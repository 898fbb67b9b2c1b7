// Beside the charts: the x axis, what is drawn, and the settings and runs to hide or show.

import { button, h, segmented } from './dom.js';
import { AXES } from './lines.js';
import { hue, onTheme } from './theme.js';

export function controls(source, choices) {
  const groups = h('div', { class: 'groups' });
  const show = (what) => {
    choices.changed(what);
    sync();
  };
  const all = (on) => {
    choices.hiddenRuns.clear();
    choices.hiddenSettings.clear();
    if (!on)
      source.experiment.settings.forEach((setting) => choices.hiddenSettings.add(setting.name));
    show('lines');
  };
  const tick = (name, text) =>
    h(
      'label',
      { class: 'tick' },
      h('input', {
        type: 'checkbox',
        checked: choices[name],
        onchange: (event) => {
          choices[name] = event.target.checked;
          show('lines');
        },
      }),
      text,
    );

  let known = null;
  const update = () => {
    const now = JSON.stringify(
      source.experiment.settings.map((setting) => [
        setting.name,
        setting.runs.map((run) => [run.key, run.status]),
      ]),
    );
    if (now === known) return; // keeps the focus where it is
    known = now;
    groups.replaceChildren(
      ...source.experiment.settings.map((setting) => group(setting, choices, show)),
    );
  };
  const sync = () => {
    for (const box of groups.querySelectorAll('input')) box.sync();
  };
  const destroy = onTheme(() => {
    for (const mark of groups.querySelectorAll('.swatch'))
      mark.style.setProperty('--hue', hue(Number(mark.dataset.hue)));
  });
  update();

  const runs = h(
    'details',
    { class: 'runs', open: window.innerWidth > 900 },
    h('summary', null, 'Settings and runs'),
    h(
      'p',
      { class: 'both' },
      button('show all', () => all(true), { class: 'quiet' }),
      button('hide all', () => all(false), { class: 'quiet' }),
    ),
    groups,
  );
  return {
    element: h(
      'section',
      { class: 'controls', 'aria-label': 'What the charts show' },
      segmented('Horizontal axis', `axis-${source.experiment.name}`, AXES, choices.axis, (axis) => {
        choices.axis = axis;
        choices.zoom = null;
        show('lines');
      }),
      h(
        'fieldset',
        { class: 'ticks' },
        h('legend', null, 'Curves'),
        tick('means', 'mean of a setting'),
        tick('seeds', 'each run'),
      ),
      runs,
    ),
    update,
    destroy,
  };
}

function group(setting, choices, show) {
  const rows = h('div', { class: 'rows' });
  const box = checkbox(
    `Show ${setting.name}`,
    {
      read: () => !choices.hiddenSettings.has(setting.name),
      write: (on) => choices.hiddenSettings[on ? 'delete' : 'add'](setting.name),
    },
    show,
  );
  const fold = h(
    'details',
    { open: choices.openSettings.has(setting.name) },
    h('summary', { 'aria-label': `Runs of ${setting.name}` }, String(setting.runs.length)),
  );
  fold.addEventListener('toggle', () => {
    choices.openSettings[fold.open ? 'add' : 'delete'](setting.name);
    // Rows are made when they are looked at: there may be hundreds.
    if (fold.open && !rows.firstChild)
      rows.append(...setting.runs.map((run) => row(run, choices, show)));
    rows.hidden = !fold.open;
  });
  return h(
    'div',
    { class: 'group' },
    h(
      'div',
      { class: 'head' },
      h(
        'label',
        null,
        box,
        h('i', {
          class: 'swatch',
          'data-hue': setting.index,
          vars: { '--hue': hue(setting.index) },
        }),
        h('span', null, setting.name),
      ),
      fold,
    ),
    rows,
  );
}

function row(run, choices, show) {
  return h(
    'label',
    { class: 'run', title: run.folder || run.name },
    checkbox(
      `Show ${run.name}`,
      {
        read: () => !choices.hiddenRuns.has(run.key),
        write: (on) => choices.hiddenRuns[on ? 'delete' : 'add'](run.key),
      },
      show,
    ),
    h('span', null, run.name),
    run.status !== 'finished' &&
      h('small', { class: `status ${statusClass(run.status)}` }, run.status),
  );
}

export const statusClass = (status) =>
  ({ finished: 'good', 'stopped-early': 'good', diverged: 'bad', unfinished: 'open' })[status] ??
  'open';

function checkbox(label, { read, write }, show) {
  const box = h('input', {
    type: 'checkbox',
    checked: read(),
    'aria-label': label,
    onchange: () => {
      write(box.checked);
      show('lines');
    },
  });
  box.sync = () => {
    box.checked = read();
  };
  return box;
}
