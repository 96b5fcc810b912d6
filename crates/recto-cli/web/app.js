// The frame of the inspector: where you are, colours, keys.
import { session, signOut } from './api.js';
import { button, dialog, fill, h } from './dom.js';
import { read } from './route.js';
import * as conversations from './conversations.js';
import * as conversation from './conversation.js';
import * as signin from './signin.js';

const main = document.getElementById('main');
const live = document.getElementById('live');
let shown = null;
let route = null;

const shell = {
	crumbs(...items) {
		fill(document.getElementById('crumbs'), h('ol', items.map((item) => h('li', item))));
	},
	title(text) {
		document.title = text ? `${text} \u00b7 Recto` : 'Recto';
	},
	live(isLive) {
		live.hidden = isLive === null;
		live.classList.toggle('on', isLive === true);
		live.lastElementChild.textContent = isLive ? 'live' : 'connecting';
	},
};

function show() {
	const next = read(location.hash);
	if (shown?.update?.(next)) {
		route = next;
		return;
	}
	shown?.end?.();
	shell.live(null);
	route = next;
	const view = next.view === 'conversation' ? conversation : conversations;
	shown = view.mount(fill(main), next, shell);
}

function askForKey() {
	if (shown?.isSignIn) return;
	shown?.end?.();
	shell.live(null);
	shell.crumbs();
	shown = { ...signin.mount(fill(main), () => { shown = null; start(); }), isSignIn: true };
}

async function start() {
	try {
		const now = await session();
		signOutButton(now.needs_key && now.tenant);
		if (now.needs_key && !now.tenant) return askForKey();
	} catch { /* The view says it better. */ }
	show();
}

function signOutButton(isNeeded) {
	document.getElementById('sign-out')?.remove();
	if (!isNeeded) return;
	const leave = button('Sign out', async () => { await signOut().catch(() => {}); location.reload(); }, { class: 'quiet', id: 'sign-out' });
	document.getElementById('theme').before(leave);
}

const THEMES = ['system', 'light', 'dark'];
const THEME_SIGNS = { system: '\u25d0', light: '\u25cb', dark: '\u25cf' };
const THEME_WORDS = { system: 'as the system has them', light: 'light', dark: 'dark' };

function theme(next) {
	const now = document.documentElement.dataset.theme ?? 'system';
	const chosen = next ? THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] : now;
	if (chosen === 'system') delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = chosen;
	try { localStorage.setItem('recto.theme', chosen); } catch { /* It holds for this page alone. */ }
	const toggle = document.getElementById('theme');
	toggle.textContent = THEME_SIGNS[chosen];
	toggle.setAttribute('aria-label', `Colours: ${THEME_WORDS[chosen]}`);
	toggle.title = `Colours: ${THEME_WORDS[chosen]}`;
}

const KEYS = [
	['Everywhere', [['?', 'these keys'], ['t', 'light, dark, or as the system has it'], ['g', 'all conversations'], ['Esc', 'close what is open']]],
	['In lists', [['\u2193 \u2191', 'next, previous row (also j, k)'], ['Page Down, Page Up', 'a screen further, back'], ['Home, End', 'first, last row'], ['Enter', 'open the row']]],
	['Conversations', [['/', 'search']]],
	['A conversation', [['1 \u2026 5', 'Page, Turn, Money, What if, Sessions'], ['[ ]', 'the call before, the call after'], ['{ }', 'the first call, the newest call'],
		['n N', 'next, previous entry that is not shown as it was said'], ['c', 'to the cache line']]],
	['An entry', [['e', 'bring it back onto the page'], ['p', 'pin it']]],
];

function help() {
	dialog('Keyboard', KEYS.map(([title, keys]) => [h('h3', title), h('dl', { class: 'keys' }, keys.map(([key, what]) => [h('dt', h('kbd', key)), h('dd', what)]))]));
}

addEventListener('hashchange', show);
addEventListener('recto:signed-out', askForKey);
addEventListener('keydown', (event) => {
	if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
	if (event.target.matches?.('input, select, textarea')) {
		if (event.key === 'Escape') event.target.blur();
		return;
	}
	if (document.querySelector('dialog[open]')) return;
	const act = { '?': help, t: () => theme(true), g: () => { location.hash = '#/'; } }[event.key] ?? (shown?.key && (() => shown.key(event)));
	if (!act) return;
	if (act() !== false && (event.key.length === 1 || event.key === 'Escape')) event.preventDefault();
});
document.getElementById('theme').addEventListener('click', () => theme(true));
document.getElementById('help').addEventListener('click', help);
document.getElementById('skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
theme(false);
start();
