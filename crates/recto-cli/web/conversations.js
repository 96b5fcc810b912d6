// All conversations: search, filter, and what changes while you look.
import { conversationPath, get, path } from './api.js';
import { button, empty, failed, fill, h, loading } from './dom.js';
import { ago, count, many, moment, percent, short, usd } from './format.js';
import { VirtualList } from './list.js';
import { follow } from './live.js';
import { address } from './route.js';

const PAGE = 200;
// How many rows are held at once.
const ROWS_MAX = 20_000;
// More changes than this at once are read as a new list.
const CHANGES_MAX = 8;

const FILTERS = [
	['all', 'All', () => true],
	['calls', 'With calls', (row) => row.readers.some((it) => it.turns > 0)],
	['saving', 'Saving', (row) => row.readers.some((it) => (it.last?.less ?? 0) > 0)],
	['forks', 'Forks', (row) => Boolean(row.from)],
];

// Returns the reader that called last, or the first.
const reading = (row) => [...row.readers].sort((a, b) => (b.last?.at ?? 0) - (a.last?.at ?? 0))[0];

const number = (value, note, tone = '') => h('span', { class: `number ${tone}` }, h('b', value), h('small', note));

export function mount(root, route, shell) {
	shell.title('Conversations');
	shell.crumbs();
	const state = { rows: [], sight: [], next: null, isComplete: true, filter: 'all', search: '', order: 'updated', loading: false, problem: null };
	let asking = null;
	let timer = null;

	const search = h('input', { type: 'search', id: 'search', placeholder: 'Search names and titles', autocomplete: 'off', spellcheck: 'false', maxlength: 200 });
	const order = h('select', { id: 'order' }, h('option', { value: 'updated' }, 'newest first'), h('option', { value: 'name' }, 'by name'));
	const filters = h('div', { class: 'segments', role: 'group', 'aria-label': 'Filter' }, FILTERS.map(([name, label]) =>
		button(label, () => { state.filter = name; sift(); }, { 'data-filter': name, 'aria-pressed': String(name === 'all') })));
	const sum = h('p', { class: 'meta sum', role: 'status' });
	const list = new VirtualList({ label: 'Conversations', guess: 76, className: 'conversations', render: (index) => row(state.sight[index]), act: (index) => open(state.sight[index]), needs: (first, end) => { if (end >= state.sight.length - 20) more(); } });
	const body = h('div', { class: 'body' }, loading('Reading what there is'));
	fill(root, h('section', { class: 'view', 'aria-labelledby': 'title' },
		h('div', { class: 'heading' }, h('h1', { id: 'title' }, 'Conversations'), sum),
		h('div', { class: 'tools' }, h('label', { class: 'grow', for: 'search' }, h('span', { class: 'hidden' }, 'Search'), search), filters, h('label', { for: 'order', class: 'inline' }, h('span', { class: 'meta' }, 'Order'), order)),
		h('div', { class: 'columns', 'aria-hidden': 'true' }, h('span', 'Conversation'), h('span', 'Log'), h('span', 'Calls'), h('span', 'Last page'), h('span', 'Left out'), h('span', 'Last call')),
		body));

	const open = (it) => { if (it) location.hash = address({ conversation: it.conversation, reader: reading(it)?.reader ?? 'main' }); };

	function row(it) {
		const reader = reading(it);
		const last = reader?.last;
		const full = (last?.tokens ?? 0) + (last?.less ?? 0);
		return h('a', { class: 'conversation', href: address({ conversation: it.conversation, reader: reader?.reader ?? 'main' }) },
			h('span', { class: 'what' }, h('b', it.title || it.conversation),
				h('small', it.conversation, it.from && ` \u00b7 fork of ${it.from.conversation}`, ` \u00b7 `, h('time', { title: moment(it.updated) }, ago(it.updated, Date.now())))),
			number(short(it.tokens), many(it.entries, 'entry', 'entries')),
			number(count(reader?.turns ?? 0), it.readers.length > 1 ? many(it.readers.length, 'reader', 'readers') : 'calls'),
			number(last ? short(last.tokens) : '\u2013', last ? `${percent(last.cached, last.tokens)} cached` : 'no call yet'),
			number(last?.less ? short(last.less) : '\u2013', last?.less ? `${percent(last.less, full)} less` : 'nothing', 'saved'),
			number(last ? usd(last.usd) : '\u2013', last ? 'input' : ''));
	}

	function sift(keep = false) {
		const accepts = FILTERS.find(([name]) => name === state.filter)[2];
		state.sight = state.rows.filter(accepts);
		for (const it of filters.children) it.setAttribute('aria-pressed', String(it.dataset.filter === state.filter));
		const all = state.next === null ? count(state.sight.length) : `${count(state.sight.length)}+`;
		fill(sum, state.problem ? '' : `${all} ${state.sight.length === 1 ? 'conversation' : 'conversations'}${state.isComplete ? '' : '; there are more: the first 10\u202f000 names were looked through, order by name reaches all'}`);
		if (state.sight.length === 0) return fill(body, nothing());
		if (list.element.parentNode !== body) fill(body, list.element);
		if (keep) {
			const top = list.element.scrollTop;
			list.grow(state.sight.length);
			list.refresh();
			list.element.scrollTop = top;
		} else list.reset(state.sight.length);
	}

	function nothing() {
		if (state.problem) return failed(state.problem, () => load());
		if (state.loading) return loading('Reading what there is');
		if (state.search) return empty(`Nothing is called \u201c${state.search}\u201d`, h('p', 'The search looks at names and titles, in any case.'), button('Show all', () => { search.value = ''; typed(); }));
		if (state.filter !== 'all') return empty('None of these', h('p', 'No conversation passes this filter.'), button('Show all', () => { state.filter = 'all'; sift(); }));
		return empty('No conversation yet',
			h('p', 'Point an agent at this server, and it appears here as it speaks:'),
			h('pre', `OPENAI_BASE_URL=${location.origin}/v1\nANTHROPIC_BASE_URL=${location.origin}`),
			h('p', 'Or keep what is on disk already: ', h('code', 'recto import transcripts/'), '. To look around first: ', h('code', 'recto serve --demo'), '.'));
	}

	async function load() {
		asking?.abort();
		asking = new AbortController();
		Object.assign(state, { loading: true, problem: null });
		try {
			const answer = await get(path('conversations'), { search: state.search, order: state.order, limit: PAGE }, asking.signal);
			Object.assign(state, { rows: answer.conversations, next: answer.next ?? null, isComplete: answer.is_complete, loading: false });
			sift();
		} catch (problem) {
			if (problem.name === 'AbortError') return;
			Object.assign(state, { rows: [], next: null, loading: false, problem });
			sift();
		}
	}

	async function more() {
		if (state.loading || state.next === null || state.rows.length >= ROWS_MAX) return;
		state.loading = true;
		try {
			const answer = await get(path('conversations'), { search: state.search, order: state.order, limit: PAGE, after: state.next }, asking.signal);
			const known = new Set(state.rows.map((it) => it.conversation));
			state.rows.push(...answer.conversations.filter((it) => !known.has(it.conversation)));
			state.next = answer.next ?? null;
		} catch (problem) {
			if (problem.name === 'AbortError') return;
			state.next = null;
		}
		state.loading = false;
		sift(true);
	}

	function typed() {
		clearTimeout(timer);
		timer = setTimeout(() => { state.search = search.value.trim(); load(); }, 180);
	}

	async function heard(events) {
		const gone = new Set(events.filter((it) => it.type === 'gone').map((it) => it.conversation));
		const changed = [...new Set(events.filter((it) => it.type === 'changed').map((it) => it.conversation))].filter((it) => !gone.has(it));
		if (gone.size) state.rows = state.rows.filter((it) => !gone.has(it.conversation));
		if (changed.length > CHANGES_MAX || events.some((it) => it.type === 'lagging')) return load();
		const fresh = await Promise.all(changed.map((name) => get(conversationPath(name)).catch(() => null)));
		const matches = (it) => !state.search || `${it.conversation}\n${it.title}`.toLowerCase().includes(state.search.toLowerCase());
		for (const it of fresh.filter(Boolean).filter(matches)) {
			const at = state.rows.findIndex((other) => other.conversation === it.conversation);
			if (state.order === 'updated') {
				if (at >= 0) state.rows.splice(at, 1);
				state.rows.unshift(it);
			} else if (at >= 0) state.rows[at] = it;
		}
		if (gone.size || fresh.some(Boolean)) sift(true);
	}

	search.addEventListener('input', typed);
	search.addEventListener('keydown', (event) => { if (event.key === 'ArrowDown') { event.preventDefault(); list.go(0); } });
	order.addEventListener('change', () => { state.order = order.value; load(); });
	const stop = follow(path('events'), null, heard, (isLive) => shell.live(isLive));
	load();
	return {
		key(event) {
			if (event.key === '/') return search.focus();
			if (event.key === 'j' || event.key === 'ArrowDown') return list.go(list.current);
			return false;
		},
		end() { asking?.abort(); clearTimeout(timer); stop(); list.end(); },
	};
}
