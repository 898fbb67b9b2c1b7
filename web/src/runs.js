// Every run: how it went, what set it apart, and where it was trained.

import { statusClass } from './controls.js';
import { breakable, h, whenSeen } from './dom.js';
import { duration, fixed, short } from './format.js';
import { runPicker } from './run_picker.js';
import { scrollBox } from './scroll_box.js';

export function runsPanel(source, choices) {
  const overview = scrollBox('All runs');
  const differences = h('div');
  const picker = runPicker('Config and machine of', choices, 'detail', () => update());
  const detail = h('div', { class: 'detail' });
  const element = h(
    'section',
    { 'aria-label': 'Runs' },
    h('h3', null, 'Runs'),
    overview.element,
    differences,
    h('div', { class: 'card' }, h('div', { class: 'pickers' }, picker.element), detail),
  );
  let seen = false;
  let boxes = []; // of the tables of what differs
  const update = () => {
    const { runs } = source.experiment;
    element.hidden = runs.length === 0;
    if (!seen || !runs.length) return;
    const tasks = configsByTask(runs);
    overview.show(overviewTable(source.experiment));
    boxes.forEach((box) => box.destroy());
    boxes = [];
    differences.replaceChildren();
    for (const [task, values] of tasks) {
      const table = differenceTable(source.experiment, task, values);
      if (!table) continue;
      const name = tasks.size > 1 ? `What differs in ${task || 'runs without a task'}` : 'What differs';
      const box = scrollBox(name);
      box.show(table);
      boxes.push(box);
      differences.append(h('h4', null, name), box.element);
    }
    const run = picker.pick(runs);
    detail.replaceChildren(...runDetail(run, tasks.get(taskOf(run))));
  };
  const forget = whenSeen(element, () => {
    seen = true;
    update();
  });
  update();
  const destroy = () => {
    forget();
    [overview, ...boxes].forEach((box) => box.destroy());
  };
  return { element, update, destroy };
}

function overviewTable({ runs, measure }) {
  const tests = [...new Set(runs.flatMap((run) => run.test.map(([name]) => name)))];
  const skipped = (run) => run.curves.skipped.reduce((sum, value) => sum + (value ?? 0), 0);
  const skips = runs.some(skipped);
  const columns = [
    'run',
    'status',
    'epochs',
    `best ${measure.name}`,
    'at epoch',
    'time',
    'updates/s',
    ...(skips ? ['skipped'] : []),
    ...tests.map((name) => `test ${name}`),
    'message',
  ];
  return h(
    'table',
    { class: 'overview' },
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        columns.map((name) => h('th', { scope: 'col' }, name)),
      ),
    ),
    h(
      'tbody',
      null,
      runs.map((run) => {
        const { seconds, epoch, valid_measure: values } = run.curves;
        const best = values.reduce(
          (most, value, i) => (value != null && (most < 0 || value > values[most]) ? i : most),
          -1,
        );
        const test = new Map(run.test);
        return h(
          'tr',
          null,
          h('th', { scope: 'row' }, breakable(run.name)),
          h('td', null, h('span', { class: `status ${statusClass(run.status)}` }, run.status)),
          [
            run.length ? short(epoch[run.length - 1], 6) : '0',
            best < 0 ? '–' : fixed(100 * values[best], 2, measure.sign),
            best < 0 ? '–' : short(epoch[best], 6),
            duration(last(seconds)),
            short(middle(run.curves.updates_per_second), 3),
            ...(skips ? [short(skipped(run))] : []),
            ...tests.map((name) =>
              test.has(name)
                ? fixed(100 * test.get(name), 2, name === measure.name ? measure.sign : '')
                : '–',
            ),
          ].map((cell) => h('td', null, cell)),
          h('td', null, run.message),
        );
      }),
    ),
  );
}

const last = (values) => values.filter((value) => value != null).at(-1) ?? null;

function middle(values) {
  const sorted = values.filter((value) => value != null).sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? null;
}

const setOf = (run, key) => new Map(run.config).get(key);
const taskOf = (run) => setOf(run, 'task') ?? '';

// For each task, for each key of its configs, the values that its runs have, '–' where it is not
// there. A run whose config could not be read says nothing about what differs.
function configsByTask(runs) {
  const tasks = new Map();
  const known = runs.filter((run) => run.config.length);
  for (const task of new Set(known.map(taskOf))) {
    const alike = known.filter((run) => taskOf(run) === task);
    const keys = new Set(alike.flatMap((run) => run.config.map(([key]) => key)));
    const values = new Map([...keys].map((key) => [key, new Set()]));
    for (const run of alike) {
      const config = new Map(run.config);
      for (const [key, set] of values) set.add(config.get(key) ?? '–');
    }
    tasks.set(task, values);
  }
  return tasks;
}

// Null where nothing differs.
function differenceTable({ settings }, task, values) {
  const keys = [...values].filter(([, set]) => set.size > 1).map(([key]) => key);
  if (!keys.length) return null;
  const rows = settings
    .map(({ name, runs }) => ({
      name,
      runs: runs.filter((run) => run.config.length && taskOf(run) === task),
    }))
    .filter(({ runs }) => runs.length);
  const of = (runs, key) => {
    const all = [...new Set(runs.map((run) => setOf(run, key) ?? '–'))];
    return all.length > 6 ? `${all.slice(0, 5).join(', ')}, … (${all.length})` : all.join(', ');
  };
  return h(
    'table',
    { class: 'texts' },
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        ['setting', ...keys].map((key) => h('th', { scope: 'col' }, key)),
      ),
    ),
    h(
      'tbody',
      null,
      rows.map(({ name, runs }) =>
        h(
          'tr',
          null,
          h('th', { scope: 'row' }, name),
          keys.map((key) => h('td', null, of(runs, key))),
        ),
      ),
    ),
  );
}

function runDetail(run, values) {
  const pairs = (list, mark) =>
    h(
      'dl',
      null,
      list.map(([key, value]) =>
        h(
          'div',
          { class: mark?.(key) ? 'differs' : null },
          h('dt', null, key),
          h('dd', null, value),
        ),
      ),
    );
  return [
    h('p', { class: 'hint' }, [run.folder, run.status, run.message].filter(Boolean).join(' · ')),
    run.config.length ? pairs(run.config, (key) => values?.get(key)?.size > 1) : '',
    ...run.sessions.map((session, i) =>
      h(
        'div',
        { class: 'session' },
        h('h4', null, run.sessions.length > 1 ? `Machine, session ${i + 1}` : 'Machine'),
        pairs(session),
      ),
    ),
  ];
}
