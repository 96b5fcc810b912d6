// What providers that remember hold of the conversation, and what of it is stale.
import { conversationPath, get } from './api.js';
import { empty, failed, fill, h, loading, table } from './dom.js';
import { span } from './fates.js';
import { count, many, moment, percent } from './format.js';

const STALE_MAX = 200;

export function mount(root, it) {
	const asking = new AbortController();
	const body = h('div', { class: 'sheet scroll' }, loading('Asking what providers hold'));
	fill(root, body);
	async function load() {
		try {
			const { sessions } = await get(conversationPath(it.conversation, 'sessions'), {}, asking.signal);
			fill(body, sessions.length === 0 ? nothing() : sessions.map(session));
		} catch (problem) {
			if (problem.name !== 'AbortError') fill(body, failed(problem, load));
		}
	}
	load();
	return { happened: load, end: () => asking.abort() };
}

const nothing = () => empty('No provider remembers this conversation',
	h('p', 'Claude Code and Codex keep sessions of their own. When one of them carries this conversation on, you see here what it holds, and what it still reads in full although it was decided shorter.'),
	h('pre', 'recto run --with claude-code NAME \u2018Go on.\u2019'));

function session(one) {
	const held = one.acked === null ? 0 : one.acked + 1;
	const all = one.head === null ? 0 : one.head + 1;
	const stale = one.stale ?? [];
	const tokens = stale.reduce((sum, row) => sum + row.tokens, 0);
	const bar = h('progress', { max: Math.max(1, all), value: held, 'aria-label': `Holds ${held} of ${all} entries` });
	return h('section', { class: 'block session' }, h('h2', one.provider, h('small', `reader ${one.reader}${one.workspace ? ` \u00b7 ${one.workspace}` : ''}`)),
		one.lost && h('p', { class: 'bad' }, `It was lost: ${typeof one.lost === 'string' ? one.lost : JSON.stringify(one.lost)}. The next call tells it everything again.`),
		bar, h('p', held === all ? `It holds everything, up to #${one.head}.` : `It holds everything up to ${one.acked === null ? 'nothing' : `#${one.acked}`}: ${count(held)} of ${many(all, 'entry', 'entries')}, ${percent(held, all)}. The rest is told at the next call.`),
		h('dl', { class: 'facts' }, h('dt', 'Session'), h('dd', h('code', one.id ?? 'none yet')), one.seeded !== null && one.seeded !== undefined && [h('dt', 'Told everything'), h('dd', `at call ${one.seeded}`)],
			one.sent && [h('dt', 'Under way'), h('dd', one.sent.is_over ? `A call was sent ${moment(one.sent.since)} and nobody acknowledged it: what came of it is looked up before the next.` : `A call was sent ${moment(one.sent.since)}; until ${moment(one.sent.until)} nobody else may send.`)]),
		stale.length === 0 ? h('p', { class: 'meta' }, 'Nothing of it is stale.')
			: [h('p', h('b', `\u25d0 ${count(tokens)} tokens are stale`), `: it reads in full what was decided shorter, in ${many(stale.length, 'stretch', 'stretches')}.`),
				table([['Entries'], ['Tokens too many', 'number']], stale.slice(0, STALE_MAX).map((row) => [span(row), count(row.tokens)]), { class: 'rows compare' })]);
}
