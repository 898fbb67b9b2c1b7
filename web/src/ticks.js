// Ticks and ranges of axes, the same ones for the canvas and for an exported SVG.

export function niceTicks(min, max, count, smallest = 0) {
  const raw = max / Math.max(count, 1) - min / Math.max(count, 1); // max - min may be infinite
  if (!(raw > 0)) return [min];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max([1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999) * power, smallest);
  const ticks = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max + step * 1e-9; ++i) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

export function logTicks(min, max, count) {
  const decades = Math.log10(max) - Math.log10(min);
  const every = Math.max(1, Math.ceil(decades / Math.max(count, 1)));
  const mantissas =
    decades < 1 ? [] : decades < 1.2 ? [1, 2, 3, 5, 7] : decades < 2.5 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); ++power) {
    if (power % every) continue;
    for (const mantissa of mantissas) {
      const tick = Number(`${mantissa}e${power}`);
      if (tick >= min && tick <= max) ticks.push(tick);
    }
  }
  return ticks.length >= 3 ? ticks : niceTicks(min, max, 1.5 * count).filter((tick) => tick > 0);
}

const RAISED = {
  '-': '⁻',
  0: '⁰',
  1: '¹',
  2: '²',
  3: '³',
  4: '⁴',
  5: '⁵',
  6: '⁶',
  7: '⁷',
  8: '⁸',
  9: '⁹',
};

// Label of a tick among the ticks of its axis.
export function tickText(value, ticks, log = false) {
  if (value === 0) return '0';
  const power = Math.log10(Math.abs(value));
  if (log && Number.isInteger(power) && (power > 3 || power < -2)) {
    return `10${[...String(power)].map((sign) => RAISED[sign]).join('')}`;
  }
  const size = log ? Math.abs(value) : Math.max(...ticks.map(Math.abs));
  if (size >= 1e12) return value.toExponential().replace('e+', 'e').replace('-', '−');
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(6))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(6))}k`;
  if (Math.abs(value) < 1e-3) return value.toExponential().replace('e-', 'e−').replace('-', '−');
  return String(value).replace('-', '−');
}

// The span of y of the lines' points with x within [from, to], with room above and below.
export function yRange(lines, marks, { log, from, to, most }) {
  let min = Infinity;
  let max = -Infinity;
  for (const line of lines) {
    for (let i = 0; i < line.y.length; ++i) {
      if (line.x[i] < from || line.x[i] > to) continue;
      const y = line.y[i];
      if (y < min) min = y;
      if (y > max) max = y;
    }
  }
  if (min > max) [min, max] = log ? [0.1, 1] : [0, 1];
  for (const mark of marks) {
    // A line far above every curve would flatten them.
    if (mark.y > max + (max - min) || (log && mark.y <= 0)) continue;
    min = Math.min(min, mark.y);
    max = Math.max(max, mark.y);
  }
  if (log) {
    const room = Math.max(10 ** (0.04 * (Math.log10(max) - Math.log10(min))), 1.02);
    return [Math.max(min / room, Number.MIN_VALUE), Math.min(max * room, Number.MAX_VALUE)];
  }
  if (min === max) [min, max] = [min - Math.abs(min || 1) * 0.1, max + Math.abs(max || 1) * 0.1];
  const room = max * 0.05 - min * 0.05;
  const low = min >= 0 && min < 0.3 * max ? 0 : Math.max(min - room, -Number.MAX_VALUE);
  return [low, most != null && max <= most ? Math.min(max + room, most * 1.01) : max + room];
}
