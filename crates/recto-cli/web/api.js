// The public API, and nothing but it. See docs/api.md.
import { button, dialog, h } from './dom.js';

// Why something was not answered.
export class Problem extends Error {
	constructor(status, body) {
		super(body.detail || body.title || `the server answered ${status}`);
		Object.assign(this, { status, kind: body.kind ?? '', code: body.code ?? '', title: body.title, detail: body.detail, hints: body.hints ?? [] });
	}
}

const NOT_REACHED = {
	kind: 'unreachable',
	title: 'The server does not answer',
	detail: 'Nothing came back from recto serve. It may have ended, or it is being started again.',
	hints: ['Look whether `recto serve` still runs where you started it.'],
};

// A key that was given for changes. It is in memory alone: it goes with the page.
let key = null;

// Returns a path of the API; each part stands encoded.
export const path = (...parts) => `/api/v1/${parts.map((part) => encodeURIComponent(part)).join('/')}`;

// Returns the path of a conversation, or of something in it.
export const conversationPath = (conversation, ...parts) => path('conversations', conversation, ...parts);

// Returns the path of a reader of a conversation, or of something of it.
export const readerPath = (it, ...parts) => conversationPath(it.conversation, 'readers', it.reader, ...parts);

function query(parameters) {
	const given = Object.entries(parameters ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '');
	return given.length ? `?${given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}` : '';
}

async function asked(method, address, { body, signal, as = 'json' } = {}) {
	const headers = key && method !== 'GET' ? { 'x-recto-key': key } : {};
	let response;
	try {
		response = await fetch(address, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), credentials: 'same-origin' });
	} catch (error) {
		if (error.name === 'AbortError') throw error;
		throw new Problem(0, NOT_REACHED);
	}
	if (response.ok) return as === 'text' ? { text: await response.text(), agrees: response.headers.get('x-recto-agrees') } : response.json();
	let told = {};
	try { told = await response.json(); } catch { /* What is no JSON tells no more than its status. */ }
	if (response.status === 401) dispatchEvent(new Event('recto:signed-out'));
	throw new Problem(response.status, told);
}

// Asks for something.
export const get = (address, parameters, signal) => asked('GET', address + query(parameters), { signal });

// Asks for bytes.
export const text = (address, signal) => asked('GET', address, { signal, as: 'text' });

// Asks for something that needs a body, or changes something; if a key is needed for that, asks the reader for it.
export async function send(method, address, body, signal) {
	try {
		return await asked(method, address, { body, signal });
	} catch (problem) {
		if (problem.kind !== 'read_only') throw problem;
		key = await keyFromReader();
		if (!key) throw problem;
		try {
			return await asked(method, address, { body, signal });
		} catch (second) {
			key = null;
			throw second;
		}
	}
}

// Who is signed in, and whether anybody must be.
export async function session() {
	try {
		return await asked('GET', '/session');
	} catch (problem) {
		if (problem.status === 404) return { needs_key: false, can_change: true };
		throw problem;
	}
}

// Signs in with a key: from then on a cookie that no script can read opens what there is to see.
export const signIn = (given) => asked('POST', '/session', { body: { key: given } });

// Signs out.
export const signOut = () => asked('POST', '/session', { body: {} });

function keyFromReader() {
	return new Promise((done) => {
		const field = h('input', { type: 'password', autocomplete: 'off', id: 'key-again', required: true, maxlength: 512 });
		const form = h('form', { method: 'dialog', class: 'stack' },
			h('p', 'You are signed in for looking only. This needs the key itself; it is held by this page until you close it, and kept nowhere.'),
			h('label', { for: 'key-again' }, 'Key'), field,
			h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary' }, 'Go on'), button('Cancel', () => { field.value = ''; box.close(); })));
		const box = dialog('A key is needed', form);
		// Forms are never sent anywhere.
		form.addEventListener('submit', (event) => { event.preventDefault(); box.close(); });
		box.addEventListener('close', () => done(field.value.trim() || null));
	});
}

// Reads all pages of a list, up to a bound.
export async function all(address, parameters, of, by, most, signal) {
	const found = [];
	let from = parameters[by];
	for (let page = 0; page < 100 && found.length < most; page++) {
		const answer = await get(address, { ...parameters, [by]: from }, signal);
		found.push(...answer[of]);
		if (answer.next === undefined || answer.next === null) break;
		from = answer.next;
	}
	return found;
}
