// Numbers, money and times in words.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const NONE = '\u2013';

// Returns a count with its thousands apart.
export const count = (number) => (Number.isFinite(number) ? whole.format(number).replace(/,/g, '\u202f') : NONE);

// Returns a count in few letters: 940, 12.3k, 1.2M.
export function short(number) {
	if (!Number.isFinite(number)) return NONE;
	const size = Math.abs(number);
	if (size < 1_000) return String(Math.round(number));
	if (size < 99_950) return `${(number / 1_000).toFixed(1)}k`;
	if (size < 999_500) return `${Math.round(number / 1_000)}k`;
	return `${(number / 1_000_000).toFixed(size < 9_950_000 ? 2 : 1)}M`;
}

// Returns dollars, with as many places as small sums need.
export function usd(sum) {
	if (!Number.isFinite(sum)) return NONE;
	const size = Math.abs(sum);
	const places = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 3 : size >= 0.0001 ? 5 : 7;
	const [units, rest] = size.toFixed(places).split('.');
	return `${sum < 0 ? '\u2212' : ''}$${count(Number(units))}.${rest}`;
}

// Returns a share in percent.
export function percent(part, all) {
	if (!Number.isFinite(part) || !Number.isFinite(all) || all === 0) return NONE;
	const share = (100 * part) / all;
	const size = Math.abs(share);
	if (size > 0 && size < 0.1) return '<0.1\u202f%';
	return `${share.toFixed(size < 10 && size > 0 ? 1 : 0)}\u202f%`;
}

// Returns a difference with its sign.
export function signed(number, spell = count) {
	if (!Number.isFinite(number)) return NONE;
	if (number === 0) return '\u00b10';
	return `${number > 0 ? '+' : '\u2212'}${spell(Math.abs(number))}`;
}

// Returns how long ago something was.
export function ago(then, now) {
	if (!Number.isFinite(then)) return NONE;
	const seconds = Math.max(0, Math.round((now - then) / 1000));
	if (seconds < 10) return 'just now';
	if (seconds < 60) return `${seconds} s ago`;
	if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
	if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
	const days = Math.floor(seconds / 86_400);
	return days < 60 ? `${days} d ago` : new Date(then).toISOString().slice(0, 10);
}

// Returns a moment, to the second, in the reader's own time.
export const moment = (then) => (Number.isFinite(then) ? new Date(then).toLocaleString() : NONE);

// Returns "1 entry", "2 entries".
export const many = (number, one, more) => `${count(number)} ${number === 1 ? one : more}`;

// Reads a size as people write it: 32000, 32k, 1m. `null` is nothing given, `NaN` is none.
export function size(text) {
	const given = String(text ?? '').trim().toLowerCase().replace(/[_\s,\u202f]/g, '');
	if (given === '') return null;
	const found = /^(\d+(?:\.\d+)?)([km]?)$/.exec(given);
	if (!found) return NaN;
	const factor = { '': 1, k: 1_000, m: 1_000_000 }[found[2]];
	return Math.round(Number(found[1]) * factor);
}
