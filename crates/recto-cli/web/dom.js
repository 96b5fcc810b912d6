// Elements. Text gets on the page as text, and in no other way; nothing here reads markup.
import { FATES } from './fates.js';
import { visible } from './text.js';

const SVG = 'http://www.w3.org/2000/svg';

function filled(element, props, children) {
	for (const [name, value] of Object.entries(props ?? {})) {
		if (value === undefined || value === null || value === false) continue;
		if (name === 'on') for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
		else if (name === 'class') element.setAttribute('class', value);
		else if (name === 'href') element.setAttribute('href', ownPlace(value));
		else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected') element[name] = value;
		else if (/^on/i.test(name) || name === 'style' || name === 'src' || name === 'srcdoc') throw new Error(`${name} is not set here`);
		else element.setAttribute(name, value === true ? '' : visible(value));
	}
	put(element, children);
	return element;
}

// Links lead to places of this page alone.
function ownPlace(place) {
	if (!String(place).startsWith('#')) throw new Error('a link of ours begins with #');
	return place;
}

function put(element, children) {
	for (const child of children.flat(Infinity)) {
		if (child === undefined || child === null || child === false || child === '') continue;
		element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
	}
}

// Attributes may be left out: they are the one argument that is an object, and neither an element nor a list.
function made(element, [first, ...rest]) {
	const isProps = first && typeof first === 'object' && !(first instanceof Node) && !Array.isArray(first);
	return isProps ? filled(element, first, rest) : filled(element, null, [first, ...rest]);
}

// Makes an element. Strings among its children become text whose every letter can be seen.
export const h = (tag, ...given) => made(document.createElement(tag), given);

// Makes an element of a drawing.
export const s = (tag, ...given) => made(document.createElementNS(SVG, tag), given);

// Puts these in the place of everything that an element held.
export function fill(element, ...children) {
	element.replaceChildren();
	put(element, children);
	return element;
}

// Makes a button.
export const button = (label, act, props) => h('button', { type: 'button', ...props, on: { click: act } }, label);

// Says something in passing, to eyes and to screen readers.
export function toast(text, tone = 'plain') {
	const box = document.getElementById('toasts');
	const note = h('p', { class: `toast ${tone}` }, text);
	box.append(note);
	while (box.children.length > 3) box.firstChild.remove();
	setTimeout(() => note.remove(), 7_000);
}

// What is shown while something comes.
export const loading = (what) => h('div', { class: 'loading', role: 'status' }, sign(''), ` ${what}\u2026`);

// What is shown where there is nothing: why, and what to do.
export const empty = (title, ...more) => h('div', { class: 'empty' }, h('h2', title), ...more);

// What is shown where something failed.
export function failed(problem, again) {
	const hints = (problem.hints ?? []).slice(0, 5);
	return h('div', { class: 'empty failed', role: 'alert' },
		h('h2', problem.title || 'That did not work'),
		h('p', problem.detail || problem.message),
		hints.length > 0 && h('ul', hints.map((hint) => h('li', hint))),
		h('p', { class: 'meta' }, [problem.code, problem.status && `status ${problem.status}`].filter(Boolean).join(' \u00b7 ')),
		again && button('Try again', again, { class: 'primary' }));
}

// A part of a view, under its title.
export const block = (title, note, ...content) => h('section', { class: 'block' }, h('h2', title, note && h('small', note)), ...content);

// A number that stands out.
export const card = (label, value, note, tone = '') => h('div', { class: `card ${tone}` }, h('small', label), h('b', value), h('span', note));

// A sign that is said in words beside it.
export const sign = (text, name) => h('i', { 'aria-hidden': 'true', class: name }, text);

// What became of an entry: a sign and a word, in its colour.
export const fateMark = (fate, before = '') => h('b', { class: `fate fate-${fate}` }, sign((FATES[fate] ?? FATES.unknown).sign), ` ${before} ${(FATES[fate] ?? FATES.unknown).word}`);

// A table. Columns are `[name, class]`; a row is a list of cells, or `{cells, ...attributes}`; its first cell names it.
export function table(columns, rows, props) {
	const cell = (value, index) => h(index ? 'td' : 'th', { scope: index ? null : 'row', class: columns[index]?.[1] }, value);
	return h('table', { class: 'rows', ...props },
		h('thead', h('tr', columns.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))),
		h('tbody', rows.map((row) => {
			const { cells, ...more } = Array.isArray(row) ? { cells: row } : row;
			return h('tr', more, cells.map(cell));
		})));
}

// Copies a text, and says so.
export async function copy(text, what) {
	try {
		await navigator.clipboard.writeText(text);
		toast(`${what} copied`);
	} catch {
		toast(`${what} could not be copied: the browser does not let this page`, 'bad');
	}
}

// Opens a dialog that closes by Escape, by its button, or by a click beside it.
export function dialog(title, ...content) {
	const close = button('\u00d7', () => box.close(), { class: 'quiet close', 'aria-label': 'Close' });
	const box = h('dialog', { class: 'dialog', 'aria-label': title }, h('header', h('h2', title), close), h('div', { class: 'inside' }, ...content));
	box.addEventListener('click', (event) => { if (event.target === box) box.close(); });
	box.addEventListener('close', () => box.remove());
	document.body.append(box);
	box.showModal();
	return box;
}
