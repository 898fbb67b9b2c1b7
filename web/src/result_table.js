// The table as the program wrote it: its cells are text already.

import { button, h } from './dom.js';
import { csv, saveText } from './export.js';
import { fileName } from './format.js';
import { scrollBox } from './scroll_box.js';
import { hue, onTheme } from './theme.js';

export function resultTable(source) {
  const host = scrollBox('Table of results');
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
    host.element,
  );
  const update = () => {
    const { table, settings } = source.experiment;
    element.hidden = table.rows.length === 0;
    host.show(
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
  const forget = onTheme(update);
  const destroy = () => {
    forget();
    host.destroy();
  };
  return { element, update, destroy };
}

function swatch(settings, name) {
  const setting = settings.find((item) => item.name === name);
  return setting && h('i', { class: 'swatch', vars: { '--hue': hue(setting.index) } });
}
