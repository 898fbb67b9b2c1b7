// The table as the program wrote it: its cells are text already.

import { h } from './dom.js';
import { csv, saveText } from './export.js';
import { button } from './dom.js';
import { fileName } from './format.js';
import { hue, onTheme } from './theme.js';

export function resultTable(source) {
  const host = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Results' });
  const element = h(
    'section',
    { 'aria-label': 'Results', class: 'results' },
    h(
      'h3',
      null,
      'Results',
      button(
        'CSV',
        () => {
          const { name, table } = source.experiment;
          saveText(
            `${fileName(name, 'results')}.csv`,
            'text/csv',
            csv([table.columns, ...table.rows]),
          );
        },
        { class: 'quiet' },
      ),
    ),
    host,
  );
  const update = () => {
    const { table, settings } = source.experiment;
    element.hidden = table.rows.length === 0;
    host.replaceChildren(
      h(
        'table',
        null,
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            table.columns.map((name) => h('th', { scope: 'col' }, name)),
          ),
        ),
        h(
          'tbody',
          null,
          table.rows.map((row) =>
            h(
              'tr',
              null,
              row.map((cell, i) =>
                i ? h('td', null, cell) : h('th', { scope: 'row' }, swatch(settings, cell), cell),
              ),
            ),
          ),
        ),
      ),
    );
  };
  update();
  return { element, update, destroy: onTheme(update) };
}

function swatch(settings, name) {
  const setting = settings.find((item) => item.name === name);
  return setting && h('i', { class: 'swatch', vars: { '--hue': hue(setting.index) } });
}
