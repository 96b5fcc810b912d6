// One conversation: its calls along the top, and below them one of five ways to look at it.
import { all, conversationPath, get, readerPath, send } from './api.js';
import { button, empty, failed, fill, h, loading, s, toast } from './dom.js';
import { ago, count, many, moment, percent, short, usd } from './format.js';
import { follow } from './live.js';
import { bars, totalled } from './plot.js';
import { TABS, address } from './route.js';
import * as money from './money.js';
import * as page from './page.js';
import * as sessions from './sessions.js';
import * as turn from './turn.js';
import * as whatIf from './whatif.js';

const VIEWS = { page, turn, money, 'what-if': whatIf, sessions };
// How many calls are drawn at once: the newest of them.
const POINTS_MAX = 10_000;
const DECISIONS_MAX = 20_000;

export function mount(root, first, shell) {
	let route = first;
	let view = null;
	let stop = null;
	let isOver = false;
	let isHearing = false;
	const waiting = [];
	const asking = new AbortController();

	// What all views know.
	const it = {
		conversation: first.conversation, reader: first.reader, info: null, points: [], total: null,
		decisions: null,
		get turns() { return it.of?.turns ?? 0; },
		get of() { return it.info?.readers.find((one) => one.reader === it.reader) ?? null; },
		// The call that is looked at; where none was ever made, the next.
		get turn() {
			if (route.turn === 'next' || it.turns === 0) return 'next';
			return route.turn === null ? it.turns - 1 : Math.min(route.turn, it.turns - 1);
		},
		// Whether it goes on to the newest call when there is one.
		get isNewest() { return route.turn === null; },
		go: (to) => { location.hash = address({ ...route, ...to }); },
		href: (to) => address({ ...route, ...to }),
		async allDecisions() {
			it.decisions ??= all(readerPath(it, 'decisions'), { limit: 1_000 }, 'decisions', 'after', DECISIONS_MAX).catch((problem) => { it.decisions = null; throw problem; });
			return it.decisions;
		},
		// The page of a call; of the next one, made as the last was.
		async page(which, signal) {
			if (which !== 'next') return get(readerPath(it, 'turns', which), { body_as: 'none' }, signal);
			return send('POST', readerPath(it, 'preview'), { ...(await it.settings(signal)), body_as: 'none' }, signal);
		},
		// What the last call was made with.
		async settings(signal) {
			if (it.turns === 0) return {};
			const last = await get(readerPath(it, 'turns', it.turns - 1), { body_as: 'none' }, signal);
			const { ledger, policy } = last.receipt;
			return { policy, model: last.model, wire: last.wire, window: ledger.window ?? 0, reserve: ledger.reserve_out };
		},
		async change(what, act) {
			try {
				await act();
				it.decisions = null;
				toast(what, 'good');
				view?.changed?.();
				return true;
			} catch (problem) {
				toast(`${problem.title ?? 'That did not work'}: ${problem.detail ?? problem.message}`, 'bad');
				return false;
			}
		},
	};

	const title = h('h1', { id: 'title' });
	const sub = h('p', { class: 'meta' });
	const readers = h('select', { id: 'reader', 'aria-label': 'Reader' });
	const tabs = h('nav', { class: 'tabs', 'aria-label': 'Views of the conversation' });
	const strip = h('div', { class: 'strip' });
	const body = h('div', { class: 'body' }, loading('Opening the conversation'));
	fill(root, h('section', { class: 'view', 'aria-labelledby': 'title' },
		h('div', { class: 'heading' }, h('div', { class: 'grow' }, title, sub), h('label', { class: 'inline', for: 'reader' }, h('span', { class: 'meta' }, 'Reader'), readers)), tabs, strip, body));
	readers.addEventListener('change', () => { location.hash = address({ conversation: it.conversation, reader: readers.value, tab: route.tab }); });

	function head() {
		const { info } = it;
		fill(title, info.title || info.conversation);
		fill(sub, h('span', { class: 'name' }, info.conversation), ` \u00b7 ${many(info.entries, 'entry', 'entries')} \u00b7 ${count(info.tokens)} tokens \u00b7 ${many(it.turns, 'call', 'calls')} \u00b7 `,
			h('time', { title: moment(info.updated) }, ago(info.updated, Date.now())), info.from && [' \u00b7 fork of ', h('a', { href: address({ conversation: info.from.conversation }) }, info.from.conversation), ` at #${info.from.upto}`]);
		const names = [...new Set([...info.readers.map((one) => one.reader), it.reader])];
		if (readers.length !== names.length) fill(readers, names.map((name) => h('option', { value: name, selected: name === it.reader }, name)));
		readers.parentNode.hidden = names.length < 2;
		shell.title(info.title || info.conversation);
		shell.crumbs(h('a', { href: '#/' }, 'Conversations'), h('span', { 'aria-current': 'page' }, info.conversation));
	}

	function tabbed() {
		fill(tabs, TABS.map(([name, label], index) => h('a', { href: address({ ...route, tab: name, turn: route.turn }), 'aria-current': name === route.tab ? 'page' : null, 'aria-keyshortcuts': String(index + 1) }, label)));
	}

	function stripped() {
		strip.hidden = route.tab === 'money' || route.tab === 'sessions';
		if (strip.hidden) return;
		const usable = () => [...strip.querySelectorAll('button, input')];
		const focus = usable().indexOf(document.activeElement);
		const now = it.turn;
		const point = it.points.find((one) => one.turn === now);
		const number = h('input', { type: 'number', id: 'call', min: 0, max: Math.max(0, it.turns - 1), value: now === 'next' ? it.turns : now, 'aria-label': `Call, 0 to ${Math.max(0, it.turns - 1)}` });
		number.addEventListener('change', () => { const wanted = Number(number.value); if (Number.isInteger(wanted) && wanted >= 0) it.go({ turn: wanted >= it.turns ? 'next' : wanted }); });
		const numeric = now === 'next' ? it.turns : now;
		fill(strip,
			h('div', { class: 'stepper' },
				button('\u2039', () => step(-1), { 'aria-label': 'The call before', disabled: numeric <= 0 }),
				h('label', { for: 'call' }, h('span', { class: 'meta' }, 'Call'), number, h('span', { class: 'meta' }, `of ${count(it.turns)}`)),
				button('\u203a', () => step(1), { 'aria-label': 'The call after', disabled: now === 'next' }),
				button('Newest', () => it.go({ turn: null }), { 'aria-pressed': String(it.isNewest && now !== 'next') }),
				button('Next', () => it.go({ turn: 'next' }), { 'aria-pressed': String(now === 'next'), title: 'The page that would be sent now' })),
			drawStrip(now),
			h('p', { class: 'meta point' }, now === 'next' ? `The page that would be sent now, ${it.turns ? 'made as the last one was' : 'as the server is set'}. Nothing is recorded.`
				: point ? [h('time', { title: moment(point.at) }, moment(point.at)), ` \u00b7 ${count(point.tokens)} tokens, ${percent(point.cached, point.tokens)} cached \u00b7 ${usd(point.usd)}`,
					Number.isFinite(point.tokens_without) && point.tokens_without > point.tokens && ` \u00b7 ${short(point.tokens_without - point.tokens)} left out`,
					(point.reductions?.decisions ?? 0) > 0 && h('b', { class: 'reduced' }, ` \u25be ${many(point.reductions.decisions, 'decision', 'decisions')} before it`)] : ''));
		// It is drawn anew while somebody uses it.
		usable()[focus]?.focus();
	}

	function drawStrip(now) {
		const [width, height] = [1_000, 44];
		const made = bars(it.points, 250);
		const most = Math.max(1, ...made.map((bar) => bar.tokens));
		const each = Math.min(24, width / Math.max(1, made.length));
		const shapes = made.map((bar, index) => {
			const [full, cached] = [(bar.tokens / most) * (height - 8), (bar.cached / most) * (height - 8)];
			const isNow = now !== 'next' && now >= bar.from && now <= bar.to;
			const [x, wide] = [index * each, Math.max(0.8, each - Math.min(2, each * 0.25))];
			return s('g', { class: isNow ? 'now' : null }, s('rect', { class: 'fresh', x, width: wide, y: height - full, height: full }), s('rect', { class: 'cached', x, width: wide, y: height - cached, height: cached }),
				bar.decisions > 0 && s('path', { class: 'sign', d: `M${x + wide / 2 - 3.5} 0h7l-3.500 6z` }), isNow && s('rect', { class: 'frame', x: x - 1, width: wide + 2, y: 0, height }));
		});
		const svg = s('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'bars', role: 'img', 'aria-label': `Tokens of ${many(it.points.length, 'call', 'calls')}; filled parts were cached, triangles are reductions` }, shapes);
		svg.addEventListener('click', (event) => {
			const box = svg.getBoundingClientRect();
			const bar = made[Math.min(made.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * (width / each))))];
			if (bar) it.go({ turn: bar.from });
		});
		return svg;
	}

	function step(by) {
		const now = it.turn === 'next' ? it.turns : it.turn;
		const to = Math.max(0, now + by);
		it.go({ turn: to >= it.turns ? 'next' : to });
	}

	function open() {
		view?.end?.();
		view = null;
		fill(body);
		if (it.info.entries === 0) return fill(body, empty('Nothing was said yet', h('p', 'The first entry appears here as soon as it is appended.')));
		view = VIEWS[route.tab].mount(body, it);
	}

	async function known() {
		it.info = await get(conversationPath(it.conversation), {}, asking.signal);
		head();
	}

	async function curve() {
		// What was acknowledged stays as it is, so only what is new is asked for.
		const from = it.points.length ? it.points.at(-1).turn + 1 : Math.max(0, it.turns - POINTS_MAX);
		if (from < it.turns) it.points.push(...await all(readerPath(it, 'curve'), { limit: 1_000, from }, 'points', 'from', POINTS_MAX, asking.signal));
		it.total = totalled(it.points);
	}

	async function load() {
		try {
			await known();
			tabbed();
			// The log can be read before anybody knows what the calls came to.
			stripped();
			open();
			listen();
			await curve();
			stripped();
			view?.known?.();
		} catch (problem) {
			if (problem.name === 'AbortError') return;
			fill(title, it.conversation);
			fill(body, failed(problem, () => { fill(body, loading('Opening the conversation')); load(); }));
		}
	}

	function listen() {
		stop?.();
		stop = follow(readerPath(it, 'events'), it.of?.mark ?? null, heard, (isLive) => shell.live(isLive));
	}

	async function heard(events) {
		waiting.push(...events);
		if (isHearing) return;
		isHearing = true;
		while (waiting.length > 0) await happened(waiting.splice(0));
		isHearing = false;
	}

	async function happened(events) {
		if (events.some((one) => one.type === 'erased')) {
			isOver = true;
			shell.live(null);
			return fill(body, empty('This conversation was erased', h('p', 'Its words are gone for good.'), h('p', h('a', { href: '#/' }, 'All conversations'))));
		}
		const before = it.turns;
		const was = it.turn;
		const wasEmpty = it.info.entries === 0;
		it.decisions = null;
		try {
			await known();
			await curve();
		} catch { return; }
		stripped();
		if (wasEmpty || (it.turns > before && it.turn !== was)) open();
		else view?.happened?.(events);
	}

	load();
	return {
		update(next) {
			if (isOver || next.view !== 'conversation' || next.conversation !== it.conversation || next.reader !== it.reader) return false;
			const [wasTab, was] = [route.tab, it.turn];
			route = next;
			if (!it.info) return true;
			tabbed();
			stripped();
			if (wasTab !== next.tab || !view) open();
			else if (was !== it.turn) (view.turned ? view.turned() : open());
			return true;
		},
		key(event) {
			const tab = TABS[Number(event.key) - 1];
			if (tab) return it.go({ tab: tab[0] });
			const act = { '[': () => step(-1), ']': () => step(1), '{': () => it.go({ turn: 0 }), '}': () => it.go({ turn: null }) }[event.key];
			if (act) return act();
			return view?.key?.(event) ?? false;
		},
		end() { asking.abort(); stop?.(); view?.end?.(); },
	};
}
