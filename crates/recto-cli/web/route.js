// Which place of the page an address means.

// The views of a conversation, in the order of their tabs.
export const TABS = [['page', 'Page'], ['turn', 'Turn'], ['money', 'Money'], ['what-if', 'What if'], ['sessions', 'Sessions']];

function decoded(part) {
	try { return decodeURIComponent(part); } catch { return part; }
}

// Reads an address: `#/`, or `#/c/NAME/READER/TAB/CALL`.
export function read(hash) {
	const parts = String(hash).replace(/^#\/?/, '').split('/').filter((part) => part !== '').map(decoded);
	if (parts[0] !== 'c' || parts.length < 2) return { view: 'conversations' };
	const [, conversation, reader = 'main', tab = 'page', turn] = parts;
	const known = TABS.some(([name]) => name === tab) ? tab : 'page';
	return { view: 'conversation', conversation, reader, tab: known, turn: turnOf(turn) };
}

// A call is a number, or `next` for the one that comes; `null` is the newest.
function turnOf(text) {
	if (text === 'next') return 'next';
	return /^\d{1,12}$/.test(text ?? '') ? Number(text) : null;
}

// Returns the address of a view of a conversation.
export function address({ conversation, reader = 'main', tab = 'page', turn = null }) {
	const parts = ['c', conversation, reader, tab, ...(turn === null ? [] : [turn])];
	return `#/${parts.map((part) => encodeURIComponent(part)).join('/')}`;
}
