// Elements without innerHTML: text from the data only ever becomes a text node.

import { onPrint } from './print.js';

const SVG = 'http://www.w3.org/2000/svg';

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'vars') setVars(element, value);
    else if (name === 'checked' || name === 'value' || name === 'disabled') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child != null && child !== false) element.append(child);
  }
  return element;
}

// Through the CSSOM, since the page's policy forbids style attributes.
export function setVars(element, vars) {
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(name, value);
}

// The name of a folder, which may go on in a new line after each slash.
export const breakable = (name) => name.split(/(?<=\/)/).flatMap((part) => [part, h('wbr')]);

export function button(text, onclick, props) {
  return h('button', { type: 'button', onclick, ...props }, text);
}

// A row of radio buttons that looks like one control. options: [[value, text]].
export function segmented(label, name, options, value, onchange) {
  return h(
    'fieldset',
    { class: 'segmented' },
    h('legend', null, label),
    h(
      'div',
      { class: 'segments' },
      options.map(([option, text]) =>
        h(
          'label',
          null,
          h('input', {
            type: 'radio',
            name,
            value: option,
            checked: option === value,
            onchange: () => onchange(option),
          }),
          h('span', null, text),
        ),
      ),
    ),
  );
}

export function select(label, options, value, onchange) {
  const box = h(
    'select',
    { onchange: () => onchange(box.value) },
    options.map(([option, text]) => h('option', { value: option }, text)),
  );
  box.value = value;
  return h('label', { class: 'field' }, h('span', null, label), box);
}

const waiting = [];

function next() {
  // one in each task, so that the first of many is seen at once
  try {
    waiting[0]();
  } finally {
    waiting.shift();
    if (waiting.length) setTimeout(next);
  }
}

// Calls start once, when the element is about to be seen (or printed). Returns what calls it off.
export function whenSeen(element, start) {
  let open = true;
  const cancel = () => {
    open = false;
    observer.disconnect();
    forget();
  };
  const go = () => {
    if (!open) return;
    cancel();
    start();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      waiting.push(go);
      if (waiting.length === 1) setTimeout(next);
    },
    { rootMargin: '200px' },
  );
  observer.observe(element);
  const forget = onPrint((on) => on && go());
  return cancel;
}
