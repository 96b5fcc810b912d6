// Words that somebody else wrote, made fit to be looked at. Everything here is a string in, a string out.

// The longest text that is put on the screen at once, in characters.
export const TEXT_CHARS_MAX = 200_000;

// Letters that can't be seen, or that change how others are read: direction marks, zero-width letters, tags.
const UNSEEN =
	/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|[\u{1d173}-\u{1d17a}]|(?<=[\x20-\x7e])[\u200c\u200d]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

// Returns a text in which every letter can be seen.
export function visible(text) {
	return String(text ?? '').replace(/\r\n/g, '\n').replace(UNSEEN, (letter) => {
		const code = letter.codePointAt(0);
		if (code < 0x20) return String.fromCodePoint(0x2400 + code);
		if (code === 0x7f) return '\u2421';
		return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
	});
}

// Returns the beginning of a text: so many lines, so many characters. `more` is what was left out, in characters.
export function beginning(text, linesMax, charsMax) {
	const all = String(text ?? '');
	let end = Math.min(all.length, charsMax);
	let at = -1;
	for (let line = 0; line < linesMax; line++) {
		at = all.indexOf('\n', at + 1);
		if (at < 0 || at >= end) break;
		if (line === linesMax - 1) end = at;
	}
	// Letters of two units stay whole.
	if (end < all.length && end > 0 && /[\ud800-\udbff]/.test(all[end - 1])) end -= 1;
	return { text: all.slice(0, end), more: all.length - end };
}

const bytes = (data) => (typeof data === 'string' ? `, ${data.length.toLocaleString('en-US')} characters` : '');

function argumentsOf(given) {
	const text = typeof given === 'string' ? given : given?.object ?? given?.string ?? '';
	return typeof text === 'string' ? text : JSON.stringify(text);
}

function source(part) {
	const data = part.data ?? part.source?.data;
	const place = part.url ?? part.source?.url;
	return place ? ` ${place}` : bytes(data);
}

// Returns what a part says, as text: `kind` is its sort, `name` the tool's.
export function partText(part) {
	switch (part?.type) {
		case 'text': return { kind: 'text', name: '', text: part.text ?? '' };
		case 'reasoning': return { kind: 'reasoning', name: '', text: part.text ?? part.summary ?? '(sealed reasoning)' };
		case 'call': return { kind: 'call', name: part.name ?? '', text: argumentsOf(part.arguments) };
		case 'result': return { kind: part.is_error ? 'error' : 'result', name: part.name ?? '', text: contentText(part.content) };
		case undefined: return { kind: 'other', name: '', text: typeof part === 'string' ? part : JSON.stringify(part ?? null) };
		case 'opaque': return { kind: 'opaque', name: '', text: JSON.stringify(part) };
		default: return { kind: part.type, name: '', text: `[${part.type}${source(part)}]` };
	}
}

function contentText(content) {
	if (typeof content === 'string') return content;
	if (!Array.isArray(content)) return content == null ? '' : JSON.stringify(content);
	return content.map((piece) => (piece.type === 'text' ? piece.text ?? '' : `[${piece.type}${source(piece)}]`)).join('\n');
}

// Returns everything that parts say, one after the other.
export function partsText(parts) {
	return (parts ?? []).map((part) => {
		const { kind, name, text } = partText(part);
		if (kind === 'call') return `${name}(${text})`;
		return text;
	}).join('\n');
}
