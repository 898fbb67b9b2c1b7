// Numbers and times as people read them.

export function short(value, digits = 4) {
  // 4 significant digits, no trailing zeros
  if (value == null || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4)
    return value
      .toExponential(2)
      .replace('e+', 'e')
      .replace(/\.?0+e/, 'e');
  if (size >= 10 ** (digits - 1)) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(digits)));
}

export const fixed = (value, digits, sign = '') =>
  value == null ? '–' : `${value.toFixed(digits)}${sign}`;

export function duration(seconds) {
  if (seconds == null) return '–';
  if (seconds < 120) return `${short(seconds, 3)} s`;
  if (seconds < 7200) return `${short(seconds / 60, 3)} min`;
  return `${short(seconds / 3600, 3)} h`;
}

export function moment(iso) {
  // in the reader's own time zone; as given when it is no time
  const time = new Date(iso);
  if (!iso || Number.isNaN(time.getTime())) return iso;
  return time.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}

export const plural = (count, noun) =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;

export function fileName(...parts) {
  // letters, digits, dot and dash alone
  const name = parts
    .filter(Boolean)
    .join('-')
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9.]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[-.]+|[-.]+$/g, '');
  return name.slice(0, 100) || 'report';
}
