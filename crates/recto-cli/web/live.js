// What happens, as it happens. The arithmetic of connecting again is apart from the connection, so that it can be tested.

// The longest wait before connecting again, in milliseconds.
export const WAIT_MAX = 30_000;
// How long what happens is gathered before anybody is told, in milliseconds.
const GATHERED = 200;

// How a stream stands: what to go on from, how often it failed since, and whether it is over.
export const fresh = (mark) => ({ mark, failures: 0, over: null });

// Returns how a stream stands after something came of it.
export function after(state, event) {
	switch (event.type) {
		case 'open': return { ...state, failures: 0 };
		case 'failed': return { ...state, failures: state.failures + 1 };
		case 'erased': return { ...state, over: 'erased' };
		// Whoever was cut off goes on from the mark.
		case 'closing':
		case 'lagging': return { ...state, failures: state.failures + 1 };
		default: return event.id ? { ...state, mark: event.id, failures: 0 } : state;
	}
}

// Returns how long to wait before connecting again, in milliseconds.
export const wait = (failures) => Math.min(WAIT_MAX, 500 * 2 ** Math.min(10, Math.max(0, failures - 1)));

// Returns where to connect: with the mark, if there is one.
export const address = (path, mark) => (mark ? `${path}?since=${encodeURIComponent(mark)}` : path);

const TYPES = [
	'added', 'expired', 'compacted', 'removed', 'floor', 'cut', 'settled', 'pinned', 'expanded', 'expand_refused',
	'compaction_failed', 'reverted', 'acked', 'session_invalidated', 'changed', 'gone', 'erased', 'closing', 'lagging',
];

// Follows a stream until `stop` is called. `hear` gets lists of events, `tell` whether it is connected.
export function follow(path, mark, hear, tell) {
	let state = fresh(mark);
	let source = null;
	let timer = null;
	let waiting = [];
	let gathering = null;
	const flush = () => {
		gathering = null;
		const events = waiting;
		waiting = [];
		if (events.length) hear(events);
	};
	const heard = (type, message) => {
		let data = {};
		try { data = JSON.parse(message.data || '{}'); } catch { /* What can't be read tells nothing but its type. */ }
		state = after(state, { type, id: message.lastEventId });
		waiting.push({ ...data, type });
		gathering ??= setTimeout(flush, GATHERED);
		if (state.over || type === 'closing' || type === 'lagging') again();
	};
	const again = () => {
		source?.close();
		tell(false);
		if (!state.over && timer === null) timer = setTimeout(connect, wait(state.failures));
	};
	const connect = () => {
		timer = null;
		source = new EventSource(address(path, state.mark));
		source.onopen = () => { state = after(state, { type: 'open' }); tell(true); };
		source.onerror = () => { state = after(state, { type: 'failed' }); again(); };
		for (const type of TYPES) source.addEventListener(type, (message) => heard(type, message));
	};
	// A page that nobody sees gives its connection up: browsers have few for one server.
	const seen = () => {
		if (document.hidden) source?.close();
		else if (!state.over && timer === null && source.readyState === EventSource.CLOSED) {
			connect();
			hear([{ type: 'lagging' }]);
		}
	};
	document.addEventListener('visibilitychange', seen);
	connect();
	return () => {
		document.removeEventListener('visibilitychange', seen);
		state = { ...state, over: 'stopped' };
		source?.close();
		clearTimeout(timer);
		clearTimeout(gathering);
	};
}
