// The top of the page: what this is, when and by what it was made, and what was left out.

import { button, h } from './dom.js';
import { moment, plural } from './format.js';
import { chooseTheme, onTheme, themeName } from './theme.js';

export function header() {
  const title = h('h1');
  const about = h('div', { class: 'about' });
  const pill = h('span', { class: 'live', role: 'status', hidden: true });
  const notices = h('div');
  const theme = button('', () => chooseTheme(other()), { class: 'theme' });
  const other = () => (themeName() === 'dark' ? 'light' : 'dark');
  const name = () => {
    theme.textContent = themeName() === 'dark' ? '☀' : '☾';
    theme.title = `Change to ${other()}`;
    theme.setAttribute('aria-label', theme.title);
  };
  onTheme(name);
  let before = null;

  return {
    element: h(
      'header',
      { class: 'top' },
      h('div', { class: 'bar' }, h('p', { class: 'brand' }, 'hdetach report'), pill, theme),
      title,
      about,
      notices,
    ),
    update(report) {
      title.textContent = report.title;
      about.replaceChildren(
        ...report.about.map((line, i) => h('p', null, i === 0 ? h('code', null, line) : line)),
        report.made
          ? h('p', null, 'made ', h('time', { datetime: report.made }, moment(report.made)))
          : '',
      );
      const now = report.notices.join('\n');
      if (now === before) return; // leaves it open or closed as the reader had it
      before = now;
      notices.replaceChildren(report.notices.length ? noticeBox(report.notices) : '');
    },
    live(kind, text) {
      pill.hidden = false;
      pill.dataset.kind = kind;
      if (pill.textContent !== text) pill.textContent = text;
    },
  };
}

const noticeBox = (notices) =>
  h(
    'details',
    { class: 'notices', open: notices.length <= 3 },
    h('summary', null, plural(notices.length, 'notice')),
    h(
      'ul',
      null,
      notices.map((notice) => h('li', null, notice)),
    ),
  );
