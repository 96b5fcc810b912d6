// What became of entries, in words; and the rows in which a log and its page are laid side by side.
import { count, many } from './format.js';

// How many entries of a run are looked at at once.
export const RUN_MAX = 10_000;

// The three fates: never told by colour alone.
export const FATES = {
	shown: { sign: '\u25cf', word: 'shown' },
	changed: { sign: '\u25d0', word: 'changed' },
	not_shown: { sign: '\u25cb', word: 'not shown' },
	unknown: { sign: '\u00b7', word: 'not known' },
};

const at = (seq) => `#${seq}`;
const age = (why) => `expired after ${many(why.age, 'call', 'calls')} (limit ${why.limit})`;

const REASONS = {
	selected: () => 'nothing spoke against it',
	system: () => 'instructions are always shown',
	pinned: () => 'pinned',
	first_request: () => 'the first request stays',
	last_user_words: () => 'the user\u2019s last words stay',
	kept_by_floor: (why) => `named by the floor at ${at(why.floor)}`,
	newest: () => 'the newest: what is to be answered',
	status: (why) => `it did not end well: ${why.status}`,
	rule: (why) => `a rule keeps it: ${why.word}`,
	other_section: (why) => `section ${why.section} was not selected`,
	section_cap: (why) => `section ${why.section} shows its newest ${count(why.cap)} tokens`,
	trace: () => 'a trace of another run',
	folded: (why) => `the summary ${at(why.summary)} stands for it`,
	named: (why) => `said by ${why.author}`,
	over_cap: (why) => `${count(why.chars)} characters, ${count(why.cap)} are shown`,
	not_newest: (why) => `not among the newest ${why.keep}`,
	own: (why) => why.what,
	before_edge: (why) => `before the edge at ${at(why.edge)}`,
	before_cursor: (why) => `the provider holds everything up to ${at(why.acked)}`,
	remote_stale: (why) => `the provider still reads ${count(why.tokens)} tokens more than was decided`,
	below_floor: (why) => `below the floor at ${at(why.floor)}`,
	too_long: (why) => `history ${count(why.cost)}, room ${count(why.room)}: down to ${count(why.target)}`,
	expanded: (why) => `expanded before call ${why.turn}${why.asked ? `: ${why.asked}` : ', on request'}`,
	removed: (why) => age(why),
	compacted: (why) => `${age(why)}: first ${count(why.shown)} of ${count(why.of)} characters`,
	ends_kept: (why) => `${age(why)}: first ${count(why.head)} and last ${count(why.tail)} of ${count(why.of)} characters`,
	condensed: (why) => `${age(why)}: ${count(why.shown)} characters by ${why.model} for ${count(why.of)}`,
	not_condensed: (why) => `${age(why)}: first ${count(why.shown)} of ${count(why.of)} characters, no summary: ${why.why}`,
	summarized: (why) => `a note by ${why.model} stands for ${span(why.stands_for)}`,
	excerpted: (why) => `${count(why.kept)} of ${many(why.of, 'line', 'lines')} kept, after ${many(why.age, 'call', 'calls')}`,
	pays: (why) => `waiting has cost ${count(why.rent)}, breaking the cache costs ${count(why.cost)}`,
	must_fit: () => 'it would not fit',
	cache_is_cold: () => 'the cache is cold, so changing is free',
	duplicate: (why) => `same as the result ${at(why.of)}`,
	superseded: (why) => `superseded by ${at(why.newer)}`,
	similar: (why) => `${why.percent}\u202f% the same as the result ${at(why.to)}`,
	irrelevant: (why) => `${many(why.age, 'call', 'calls')} old, ${why.percent}\u202f% of it has to do with what was said lately`,
	orphan_result: (why) => `no call ${why.call}`,
	late_result: (why) => `late result of call ${why.call}`,
	erased: (why) => `erased, ${count(why.bytes)} bytes`,
	empty: () => 'nothing in it could be shown',
	duplicate_input: () => 'it is the current input, which stands at the end',
	prefix_changed: () => 'bound to what stood before it, and that has changed',
	prefix_unknown: () => 'bound to what stood before it, and nobody recorded that',
	not_taken: (why) => `the model takes no ${why.what}`,
};

// Returns a span of entries as people write it.
export const span = (it) => (!it ? '' : it.first === it.last ? at(it.first) : `${at(it.first)}\u2013${it.last}`);

// Returns a reason in words. One that this page does not know is told by its name.
export function reason(why) {
	const spell = REASONS[why?.reason];
	if (spell) return spell(why);
	return String(why?.reason ?? 'no reason given').replace(/_/g, ' ');
}

// Returns the pass that saw to a fate.
export const pass = (row) => String(row?.by ?? '');

// Returns what a decision does, in a few words, and the entries it is about.
export function decision(edit) {
	const [kind, body] = Object.entries(edit?.change ?? {})[0] ?? ['unknown', {}];
	const one = (place) => ({ first: place?.seq ?? 0, last: place?.seq ?? 0 });
	switch (kind) {
		case 'hide': return { word: 'hidden', span: body };
		case 'omit': return { word: 'part left out', span: one(body) };
		case 'replace': return { word: 'shortened', span: one(body.at) };
		case 'floor': return { word: 'floor', span: { first: body.at, last: body.at } };
		case 'settle': return { word: 'settled', span: { first: body.step, last: body.step } };
		case 'pin': return { word: 'pinned', span: body };
		case 'cut': return { word: 'cache cut', span: { first: body.from, last: body.from } };
		case 'expand': return { word: 'expanded', span: one(body.at) };
		default: return { word: kind, span: { first: 0, last: 0 } };
	}
}

// Returns how many entries had which fate.
export function tally(fates) {
	const sums = { shown: 0, changed: 0, not_shown: 0 };
	for (const row of fates ?? []) sums[row.fate] = (sums[row.fate] ?? 0) + row.entries;
	return sums;
}

/**
 * Lays a log and a page side by side: one row for each entry that has a fate of its own, one for each run of entries that
 * share theirs, and one for each message that shows no entry, where it stands on the page.
 *
 * Rows are `{kind: 'entry', seq, fate, messages}`, `{kind: 'run', first, last, fates}` and `{kind: 'message', messages}`;
 * `messages` are places on the page. `line` on a row says that the cache line stands behind it.
 */
export function rows(entries, receipt, messages, opened = new Set()) {
	const singles = new Map();
	const runs = [];
	for (const fate of receipt?.fates ?? []) {
		if (fate.span.first === fate.span.last) singles.set(fate.span.first, fate);
		else runs.push(fate);
	}
	const { bySeq, behind } = placed(messages ?? []);
	const made = [];
	const loose = (seq) => {
		for (const place of behind.get(seq) ?? []) made.push({ kind: 'message', messages: [place] });
	};
	const run = (first, last) => {
		if (first > last) return;
		const fates = runs.filter((fate) => fate.span.first <= last && fate.span.last >= first);
		if (fates.length > 0 && last > first && !opened.has(first)) return made.push({ kind: 'run', first, last, fates });
		const end = fates.length > 0 ? Math.min(last, first + RUN_MAX - 1) : last;
		for (let seq = first; seq <= end; seq++) made.push({ kind: 'entry', seq, fate: fates[0] ?? null, messages: [] });
		run(end + 1, last);
	};
	loose(-1);
	let next = 0;
	const marked = [...new Set([...singles.keys(), ...bySeq.keys()])].filter((seq) => seq < entries).sort((a, b) => a - b);
	for (const seq of marked) {
		run(next, seq - 1);
		const fate = singles.get(seq) ?? runs.find((it) => it.span.first <= seq && it.span.last >= seq) ?? null;
		made.push({ kind: 'entry', seq, fate, messages: bySeq.get(seq) ?? [] });
		loose(seq);
		next = seq + 1;
	}
	run(next, entries - 1);
	return lined(made, receipt?.prefix);
}

// Which messages show which entry, and which stand behind that of an entry without showing one.
function placed(messages) {
	const bySeq = new Map();
	const behind = new Map();
	let last = -1;
	messages.forEach((message, place) => {
		const isEntry = Number.isInteger(message.seq);
		const [map, key] = isEntry ? [bySeq, message.seq] : [behind, last];
		if (!map.has(key)) map.set(key, []);
		map.get(key).push(place);
		if (isEntry) last = message.seq;
	});
	return { bySeq, behind };
}

// Marks the row behind which the cache line stands: that of the last message that was on the page before.
function lined(made, prefix) {
	const held = prefix?.messages ?? 0;
	if (held > 0) {
		const row = made.find((it) => it.messages?.includes(held - 1));
		if (row) row.line = true;
	}
	return made;
}
