// What it all came to: tokens and money over the calls, with and without Recto, and when reductions were applied.
import { chart } from './chart.js';
import { block, card, empty, fill, h, table } from './dom.js';
import { count, many, percent, short, usd } from './format.js';
import { sums } from './plot.js';

const ROWS_MAX = 500;

export function mount(root, it) {
	const body = h('div', { class: 'sheet scroll' });
	fill(root, body);
	const draw = () => fill(body, it.turns === 0 ? nothing(it) : content(it));
	draw();
	return { known: draw, happened: draw };
}

const nothing = (it) => empty('No call was acknowledged yet', h('p', 'Costs are told of calls that were made through the gateway, the API or ', h('code', 'recto run'), '.'),
	h('p', 'What this conversation would have cost call by call: ', h('a', { href: it.href({ tab: 'what-if' }) }, 'What if'), '.'));

function content(it) {
	const { points, total } = it;
	if (points.length === 0) return h('p', { class: 'meta', role: 'status' }, 'Adding it up\u2026');
	const marks = points.filter((one) => (one.reductions?.decisions ?? 0) > 0).map((one) => ({ x: one.turn, label: `${many(one.reductions.decisions, 'decision', 'decisions')}, ${count(one.reductions.less)} tokens less` }));
	return [totals(total, points), ...charts(points, { marks, pick: (call) => it.go({ tab: 'turn', turn: call }) }), moments(points, it), everything(points)];
}

// What all calls came to.
export function totals(total, points, [ours, all] = ['Input, with Recto', 'Input, with everything']) {
	const saved = total.usd_without - total.usd;
	const billed = points.reduce((sum, one) => sum + (one.usd_billed ?? 0), 0);
	return h('div', { class: 'cards' },
		card(ours, usd(total.usd), `${short(total.tokens)} tokens in ${many(total.calls, 'call', 'calls')}`),
		card(all, usd(total.usd_without), `${short(total.tokens_without)} tokens`),
		card(saved >= 0 ? 'Saved' : 'Cost more', usd(Math.abs(saved)), `${percent(Math.abs(saved), total.usd_without)} of the input`, saved >= 0 ? 'good' : 'bad'),
		card('Cached', percent(total.cached, total.tokens), `${short(total.cached)} tokens`),
		billed > 0 && card('Billed', usd(billed), 'input and output, as providers reported'));
}

// Tokens, money and rent over the calls.
export function charts(points, { marks, pick }) {
	const of = (name) => points.map((one) => [one.turn, one[name]]);
	const summed = (name) => sums(points.map((one) => one[name])).map((sum, index) => [points[index].turn, sum]);
	const hasRent = points.some((one) => (one.rent ?? 0) > 0 || (one.waiting ?? 0) > 0);
	return [
		block('Tokens of each call', '', chart({ label: 'Tokens of each call: with everything, on the page, and cached', spell: short, marks, pick,
			series: [{ name: 'with everything', kind: 'dashed', tone: 'without', points: of('tokens_without') }, { name: 'the page', kind: 'line', tone: 'page', points: of('tokens') }, { name: 'of it cached', kind: 'area', tone: 'cached', points: of('cached') }] })),
		block('Money so far', '', chart({ label: 'Money so far: with everything, and with Recto', spell: usd, marks, pick,
			series: [{ name: 'with everything', kind: 'dashed', tone: 'without', points: summed('usd_without') }, { name: 'with Recto', kind: 'area', tone: 'page', points: summed('usd') }] })),
		hasRent && block('Rent', '', h('p', { class: 'meta' }, 'Shortening breaks the provider\u2019s cache, so it waits. Rent is what waiting has cost; once it exceeds what breaking costs, everything that waits is applied at once.'),
			chart({ label: 'What waiting has cost, and what would be saved at every call', spell: short, marks, pick, height: 170,
				series: [{ name: 'rent', kind: 'area', tone: 'rent', points: of('rent') }, { name: 'waiting to be saved at every call', kind: 'line', tone: 'without', points: of('waiting') }] })),
	];
}

function moments(points, it) {
	const found = points.filter((one) => (one.reductions?.decisions ?? 0) > 0).slice(-ROWS_MAX).reverse();
	if (found.length === 0) return block('When reductions were applied', '', h('p', { class: 'meta' }, 'None was needed so far.'));
	return block('When reductions were applied', '', table([['Before call'], ['Decisions', 'number'], ['Tokens less', 'number'], ['Cache cut at'], ['By', 'meta']], found.map(({ turn, reductions: made }) => [
		h('a', { href: it.href({ tab: 'page', turn }) }, `${turn}`), count(made.decisions), count(made.less),
		Number.isInteger(made.floor) ? `floor at #${made.floor}` : Number.isInteger(made.cut) ? `#${made.cut}` : 'not cut',
		Object.entries(made.by ?? {}).map(([name, times]) => `${name} \u00d7${times}`).join(', ')])));
}

function everything(points) {
	const shown = points.slice(-ROWS_MAX);
	return h('details', { class: 'block' }, h('summary', 'All of it as a table'),
		shown.length < points.length && h('p', { class: 'meta' }, `The newest ${count(shown.length)} of ${count(points.length)} calls.`),
		table(['Call', 'Tokens', 'With everything', 'Cached', 'Input', 'With everything', 'Saved so far'].map((name) => [name, 'number']),
			shown.map((one) => [`${one.turn}`, count(one.tokens), count(one.tokens_without), count(one.cached), usd(one.usd), usd(one.usd_without), usd(one.usd_so_far)])));
}
