// The page as the model read it, beside the log: left what was said, right what was read, and between them what became of
// each entry, and why.
import { conversationPath, get } from './api.js';
import { button, failed, fateMark, fill, h, sign } from './dom.js';
import { Drawer } from './entry.js';
import { FATES, RUN_MAX, pass, reason, rows, span, tally } from './fates.js';
import { count, many } from './format.js';
import { VirtualList } from './list.js';
import { beginning, partText } from './text.js';
import { Kept, chunks } from './virtual.js';

const CHUNK = 100;
const CHUNKS_MAX = 60;
const LINES_MAX = 9;
const CHARS_MAX = 900;

export function mount(root, it) {
	const log = new Kept(CHUNKS_MAX);
	const awaited = new Set();
	const opened = new Set();
	let asking = new AbortController();
	let made = null;
	let laid = [];
	let seqs = new Map();
	const opening = new AbortController();

	const summary = h('p', { class: 'summary', role: 'status' });
	const legend = h('div', { class: 'legend' });
	const only = h('label', { class: 'inline check', for: 'only' }, h('input', { type: 'checkbox', id: 'only' }), 'only what differs');
	const jump = h('div', { class: 'jumps' }, button('Next reduced', () => reduced(1), { 'aria-keyshortcuts': 'n' }), button('Cache line', () => line(), { 'aria-keyshortcuts': 'c' }), button('End', () => list.show(laid.length - 1)));
	const list = new VirtualList({ label: 'The log, and beside it the page', guess: 132, className: 'spread', render: (index) => row(laid[index]), needs, act: (index) => act(laid[index]) });
	const drawer = new Drawer(it, (seq) => { const at = seqs.get(seq); if (at !== undefined) list.go(at); });
	const problem = h('div');
	fill(root, h('div', { class: 'above' }, summary, legend, only, jump), h('div', { class: 'facing', 'aria-hidden': 'true' }, h('span', 'The log', h('small', 'what was said')), h('span', 'Fate'), h('span', 'The page', h('small', 'what the model read'))), problem, list.element, drawer.element);
	only.firstChild.addEventListener('change', () => lay(null));

	const head = () => {
		if (made) return made.receipt.ticket?.head ?? it.info.head;
		const point = it.points.find((one) => one.turn === it.turn);
		return point?.head ?? it.info.head;
	};

	// Lays the rows out anew. `top` is the entry that is to stand first.
	function lay(top) {
		const entries = (head() ?? -1) + 1;
		laid = made ? rows(entries, made.receipt, made.page.messages, opened) : Array.from({ length: Math.min(entries, RUN_MAX) }, (_, seq) => ({ kind: 'entry', seq, fate: null, messages: [] }));
		if (only.firstChild.checked) laid = laid.filter((one) => one.kind === 'run' || (one.fate && one.fate.fate !== 'shown') || one.kind === 'message');
		seqs = new Map(laid.flatMap((one, index) => (one.kind === 'entry' ? [[one.seq, index]] : one.kind === 'run' ? [[one.first, index]] : [])));
		const at = top === null ? null : seqs.get(top) ?? nearest(top);
		list.reset(laid.length, at);
	}

	function nearest(seq) {
		const found = laid.findIndex((one) => (one.seq ?? one.last ?? -1) >= seq);
		return found < 0 ? Math.max(0, laid.length - 1) : found;
	}

	function topmost() {
		if (list.element.scrollTop === 0) return null;
		const one = laid[list.heights.at(list.element.scrollTop)];
		return one?.seq ?? one?.first ?? null;
	}

	function needs(first, end) {
		const wanted = new Set();
		for (let index = first; index < end; index++) {
			const one = laid[index];
			if (one?.kind === 'entry') for (const chunk of chunks(one.seq, one.seq + 1, CHUNK)) wanted.add(chunk);
		}
		for (const chunk of wanted) if (log.get(chunk) === undefined && !awaited.has(chunk)) fetchChunk(chunk);
	}

	async function fetchChunk(chunk) {
		awaited.add(chunk);
		try {
			const answer = await get(conversationPath(it.conversation, 'entries'), { from: chunk * CHUNK, limit: CHUNK }, opening.signal);
			log.set(chunk, new Map(answer.entries.map((entry) => [entry.seq, entry])));
			fill(problem);
			list.refresh((index) => laid[index]?.kind === 'entry' && Math.floor(laid[index].seq / CHUNK) === chunk);
			performance.mark('recto:entries');
		} catch (error) {
			if (error.name !== 'AbortError') fill(problem, failed(error, () => { fill(problem); fetchChunk(chunk); }));
		} finally {
			awaited.delete(chunk);
		}
	}

	const entryOf = (seq) => log.get(Math.floor(seq / CHUNK))?.get(seq);

	function row(one) {
		const element = one.kind === 'run' ? runRow(one) : one.kind === 'message' ? messageRow(one) : entryRow(one);
		if (one.line) element.append(cacheLine());
		return element;
	}

	function entryRow(one) {
		const entry = entryOf(one.seq);
		const fate = one.fate?.fate ?? (made ? 'unknown' : 'waiting');
		const messages = one.messages.map((place) => made.page.messages[place]);
		const element = h('article', { class: `entry fate-${fate}`, 'data-seq': one.seq, 'aria-label': `Entry ${one.seq}, ${entry?.entry.role ?? ''}, ${FATES[fate]?.word ?? 'not known yet'}` },
			h('div', { class: 'side said' }, entry ? side(entry.entry.role, entry.entry.parts, `#${one.seq}`, entry.tokens, entry.entry) : h('p', { class: 'skeleton' }, `#${one.seq}`)),
			h('div', { class: 'gutter' }, made ? gutter(one.fate) : h('span', { class: 'meta' }, '\u00b7')),
			h('div', { class: 'side read' }, read(one, messages)));
		element.addEventListener('click', (event) => { if (!event.target.closest('button, a') && !getSelection().toString()) act(one); });
		return element;
	}

	function read(one, messages) {
		if (!made) return h('p', { class: 'skeleton' });
		if (messages.length > 0) return messages.map((message) => side(message.role, message.parts, message.seq === null ? '' : `#${message.seq}`, message.cost, message));
		return h('p', { class: 'absent' }, one.fate ? 'not on the page' : 'came later');
	}

	function messageRow(one) {
		const message = made.page.messages[one.messages[0]];
		const what = message.fragment ? `prompt piece \u201c${message.fragment}\u201d` : one.messages[0] === made.page.messages.length - 1 ? 'said now' : 'not from the log';
		return h('article', { class: 'entry fate-added', 'aria-label': `On the page alone: ${what}` },
			h('div', { class: 'side said' }, h('p', { class: 'absent' }, 'not in the log')),
			h('div', { class: 'gutter' }, h('b', { class: 'fate' }, sign('+'), ' added'), h('span', what)),
			h('div', { class: 'side read' }, side(message.role, message.parts, '', message.cost, message)));
	}

	function runRow(one) {
		const element = h('article', { class: 'run', 'aria-label': `Entries ${one.first} to ${one.last}` },
			h('div', { class: 'runs' }, one.fates.map((fate) => h('p', fateMark(fate.fate), ` ${span(fate.span)} \u00b7 ${many(fate.entries, 'entry', 'entries')} \u00b7 ${count(fate.before)} tokens \u00b7 ${pass(fate)}: ${reason(fate)}`))),
			button(`Look at ${count(Math.min(RUN_MAX, one.last - one.first + 1))} entries`, () => { opened.add(one.first); lay(one.first); }));
		return element;
	}

	function cacheLine() {
		const { prefix } = made.receipt;
		return h('p', { class: 'cacheline' }, h('span', prefix.broken_at === null && prefix.messages === prefix.previous ? 'cache line' : 'cache line: the prefix broke here'), h('small', `${count(prefix.tokens)} tokens above stand as on the page before`));
	}

	function gutter(fate) {
		return [fateMark(fate?.fate),
			fate?.entries === 1 && fate.fate !== 'shown' && h('span', { class: 'tokens' }, `${count(fate.before)} \u2192 ${count(fate.after)}`),
			fate && (fate.fate !== 'shown' || fate.reason !== 'selected') && h('span', pass(fate) !== 'select' && [h('em', pass(fate)), ' '], reason(fate))];
	}

	function act(one) {
		if (!one) return;
		if (one.kind === 'run') {
			opened.add(one.first);
			lay(one.first);
		} else if (one.kind === 'entry') drawer.show(one.seq, one.fate, one.messages.map((place) => made.page.messages[place]));
	}

	function reduced(by) {
		for (let index = list.current + by; index >= 0 && index < laid.length; index += by) {
			const one = laid[index];
			if (one.kind === 'run' || (one.fate && one.fate.fate !== 'shown')) {
				list.show(index);
				return list.go(index);
			}
		}
		return false;
	}

	function line() {
		const index = laid.findIndex((one) => one.line);
		if (index < 0) return false;
		list.show(index);
		return list.go(index);
	}

	function told() {
		if (!made) return fill(summary, 'Reading the page\u2026');
		const sums = tally(made.receipt.fates);
		fill(summary, h('b', made.model), ` ${it.turn === 'next' ? 'would read' : 'read'} ${count(made.page.messages.length)} messages under the policy `, h('b', made.receipt.policy), made.agrees === false && h('span', { class: 'bad' }, ' (this version makes another page of the same record)'));
		fill(legend, ['shown', 'changed', 'not_shown'].map((fate) => fateMark(fate, count(sums[fate]))));
		jump.children[1].disabled = !laid.some((one) => one.line);
		jump.children[0].disabled = sums.changed + sums.not_shown === 0;
	}

	async function load(top) {
		asking.abort();
		asking = new AbortController();
		made = null;
		told();
		lay(top);
		try {
			made = await it.page(it.turn, asking.signal);
			opened.clear();
			lay(top ?? topmost());
			told();
			performance.mark('recto:page');
		} catch (error) {
			if (error.name === 'AbortError') return;
			fill(summary, 'The page could not be made again.');
			fill(problem, failed(error, () => { fill(problem); load(topmost()); }));
		}
	}

	load(null);
	return {
		turned: () => { drawer.element.hidden = true; load(topmost()); },
		changed: () => drawer.again(),
		happened() {
			log.clear();
			if (it.turn === 'next') load(topmost());
			else list.refresh();
		},
		key(event) {
			if (drawer.isOpen && drawer.key(event) !== false) return true;
			const act = { n: () => reduced(1), N: () => reduced(-1), c: line, j: () => list.go(list.current), ArrowDown: () => list.go(list.current) }[event.key];
			return act ? act() : false;
		},
		end() { asking.abort(); opening.abort(); list.end(); drawer.end(); },
	};
}

const ROLES = { system: 'system', user: 'user', assistant: 'assistant', tool: 'tool' };

// One side of a row: who speaks, and the beginning of what is said.
function side(role, parts, name, tokens, entry) {
	return [
		h('header', h('b', { class: `role role-${ROLES[role] ?? 'other'}` }, role), entry?.author && ` ${entry.author}`, name && h('span', { class: 'seq' }, name),
			entry?.origin && entry.origin !== role && entry.origin !== 'user' && h('span', { class: 'tag' }, entry.origin), entry?.lane === 'trace' && h('span', { class: 'tag' }, 'trace'),
			entry?.section && entry.section !== 'messages' && h('span', { class: 'tag' }, entry.section), entry?.status && entry.status !== 'sent' && h('span', { class: 'tag' }, entry.status),
			h('span', { class: 'tokens' }, count(tokens))),
		(parts ?? []).slice(0, 6).map((part) => {
			const { kind, name: tool, text } = partText(part);
			const { text: start, more } = beginning(text, LINES_MAX, CHARS_MAX);
			return h('div', { class: `part part-${kind}` }, (kind !== 'text' || tool) && h('span', { class: 'kind' }, kind === 'call' ? tool : kind), h('div', { class: 'words' }, start), more > 0 && h('small', { class: 'more' }, `${count(more)} more characters`));
		}),
		parts?.length > 6 && h('small', { class: 'more' }, `${parts.length - 6} more parts`),
		(parts ?? []).length === 0 && h('p', { class: 'absent' }, entry?.status === 'erased' || entry?.erased ? 'erased' : 'nothing'),
	];
}
