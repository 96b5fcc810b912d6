// Differences: of texts by lines, and of pages by messages.

// The longest texts that are compared line by line, in lines.
export const LINES_MAX = 4_000;
// How much work one comparison may be, in steps.
export const STEPS_MAX = 4_000_000;

/**
 * Compares two texts line by line: a list of `{is, lines}`, with `is` one of `equal`, `gone`, `new`. Texts that are too
 * long, or too different, are all gone and all new.
 */
export function lines(before, after) {
	const [old, now] = [split(before), split(after)];
	let start = 0;
	while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
	let end = 0;
	while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
	const middle = between(old.slice(start, old.length - end), now.slice(start, now.length - end));
	return joined([{ is: 'equal', lines: old.slice(0, start) }, ...middle, { is: 'equal', lines: end ? old.slice(-end) : [] }]);
}

const split = (text) => (text === '' || text == null ? [] : String(text).split('\n'));

function between(old, now) {
	const whole = [{ is: 'gone', lines: old }, { is: 'new', lines: now }];
	const isTooMuch = old.length > LINES_MAX || now.length > LINES_MAX || old.length * now.length > STEPS_MAX;
	if (old.length === 0 || now.length === 0 || isTooMuch) return whole;
	const width = now.length + 1;
	const common = new Uint16Array((old.length + 1) * width);
	for (let i = old.length - 1; i >= 0; i--) {
		for (let j = now.length - 1; j >= 0; j--) {
			const place = i * width + j;
			common[place] = old[i] === now[j] ? common[place + width + 1] + 1 : Math.max(common[place + width], common[place + 1]);
		}
	}
	const found = [];
	let [i, j] = [0, 0];
	while (i < old.length || j < now.length) {
		if (i < old.length && j < now.length && old[i] === now[j]) {
			found.push({ is: 'equal', lines: [old[i]] });
			[i, j] = [i + 1, j + 1];
		} else if (j >= now.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
			found.push({ is: 'gone', lines: [old[i]] });
			i += 1;
		} else {
			found.push({ is: 'new', lines: [now[j]] });
			j += 1;
		}
	}
	return found;
}

function joined(pieces) {
	const made = [];
	for (const piece of pieces) {
		if (piece.lines.length === 0) continue;
		const last = made.at(-1);
		if (last?.is === piece.is) last.lines.push(...piece.lines);
		else made.push({ is: piece.is, lines: [...piece.lines] });
	}
	return made;
}

// Folds runs of equal messages of a difference: a list of rows, and of `{is: 'equals', count, tokens}`.
export function folded(messages, around = 1) {
	const keep = messages.map((row, index) => messages.slice(Math.max(0, index - around), index + around + 1).some((it) => it.is !== 'equal'));
	const made = [];
	messages.forEach((row, index) => {
		if (keep[index]) return made.push(row);
		const last = made.at(-1);
		if (last?.is === 'equals') {
			last.count += 1;
			last.tokens += row.tokens ?? 0;
		} else made.push({ is: 'equals', count: 1, tokens: row.tokens ?? 0 });
	});
	return made;
}

// Returns the entries whose fate differs between two receipts; runs are compared where single rows stand in the other.
export function fatesApart(before, after, most = 500) {
	const apart = [];
	const find = finder(after);
	const seen = new Set();
	const compare = (seq, one, two) => {
		if (seen.has(seq) || !one || !two) return;
		seen.add(seq);
		if (one.fate !== two.fate || one.after !== two.after) apart.push({ seq, before: one, after: two });
	};
	for (const row of before) if (row.span.first === row.span.last) compare(row.span.first, row, find(row.span.first));
	const findOld = finder(before);
	for (const row of after) if (row.span.first === row.span.last) compare(row.span.first, findOld(row.span.first), row);
	apart.sort((one, two) => one.seq - two.seq);
	return { rows: apart.slice(0, most), all: apart.length };
}

function finder(fates) {
	const singles = new Map();
	const runs = [];
	for (const row of fates) {
		if (row.span.first === row.span.last) singles.set(row.span.first, row);
		else runs.push(row);
	}
	return (seq) => singles.get(seq) ?? runs.find((row) => row.span.first <= seq && row.span.last >= seq);
}
