// What if: the same log under another policy, model or window, before anybody adopts it. Nothing is recorded.
import { get, path, readerPath, send } from './api.js';
import { chart } from './chart.js';
import { block, button, copy, failed, fateMark, fill, h, loading, table } from './dom.js';
import { fatesApart } from './diff.js';
import { pass, reason, tally } from './fates.js';
import { count, many, short, signed, size, usd } from './format.js';
import { used } from './ledger.js';
import { sums } from './plot.js';
import { totals } from './money.js';
import { ledger } from './turn.js';

const ROWS_MAX = 200;
const MODELS_MAX = 1_000;

export function mount(root, it) {
	let asking = new AbortController();
	const policy = h('select', { id: 'policy' }, h('option', { value: '' }, 'as it was'));
	const model = h('input', { id: 'model', list: 'models', placeholder: 'as it was', autocomplete: 'off', spellcheck: 'false', maxlength: 200 });
	const models = h('datalist', { id: 'models' });
	const window = h('input', { id: 'window', placeholder: 'as it was', inputmode: 'numeric', autocomplete: 'off', maxlength: 12 });
	const reserve = h('input', { id: 'reserve', placeholder: 'as it was', inputmode: 'numeric', autocomplete: 'off', maxlength: 12 });
	const about = h('p', { class: 'meta', id: 'policy-about' });
	const told = h('p', { class: 'bad', role: 'alert' });
	const one = h('div', { class: 'sheet' });
	const whole = h('div', { class: 'sheet' });
	const form = h('form', { class: 'what-if', 'aria-label': 'What if' },
		field('Policy', policy), field('Model', model, models), field('Window', window), field('Reserve', reserve),
		h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary' }, 'Show this page'), button('The whole conversation', () => replay(), { id: 'replay' })));
	const body = h('div', { class: 'sheet scroll' }, block('What if', 'another policy, model or window; nothing is recorded', form, about, told), one, whole);
	fill(root, body);
	form.addEventListener('submit', (event) => { event.preventDefault(); preview(); });
	policy.addEventListener('change', () => fill(about, policies.find((known) => known.name === policy.value)?.about ?? ''));
	let policies = [];

	async function load() {
		try {
			const answer = await get(path('policies'), {}, asking.signal);
			policies = answer.policies;
			fill(policy, h('option', { value: '' }, 'as it was'), policies.map((known) => h('option', { value: known.name }, known.name)));
			const known = await get(path('models'), { limit: MODELS_MAX }, asking.signal);
			fill(models, known.models.map((it) => h('option', { value: it.name }, `${it.provider}, window ${short(it.window)}`)));
		} catch { /* Names can be typed. */ }
	}

	// What was asked for, without what was left as it was; `null` if it can't be read.
	function wanted() {
		const asked = {};
		if (policy.value) asked.policy = policy.value;
		if (model.value.trim()) asked.model = model.value.trim();
		for (const [name, input] of [['window', window], ['reserve', reserve]]) {
			const tokens = size(input.value);
			if (Number.isNaN(tokens)) {
				fill(told, `\u201c${input.value}\u201d is no number of tokens. Such are 32000, 32k and 1m; a window of 0 has no end.`);
				input.focus();
				return null;
			}
			if (tokens !== null) asked[name] = tokens;
		}
		fill(told);
		return asked;
	}

	async function preview() {
		const asked = wanted();
		if (!asked) return;
		asking.abort();
		asking = new AbortController();
		fill(one, loading('Making the page anew'));
		try {
			const now = await it.page(it.turn, asking.signal);
			const other = it.turn === 'next' ? await send('POST', readerPath(it, 'preview'), { ...(await it.settings(asking.signal)), ...asked, body_as: 'none' }, asking.signal)
				: await send('POST', readerPath(it, 'turns', it.turn, 'preview'), { ...asked, body_as: 'none' }, asking.signal);
			fill(one, compared(now, other, it), adopt(asked));
		} catch (problem) {
			if (problem.name !== 'AbortError') fill(one, failed(problem));
		}
	}

	async function replay() {
		const asked = wanted();
		if (!asked) return;
		fill(whole, loading('Going through the whole conversation; this may take a while'));
		try {
			const settings = await it.settings();
			const answer = await send('POST', readerPath(it, 'replay'), { ...settings, ...asked });
			fill(whole, replayed(answer, it));
		} catch (problem) {
			if (problem.name !== 'AbortError') fill(whole, failed(problem));
		}
	}

	load();
	return {
		turned: () => { fill(one); },
		end: () => asking.abort(),
	};
}

const field = (label, input, ...more) => h('label', { for: input.id }, h('span', label), input, ...more);

function compared(now, other, it) {
	const [was, is] = [facts(now), facts(other)];
	const rows = [['Tokens', 'tokens', count], ['Cached', 'cached', count], ['Input costs', 'usd', usd], ['Messages', 'messages', count], ['Entries shown', 'shown', count], ['Changed', 'changed', count], ['Not shown', 'hidden', count]];
	const { rows: apart, all } = fatesApart(now.receipt.fates, other.receipt.fates, ROWS_MAX);
	return [
		block(it.turn === 'next' ? 'The next page' : `The page of call ${it.turn}`, `${other.model}, policy ${other.receipt.policy}, window ${other.receipt.ledger.window === null ? 'without end' : count(other.receipt.ledger.window)}`,
			table([[''], ['As it was', 'number'], ['As it would be', 'number'], ['Difference', 'number']],
				rows.map(([label, name, spell]) => [label, spell(was[name]), spell(is[name]), signed(is[name] - was[name], spell)]), { class: 'rows compare' })),
		ledger(other.receipt),
		block('Entries that fare otherwise', many(all, 'entry', 'entries'),
			all === 0 ? h('p', { class: 'meta' }, 'None: every entry has the same fate.')
				: table([['Entry'], ['As it was'], ['As it would be'], ['Why', 'meta']], apart.map((row) => [`#${row.seq}`, fateCell(row.before), fateCell(row.after), `${pass(row.after)}: ${reason(row.after)}`])),
			all > apart.length && h('p', { class: 'meta' }, `${count(all - apart.length)} more.`)),
	];
}

function facts({ receipt, page }) {
	const sums = tally(receipt.fates);
	return { tokens: used(receipt.ledger), cached: receipt.money.cached, usd: receipt.money.usd, messages: page.messages.length, shown: sums.shown, changed: sums.changed, hidden: sums.not_shown };
}

const fateCell = (row) => [fateMark(row.fate), row.entries === 1 && h('span', { class: 'meta' }, ` ${count(row.after)} of ${count(row.before)}`)];

function adopt(asked) {
	if (Object.keys(asked).length === 0) return null;
	const lines = [asked.policy && `policy = "${asked.policy}"`, asked.model && `model = "${asked.model}"`, asked.window !== undefined && `window = ${asked.window}`, asked.reserve !== undefined && `reserve = ${asked.reserve}`].filter(Boolean);
	const text = lines.join('\n');
	return block('To adopt it', 'recto.toml; recto help config says where it stands', h('pre', { class: 'words' }, text), button('Copy', () => copy(text, 'Settings')));
}

function replayed({ points, total }, it) {
	const overflows = points.filter((one) => one.overflow);
	const summed = (list, name) => sums(list.map((one) => one[name])).map((sum, index) => [list[index].turn, sum]);
	const series = [{ name: 'with everything', kind: 'dashed', tone: 'without', points: summed(points, 'usd_without') }, { name: 'as it would be', kind: 'area', tone: 'page', points: summed(points, 'usd') }];
	if (it.points.length) series.push({ name: 'as it was', kind: 'line', tone: 'rent', points: summed(it.points, 'usd') });
	return block('The whole conversation', 'as if every answer had been a call under these settings',
		totals(total, [], ['Would cost', 'With everything']),
		overflows.length > 0 && h('p', { class: 'bad' }, `${many(overflows.length, 'page would not fit', 'pages would not fit')}: the first before call ${overflows[0].turn}.`),
		chart({ label: 'Money so far under these settings, as it was, and with everything', spell: usd, series }));
}
