// Charts, drawn as SVG by ourselves. What they show can also be had as a table.
import { fill, h, s, sign } from './dom.js';
import { area, line, scale, thinned, ticks } from './plot.js';

const LEFT = 56;
const RIGHT = 12;
const TOP = 16;
const BOTTOM = 26;

/**
 * Draws series of `{name, points: [[x, y]…], kind: 'line' | 'area' | 'dashed', tone}` over calls. `marks` are
 * `{x, label}`; `spell` writes values; `pick(x)` is called with the call that was clicked.
 */
export function chart({ label, series, marks = [], spell, height = 240, pick }) {
	const box = h('figure', { class: 'chart' });
	const legend = h('figcaption', series.map((it) => h('span', { class: `key ${it.kind}` }, sign('', `tone-${it.tone}`), it.name)),
		marks.length > 0 && h('span', { class: 'key mark' }, sign('\u25be'), 'reductions applied'));
	const readout = h('output', { class: 'readout', 'aria-live': 'off' });
	const stage = h('div', { class: 'stage', tabindex: '0', role: 'img', 'aria-label': label });
	fill(box, legend, stage, readout);
	const xs = [...new Set(series.flatMap((it) => it.points.map(([x]) => x)))].sort((a, b) => a - b);
	let at = xs.length - 1;
	let drawing = null;

	const tell = (index) => {
		at = Math.max(0, Math.min(xs.length - 1, index));
		const x = xs[at];
		if (x === undefined) return;
		const mark = marks.find((it) => it.x === x);
		fill(readout, h('b', `Call ${x}`), series.map((it) => {
			const found = it.points.find(([there]) => there === x);
			return found && Number.isFinite(found[1]) && h('span', `${it.name} ${spell(found[1])}`);
		}), mark && h('span', { class: 'mark' }, `\u25be ${mark.label}`));
		if (drawing) {
			drawing.cross.setAttribute('x1', drawing.x(x));
			drawing.cross.setAttribute('x2', drawing.x(x));
			drawing.cross.setAttribute('visibility', 'visible');
		}
	};
	const draw = (width) => {
		drawing = drawn({ width, height, series, marks, xs, spell });
		fill(stage, drawing.svg);
	};
	const nearest = (event) => {
		if (!drawing || xs.length === 0) return 0;
		const place = event.clientX - stage.getBoundingClientRect().left;
		return xs.reduce((best, x, index) => (Math.abs(drawing.x(x) - place) < Math.abs(drawing.x(xs[best]) - place) ? index : best), 0);
	};
	stage.addEventListener('pointermove', (event) => tell(nearest(event)));
	stage.addEventListener('click', (event) => pick?.(xs[nearest(event)]));
	stage.addEventListener('focus', () => { readout.setAttribute('aria-live', 'polite'); tell(at); });
	stage.addEventListener('keydown', (event) => {
		const by = { ArrowLeft: -1, ArrowRight: 1, Home: -xs.length, End: xs.length }[event.key];
		if (by) { event.preventDefault(); event.stopPropagation(); tell(at + by); }
		if (event.key === 'Enter' && xs.length) pick?.(xs[at]);
	});
	let last = 0;
	new ResizeObserver(([{ contentRect }]) => {
		if (Math.abs(contentRect.width - last) < 1) return;
		last = contentRect.width;
		draw(Math.max(240, last));
	}).observe(stage);
	return box;
}

function drawn({ width, height, series, marks, xs, spell }) {
	const values = series.flatMap((it) => it.points.map(([, y]) => y)).filter(Number.isFinite);
	const steps = ticks(values.reduce((a, b) => Math.max(a, b), 0));
	const low = Math.min(0, values.reduce((a, b) => Math.min(a, b), 0));
	const x = scale(xs[0] ?? 0, xs.at(-1) ?? 1, LEFT, width - RIGHT);
	const y = scale(low, steps.at(-1), height - BOTTOM, TOP);
	const cross = s('line', { class: 'cross', y1: TOP, y2: height - BOTTOM, visibility: 'hidden' });
	const grid = steps.map((step) => [
		s('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(step), y2: y(step) }),
		s('text', { class: 'tick', x: LEFT - 8, y: y(step) + 4, 'text-anchor': 'end' }, spell(step)),
	]);
	const calls = ticksOfCalls(xs, Math.max(2, Math.floor(width / 110))).map((call) =>
		s('text', { class: 'tick', x: x(call), y: height - 8, 'text-anchor': 'middle' }, `${call}`));
	const shapes = series.map((it) => {
		const points = thinned(it.points.filter(([, value]) => Number.isFinite(value)), width);
		return s('path', { class: `series ${it.kind} tone-${it.tone}`, d: it.kind === 'area' ? area(points, x, y) : line(points, x, y) });
	});
	const signs = thinnedMarks(marks, Math.floor(width / 8)).map((mark) => [
		s('line', { class: 'moment', x1: x(mark.x), x2: x(mark.x), y1: TOP, y2: height - BOTTOM }),
		s('path', { class: 'sign', d: `M${x(mark.x) - 4} ${TOP - 9}h8l-4 7z` }),
	]);
	const svg = s('svg', { viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true' }, grid, calls, shapes, signs, cross);
	return { svg, x, cross };
}

function ticksOfCalls(xs, about) {
	if (xs.length < 2) return xs;
	const [first, last] = [xs[0], xs.at(-1)];
	return ticks(last - first, about).map((step) => first + Math.round(step)).filter((call, index, all) => call <= last && all.indexOf(call) === index);
}

const thinnedMarks = (marks, most) => (marks.length <= most ? marks : marks.filter((_, index) => index % Math.ceil(marks.length / most) === 0));
