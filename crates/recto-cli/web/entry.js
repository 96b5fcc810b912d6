// One entry, whole: as it was said, as it was read, what differs, what was decided about it; and what can be done.
import { conversationPath, get, readerPath, send } from './api.js';
import { button, copy, failed, fateMark, fill, h, loading } from './dom.js';
import { lines } from './diff.js';
import { decision, pass, reason } from './fates.js';
import { count, many, moment } from './format.js';
import { TEXT_CHARS_MAX, beginning, partText, partsText } from './text.js';

// How many equal lines stay around a difference.
const AROUND = 3;

export class Drawer {
	// `closed(seq)` gives the focus back to the row.
	constructor(it, closed) {
		this.it = it;
		this.closed = closed;
		this.asking = new AbortController();
		this.element = h('aside', { class: 'drawer', 'aria-label': 'Entry', tabindex: '-1', hidden: true });
	}

	get isOpen() {
		return !this.element.hidden;
	}

	async show(seq, fate, messages) {
		Object.assign(this, { seq, fate, messages, original: null });
		this.element.hidden = false;
		this.element.setAttribute('aria-label', `Entry ${seq}`);
		this.asking.abort();
		this.asking = new AbortController();
		fill(this.element, this.head(), loading('Reading the entry'));
		this.element.focus({ preventScroll: true });
		await this.load();
	}

	async load() {
		const { it, seq } = this;
		try {
			this.entry = await get(conversationPath(it.conversation, 'entries', seq), {}, this.asking.signal);
			this.draw([]);
			const decisions = await it.allDecisions();
			if (this.seq === seq) this.draw(decisions.filter((one) => touches(one, seq)));
		} catch (problem) {
			if (problem.name !== 'AbortError') fill(this.element, this.head(), failed(problem, () => this.load()));
		}
	}

	// Reads again what was decided.
	again() {
		if (this.isOpen) this.load();
	}

	hide() {
		this.element.hidden = true;
		this.closed(this.seq);
	}

	key(event) {
		const act = { Escape: () => this.hide(), e: () => this.bringBack(), p: () => this.pin() }[event.key];
		return act ? (act(), true) : false;
	}

	head() {
		return h('header', h('h2', `Entry #${this.seq}`), button('\u00d7', () => this.hide(), { class: 'quiet close', 'aria-label': 'Close the entry' }));
	}

	draw(decisions) {
		const { entry: { entry, tokens }, fate, it } = this;
		const said = partsText(entry.parts);
		const read = this.messages.map((message) => partsText(message.parts)).join('\n');
		const isChanged = this.messages.length > 0 && said !== read;
		const pins = decisions.filter((one) => one.edit.change.pin && !one.reverted);
		const isReduced = fate && fate.fate !== 'shown';
		const hadFocus = this.element.contains(document.activeElement) ? document.activeElement.dataset?.act : null;
		fill(this.element, this.head(),
			h('dl', { class: 'facts' },
				fact('Fate', fateMark(fate?.fate)),
				fate && fact('Why', `${pass(fate)}: ${reason(fate)}`),
				fact('Said by', [entry.role, entry.author && ` ${entry.author}`, entry.origin && ` (origin ${entry.origin})`]),
				fact('Tokens', isReduced && fate.entries === 1 ? `${count(fate.before)} as it was said, ${count(fate.after)} on the page` : count(tokens)),
				Number.isFinite(entry.at) && fact('When', moment(entry.at))),
			h('div', { class: 'row actions' },
				button('Bring it back', () => this.bringBack(), { 'data-act': 'expand', disabled: !isReduced, title: 'From the next page on it stands there as it was said', 'aria-keyshortcuts': 'e' }),
				pins.length > 0 ? button('Take the pin back', () => this.unpin(pins), { 'data-act': 'unpin' }) : button('Pin', () => this.pin(), { 'data-act': 'pin', title: 'It is never shortened or left out from now on', 'aria-keyshortcuts': 'p' }),
				button('Copy', () => copy(said, 'Entry'), { 'data-act': 'copy' }),
				button('With its secrets', () => this.withSecrets(), { 'data-act': 'original', title: 'As it was said, before secrets were replaced' })),
			decisions.length > 0 && h('section', { class: 'decided' }, h('h3', 'What was decided'), h('ol', decisions.map((one) => this.decided(one)))),
			this.original && section('As it was said, with its secrets', whole(this.original.entry.parts)),
			isChanged && section('What differs', difference(said, read)),
			this.messages.length > 0 && section(isChanged ? 'As the model read it' : 'As it was said, and as the model read it', this.messages.map((message) => whole(message.parts))),
			(isChanged || this.messages.length === 0) && section('As it was said', whole(entry.parts)),
			h('p', { class: 'meta' }, `Handle m${this.seq} \u00b7 section ${entry.section ?? 'messages'} \u00b7 ${entry.status ?? ''}${it.turn === 'next' ? '' : ` \u00b7 page of call ${it.turn}`}`));
		if (hadFocus) (this.element.querySelector(`[data-act="${CSS.escape(hadFocus)}"]:not(:disabled)`) ?? this.element).focus({ preventScroll: true });
	}

	decided(one) {
		const { word } = decision(one.edit);
		const canRevert = !one.reverted;
		return h('li', { class: one.reverted ? 'reverted' : null },
			h('span', h('b', word), ` before call ${one.turn}, by `, h('em', one.edit.by), `: ${reason(one.edit.why)}`, Number.isFinite(one.edit.before) && one.edit.before !== one.edit.after && ` (${count(one.edit.before)} \u2192 ${count(one.edit.after)})`),
			one.reverted ? h('small', `taken back before call ${one.reverted.turn}`) : canRevert && button('Take back', () => this.revert(one), { 'data-act': `revert-${one.ordinal}`, 'aria-label': `Take back decision ${one.ordinal}` }));
	}

	revert(one) {
		return this.it.change(`Decision ${one.ordinal} was taken back. The next page shows it.`, () => send('POST', readerPath(this.it, 'decisions', one.ordinal, 'revert')));
	}

	async bringBack() {
		if (!this.fate || this.fate.fate === 'shown') return;
		const settings = await this.it.settings().catch(() => ({}));
		await this.it.change(`#${this.seq} stands on the next page again.`, () => send('POST', readerPath(this.it, 'expand'), { ...settings, handle: `m${this.seq}`, in_place: true, reason: 'asked for in the inspector' }));
	}

	pin() {
		const { seq } = this;
		return this.it.change(`#${seq} is pinned from the next page on.`, () => send('POST', readerPath(this.it, 'pins'), { first: seq, last: seq }));
	}

	async unpin(pins) {
		await this.it.change(`#${this.seq} is not pinned any more.`, async () => {
			for (const one of pins) {
				const { first, last } = one.edit.change.pin;
				await send('DELETE', `${readerPath(this.it, 'pins')}?first=${encodeURIComponent(first)}&last=${encodeURIComponent(last)}`);
			}
		});
	}

	async withSecrets() {
		await this.it.change('This is the entry with its secrets.', async () => {
			this.original = await get(conversationPath(this.it.conversation, 'entries', this.seq, 'original'));
		});
	}

	end() {
		this.asking.abort();
	}
}

const fact = (name, value) => [h('dt', name), h('dd', value)];
const section = (title, ...content) => h('section', h('h3', title), ...content);

function touches(one, seq) {
	const { span } = decision(one.edit);
	return span.first <= seq && seq <= span.last;
}

// All parts, as long as they may be; the rest is one click away.
function whole(parts) {
	return (parts ?? []).map((part) => {
		const { kind, name, text } = partText(part);
		const words = h('pre', { class: 'words', tabindex: '0' });
		const put = (most) => {
			const { text: start, more } = beginning(text, Infinity, most);
			fill(words, start);
			if (more > 0) words.after(button(`Show ${count(Math.min(more, TEXT_CHARS_MAX))} more characters`, (event) => { event.target.remove(); put(most + TEXT_CHARS_MAX); }));
		};
		const box = h('div', { class: `part part-${kind}` }, (kind !== 'text' || name) && h('span', { class: 'kind' }, name ? `${kind} ${name}` : kind), words);
		put(20_000);
		return box;
	});
}

const SIGNS = { equal: ' ', gone: '\u2212', new: '+' };
const WORDS = { gone: 'left out', new: 'new' };

// The difference of two texts, long equal stretches folded.
function difference(said, read) {
	const rows = [];
	const pieces = lines(said.slice(0, TEXT_CHARS_MAX), read.slice(0, TEXT_CHARS_MAX));
	pieces.forEach((piece, index) => {
		const isLong = piece.is === 'gone' ? piece.lines.length > 60 : piece.is === 'equal' && piece.lines.length > 2 * AROUND + 1;
		const keep = piece.is === 'gone' ? 20 : AROUND;
		const parts = isLong ? [piece.lines.slice(0, index === 0 && piece.is === 'equal' ? 0 : keep), piece.lines.length - 2 * keep, piece.lines.slice(-keep)] : [piece.lines, 0, []];
		rows.push(...parts[0].map((line) => lineRow(piece.is, line)));
		if (parts[1] > 0) rows.push(h('span', { class: 'fold' }, `${many(parts[1], 'line', 'lines')} ${WORDS[piece.is] ?? 'the same'}`));
		rows.push(...parts[2].map((line) => lineRow(piece.is, line)));
	});
	return h('pre', { class: 'difference', tabindex: '0' }, rows);
}

const lineRow = (is, line) => h('span', { class: `line is-${is}` }, `${SIGNS[is]} ${line}`);
