// One call: where its tokens went, what the cache held, what differs from the call before, and its bytes.
import { readerPath, text } from './api.js';
import { block, button, card, copy, failed, fill, h, loading, s, sign, table } from './dom.js';
import { curl } from './curl.js';
import { folded } from './diff.js';
import { pass, reason } from './fates.js';
import { count, many, moment, percent, short, signed, usd } from './format.js';
import { cacheLine, layout, used, whyBroken } from './ledger.js';
import { beginning } from './text.js';

const ROWS_MAX = 400;
const BYTES_SHOWN_MAX = 40_000;

export function mount(root, it) {
	let asking = new AbortController();
	const body = h('div', { class: 'sheet scroll' });
	fill(root, body);

	async function load() {
		asking.abort();
		asking = new AbortController();
		fill(body, loading('Reading the call'));
		try {
			const made = await it.page(it.turn, asking.signal);
			fill(body, cards(made), ledger(made.receipt), cache(made, it), difference(made, it), warnings(made.receipt), request(made, it));
		} catch (problem) {
			if (problem.name !== 'AbortError') fill(body, failed(problem, load));
		}
	}

	load();
	return { turned: load, happened: () => { if (it.turn === 'next') load(); }, end: () => asking.abort() };
}

function cards(made) {
	const { receipt } = made;
	const tokens = used(receipt.ledger);
	const { money, savings } = receipt;
	return h('div', { class: 'cards' },
		card('Page', `${count(tokens)}`, `tokens in ${many(made.page.messages.length, 'message', 'messages')}${made.page.mode === 'full' ? '' : `, ${String(made.page.mode).replace(/_/g, ' ')}`}`),
		card('Cached', percent(money.cached, tokens), `${count(money.cached)} tokens`),
		card('Input costs', usd(money.usd), `${usd(savings.usd_without)} with everything`),
		card('Left out', short(savings.less), `tokens, ${percent(savings.less, tokens + savings.less)} of all that was said`),
		card(made.reported ? 'The provider counted' : 'Window', made.reported ? count(made.reported) : receipt.ledger.window === null ? 'no end' : count(receipt.ledger.window), made.reported ? `tokens, ${signed(made.reported - tokens)} to our count` : `${made.model}`));
}

// Where the tokens go: a bar, and the same as a table.
export function ledger(receipt) {
	const { parts, all } = layout(receipt.ledger);
	const bar = s('svg', { class: 'ledger', viewBox: '0 0 1000 46', preserveAspectRatio: 'none', role: 'img', 'aria-label': `The window of ${count(all)} tokens: ${parts.map((it) => `${it.name} ${count(it.tokens)}`).join(', ')}` },
		parts.map((it) => s('rect', { class: `part-of p-${it.key}`, 'data-part': it.key, x: it.from, width: Math.max(0.5, it.width - 1.5), y: 0, height: 46 }, s('title', `${it.name}: ${count(it.tokens)}`))));
	const list = table([['Part'], ['What it is', 'meta'], ['Tokens', 'number'], ['Of the window', 'number']],
		parts.map((it) => ({ 'data-part': it.key, cells: [[sign('', `swatch p-${it.key}`), it.name], it.about, count(it.tokens), percent(it.tokens, all)] })), { class: 'ledger-table' });
	const light = (event) => {
		const key = event.target.closest?.('[data-part]')?.dataset.part;
		for (const one of [...bar.children, ...list.querySelectorAll('tbody tr')]) one.classList.toggle('lit', key !== undefined && one.dataset.part === key);
	};
	for (const one of [bar, list]) {
		one.addEventListener('pointerover', light);
		one.addEventListener('pointerleave', light);
	}
	return block('Where the tokens go', `${receipt.ledger.window === null ? 'a window without end' : `a window of ${count(receipt.ledger.window)}`}`, bar, list);
}

function cache(made, it) {
	const { receipt } = made;
	const { money } = receipt;
	const all = money.cached + money.written + money.plain;
	const parts = [['cached', 'read from the cache', money.cached], ['written', 'written to the cache', money.written], ['plain', 'read anew', money.plain]].filter(([, , tokens]) => tokens > 0);
	let from = 0;
	const bar = s('svg', { class: 'ledger thin', viewBox: '0 0 1000 18', preserveAspectRatio: 'none', role: 'img', 'aria-label': parts.map(([, word, tokens]) => `${count(tokens)} ${word}`).join(', ') },
		parts.map(([key, , tokens]) => {
			const width = (1000 * tokens) / Math.max(1, all);
			const rect = s('rect', { class: `part-of p-${key}`, x: from, width: Math.max(0.5, width - 1.5), y: 0, height: 18 });
			from += width;
			return rect;
		}));
	const broken = whyBroken(receipt, made.difference);
	const waiting = receipt.savings.waiting ?? made.totals?.waiting;
	return block('The cache line', 'what the provider held already', bar,
		h('p', { class: 'keys-line' }, parts.map(([key, word, tokens]) => h('span', sign('', `swatch p-${key}`), `${count(tokens)} ${word}`))),
		cacheLine(receipt, made.turn).map((sentence) => h('p', sentence)),
		broken && broken.is !== 'equal' && h('p', { class: 'why' }, h('a', { href: it.href({ tab: 'page' }) }, `#${broken.seq}`), ` is ${broken.is === 'gone' ? 'gone' : 'otherwise than it was'}`, broken.fate && [': ', h('em', pass(broken.fate)), `, ${reason(broken.fate)}`], '.'),
		waiting && waiting.candidates > 0 && h('p', { class: 'meta' }, `${many(waiting.candidates, 'entry waits', 'entries wait')} to be shortened: that would save ${count(waiting.saves)} tokens at every call. Waiting has cost ${count(waiting.rent)}; breaking the cache would cost ${count(waiting.cost)}.`));
}

const IS = { equal: ['=', 'as before'], changed: ['~', 'changed'], new: ['+', 'new'], gone: ['\u2212', 'gone'] };

function difference(made, it) {
	const title = 'Difference to the page before';
	if (!made.difference) return block(title, '', h('p', { class: 'meta' }, it.turn === 'next' ? 'A page that was not sent is not compared; look at What if.' : 'This is the first call.'));
	const { tools, fragments, messages } = made.difference;
	const rows = folded(messages);
	const sums = messages.reduce((all, row) => ({ ...all, [row.is]: (all[row.is] ?? 0) + 1 }), {});
	const shown = rows.slice(-ROWS_MAX);
	return block(title, `${count(sums.new ?? 0)} new, ${count(sums.changed ?? 0)} changed, ${count(sums.gone ?? 0)} gone, ${count(sums.equal ?? 0)} as before${tools === 'equal' ? '' : `; tools ${tools}`}`,
		fragments?.some((one) => one.is !== 'equal') && h('p', 'Prompt pieces: ', fragments.filter((one) => one.is !== 'equal').map((one) => `${one.id} ${one.is}`).join(', ')),
		rows.length > shown.length && h('p', { class: 'meta' }, `${count(rows.length - shown.length)} rows before are not drawn.`),
		table([['Is'], ['Entry'], ['Role'], ['Tokens', 'number'], ['Why', 'meta']], shown.map((row) => ({ class: `is-${row.is}`, cells: row.is === 'equals' ? ['=', many(row.count, 'message', 'messages'), 'as before', count(row.tokens), '']
			: [[h('b', IS[row.is]?.[0] ?? row.is), ` ${IS[row.is]?.[1] ?? ''}`], row.seq === null ? '' : `#${row.seq}`, row.role, row.is === 'gone' ? `${count(row.tokens_before)} \u2192 0` : row.is === 'changed' ? `${count(row.tokens_before)} \u2192 ${count(row.tokens)}` : count(row.tokens), whyOf(made, row)] }))));
}

function whyOf(made, row) {
	if (row.seq === null || row.is === 'equal') return '';
	const fate = made.receipt.fates.find((one) => one.span.first <= row.seq && one.span.last >= row.seq);
	return fate && fate.fate !== 'shown' ? `${pass(fate)}: ${reason(fate)}` : '';
}

function warnings(receipt) {
	if (!receipt.warnings?.length) return null;
	return block('Worth knowing', '', h('ul', receipt.warnings.slice(0, 50).map((one) => {
		const { warning, ...more } = one;
		const told = Object.entries(more).map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ');
		return h('li', h('b', String(warning).replace(/_/g, ' ')), told && `: ${told}`);
	})));
}

function request(made, it) {
	const box = h('div');
	if (it.turn === 'next') return block('The request', '', h('p', { class: 'meta' }, 'It has not been sent. ', h('code', `recto compile ${it.conversation}`), ' prints its bytes.'));
	const open = async () => {
		fill(box, loading('Making the bytes again'));
		try {
			const { text: bytes, agrees } = await text(readerPath(it, 'turns', made.turn, 'request'));
			const { text: start, more } = beginning(bytes, Infinity, BYTES_SHOWN_MAX);
			fill(box,
				h('p', `${count(new TextEncoder().encode(bytes).length)} bytes, `, made.agrees === false || agrees === 'false' ? h('b', { class: 'bad' }, 'not those that were sent: this version spells the page otherwise') : 'byte for byte as the page was made then', '.'),
				h('div', { class: 'row' }, button('Copy as curl', () => copy(curl(made.wire, bytes, made.receipt.target), 'Command'), { class: 'primary' }), button('Copy the bytes', () => copy(bytes, 'Request')), button('Close', () => fill(box, show))),
				h('pre', { class: 'bytes', tabindex: '0', 'aria-label': 'The request' }, start),
				more > 0 && h('p', { class: 'meta' }, `${count(more)} more characters; the copies have them all.`));
		} catch (problem) {
			fill(box, failed(problem, open));
		}
	};
	const show = button('Show the exact request', open);
	fill(box, show);
	return block('The request', `${made.wire}${Number.isFinite(made.at) ? `, ${moment(made.at)}` : ''}`, box);
}
