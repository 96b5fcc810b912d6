// Where the tokens of a window go: the parts of a stacked bar, and what the cache held.
import { count, percent } from './format.js';

// All parts of a ledger, in the order in which they stand in the bar.
export const PARTS = [
	['tools', 'Tools', 'definitions of the tools that are offered'],
	['fixed', 'Static', 'prompt pieces that stay the same'],
	['system', 'Instructions', 'what the system says'],
	['user', 'User', 'the user\u2019s words'],
	['assistant', 'Assistant', 'the model\u2019s words'],
	['reasoning', 'Reasoning', 'the model\u2019s reasoning'],
	['calls', 'Calls', 'tool calls'],
	['results', 'Results', 'what tools gave back'],
	['dynamic', 'Dynamic', 'prompt pieces that are new at every call'],
	['input', 'Input', 'what is said now'],
	['framing', 'Framing', 'what the format costs beside the words'],
	['held', 'Held', 'what the provider remembers already'],
	['allowance', 'Allowance', 'kept free, because the provider may count otherwise'],
	['reserve_out', 'Reserve', 'kept free for the answer'],
];

// Returns what a request costs, without what is kept free.
export function used(ledger) {
	const free = new Set(['reserve_out', 'held', 'allowance']);
	return PARTS.reduce((sum, [key]) => sum + (free.has(key) ? 0 : ledger?.[key] ?? 0), 0);
}

/**
 * Lays out a ledger as a bar of so many units: each part has `from` and `width`, and none that holds something is thinner
 * than `thinnest`. What is left of the window is the last part, `left`.
 */
export function layout(ledger, units = 1000, thinnest = 3) {
	const parts = PARTS.map(([key, name, about]) => ({ key, name, about, tokens: ledger?.[key] ?? 0 })).filter((it) => it.tokens > 0);
	const sum = parts.reduce((all, it) => all + it.tokens, 0);
	const window = Number.isFinite(ledger?.window) ? ledger.window : sum;
	if (window > sum) parts.push({ key: 'left', name: 'Left', about: 'not needed by this page', tokens: window - sum });
	const all = Math.max(window, sum);
	if (all === 0) return { parts: [], all, sum, window };
	const widths = parts.map((it) => Math.max(thinnest, (units * it.tokens) / all));
	// What the thin ones took more is given by the wide ones, in proportion.
	const excess = widths.reduce((a, b) => a + b, 0) - units;
	const room = widths.reduce((a, width) => a + Math.max(0, width - thinnest), 0);
	let from = 0;
	parts.forEach((it, index) => {
		const spare = Math.max(0, widths[index] - thinnest);
		it.width = Math.max(0, widths[index] - (room > 0 ? (excess * spare) / room : excess / parts.length));
		it.from = from;
		from += it.width;
	});
	return { parts, all, sum, window };
}

// Says in sentences what of a page the provider's cache held, and where and why it broke.
export function cacheLine(receipt, turn) {
	const { prefix = {}, money = {} } = receipt ?? {};
	const all = (money.cached ?? 0) + (money.written ?? 0) + (money.plain ?? 0);
	const said = [];
	if (prefix.previous == null) {
		said.push(turn > 0 ? 'Nothing is known of the page before, so nothing is counted as cached.' : 'This is the first call: nothing could be cached.');
	} else if (prefix.tools_changed) {
		said.push('Other tools were offered than at the call before. They stand first, so nothing of the page was held.');
	} else if (prefix.broken_at != null || prefix.messages < prefix.previous) {
		const where = prefix.broken_at == null ? `behind message ${prefix.messages}` : `at entry #${prefix.broken_at}`;
		said.push(`The prefix broke ${where}: ${count(prefix.messages)} of ${count(prefix.previous)} messages of the page before stand unchanged, ${count(prefix.tokens)} tokens.`);
	} else {
		said.push(`The page before was carried on: all of its ${count(prefix.previous)} messages stand unchanged, ${count(prefix.tokens)} tokens.`);
	}
	if (all > 0) said.push(`${count(money.cached ?? 0)} of ${count(all)} tokens (${percent(money.cached ?? 0, all)}) are read from the cache.`);
	return said;
}

// Returns why the prefix broke: the first row of the difference that is not as it was, with its fate.
export function whyBroken(receipt, difference) {
	const prefix = receipt?.prefix;
	if (!prefix || prefix.previous == null) return null;
	const broken = (difference?.messages ?? []).find((row) => row.is !== 'equal' && row.before != null);
	const seq = prefix.broken_at ?? broken?.seq;
	if (seq == null) return null;
	const fate = (receipt.fates ?? []).find((row) => row.span.first <= seq && row.span.last >= seq) ?? null;
	return { seq, is: broken?.is ?? 'changed', fate };
}
