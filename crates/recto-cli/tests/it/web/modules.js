// Runs in a page of the inspector, over the modules it has just loaded. Returns what is not as it should be.
const names = ['text', 'format', 'fates', 'ledger', 'diff', 'virtual', 'plot', 'live', 'curl', 'route'];
const loaded = await Promise.all(names.map((name) => import(`${base}/${name}.js`)));
const { text, format, fates, ledger, diff, virtual, plot, live, curl, route } = Object.fromEntries(names.map((name, at) => [name, loaded[at]]));
const wrong = [];
let checks = 0;
const is = (what, got, wanted) => {
  checks += 1;
  if (JSON.stringify(got) !== JSON.stringify(wanted)) wrong.push(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
};
const holds = (what, so) => is(what, Boolean(so), true);

// Words: every letter can be seen.
is('right-to-left', text.visible('a\u202eb'), 'a\u27e8U+202E\u27e9b');
is('isolates', text.visible('\u2066x\u2069'), '\u27e8U+2066\u27e9x\u27e8U+2069\u27e9');
is('control letters', text.visible('\u0000\u001b\u007f\u0085'), '\u2400\u241b\u2421\u27e8U+0085\u27e9');
is('lines and tabs stay', text.visible('a\n\tb\r\nc'), 'a\n\tb\nc');
is('a lone return is seen', text.visible('a\rb'), 'a\u240db');
is('tags', text.visible('hi\u{e0041}'), 'hi\u27e8U+E0041\u27e9');
is('zero width', text.visible('a\u200bb\u2060\ufeff'), 'a\u27e8U+200B\u27e9b\u27e8U+2060\u27e9\u27e8U+FEFF\u27e9');
is('half letters', text.visible('a\ud800b\udc00'), 'a\u27e8U+D800\u27e9b\u27e8U+DC00\u27e9');
is('emoji stay', text.visible('\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u00e4\u05d0\u0627'), '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u00e4\u05d0\u0627');
is('a joiner between plain letters', text.visible('pay\u200dpal'), 'pay\u27e8U+200D\u27e9pal');
is('nothing', text.visible(null), '');
is('beginning by lines', text.beginning('a\nb\nc', 2, 99), { text: 'a\nb', more: 2 });
is('beginning by characters', text.beginning('abcdef', 9, 3), { text: 'abc', more: 3 });
is('beginning of all', text.beginning('a\nb', 2, 99), { text: 'a\nb', more: 0 });
is('beginning keeps letters whole', text.beginning('a\u{1f600}b', 9, 2), { text: 'a', more: 3 });
is('a call', text.partText({ type: 'call', name: 'run', arguments: { string: '{}' } }), { kind: 'call', name: 'run', text: '{}' });
is('a result', text.partText({ type: 'result', content: [{ type: 'text', text: 'x' }, { type: 'image' }], is_error: true }).kind, 'error');
is('an unknown part', text.partText({ type: '<img onerror=x>' }).text, '[<img onerror=x>]');

// Numbers.
is('count', format.count(1234567), '1\u202f234\u202f567');
is('no count', format.count(null), '\u2013');
is('short', [0, 999, 1000, 99949, 99950, 999499, 999500, 12345678].map(format.short), ['0', '999', '1.0k', '99.9k', '100k', '999k', '1.00M', '12.3M']);
is('usd', [0, 0.0000325, 0.0255, 0.5, 1.774, -2.5, 12345].map(format.usd), ['$0.00', '$0.0000325', '$0.025', '$0.500', '$1.77', '\u2212$2.50', '$12\u202f345.00']);
is('percent', [[1, 0], [0, 5], [1, 3], [1, 5000], [3, 4]].map((it) => format.percent(...it)), ['\u2013', '0\u202f%', '33\u202f%', '<0.1\u202f%', '75\u202f%']);
is('signed', [format.signed(-5), format.signed(0), format.signed(7)], ['\u22125', '\u00b10', '+7']);
is('sizes', ['32k', '32_000', ' 1.5M ', '', '0', 'many', '-3', '1e3'].map((it) => String(format.size(it))), ['32000', '32000', '1500000', 'null', '0', 'NaN', 'NaN', 'NaN']);
is('ago', [0, 30e3, 120e3, 7200e3, 864e5 * 3].map((it) => format.ago(1e12, 1e12 + it)), ['just now', '30 s ago', '2 min ago', '2 h ago', '3 d ago']);

// Rows: every entry once, in order; runs are folded until they are opened.
const one = (seq, fate = 'shown', more = {}) => ({ span: { first: seq, last: seq }, entries: 1, fate, by: 'select', reason: 'selected', before: 5, after: 5, ...more });
const run = { span: { first: 0, last: 9 }, entries: 10, fate: 'not_shown', by: 'fit-window', reason: 'below_floor', floor: 10, before: 100, after: 0 };
const receipt = { fates: [run, one(10), one(11, 'changed')], prefix: { messages: 2, previous: 2 } };
const messages = [{ seq: null }, { seq: 10 }, { seq: null }, { seq: 11 }];
const shape = (rows) => rows.map((row) => `${row.kind}:${row.seq ?? row.first ?? ''}${row.line ? '|' : ''}`);
is('rows', shape(fates.rows(13, receipt, messages)), ['message:', 'run:0', 'entry:10|', 'message:', 'entry:11', 'entry:12']);
is('an opened run', shape(fates.rows(13, receipt, messages, new Set([0]))).length, 15);
const deep = { ...run, span: { first: 0, last: 29_999 }, entries: 30_000 };
is('a long run is opened in parts', shape(fates.rows(30_000, { fates: [deep] }, [], new Set([0]))).slice(-2), ['entry:9999', 'run:10000']);
is('a kept entry within a run', shape(fates.rows(10, { fates: [run, one(3)] }, [{ seq: 3 }])), ['run:0', 'entry:3', 'run:4']);
is('no receipt', shape(fates.rows(3, null, null)), ['entry:0', 'entry:1', 'entry:2']);
is('tally', fates.tally(receipt.fates), { shown: 1, changed: 1, not_shown: 10 });
is('a reason', fates.reason({ reason: 'excerpted', kept: 2, of: 30, age: 4 }), '2 of 30 lines kept, after 4 calls');
is('an unknown reason', fates.reason({ reason: 'brand_new' }), 'brand new');

// The bar: everything is there, nothing is too thin, and it is full.
const bar = ledger.layout({ window: 32000, reserve_out: 8000, tools: 606, system: 1, user: 683, results: 8895 });
is('parts', bar.parts.map((it) => it.key), ['tools', 'system', 'user', 'results', 'reserve_out', 'left']);
holds('no part is too thin', bar.parts.every((it) => it.width > 2.9));
holds('the bar is full', Math.abs(bar.parts.reduce((sum, it) => sum + it.width, 0) - 1000) < 1e-6);
holds('parts stand behind each other', bar.parts.every((it, at) => at === 0 || Math.abs(it.from - bar.parts[at - 1].from - bar.parts[at - 1].width) < 1e-6));
is('an empty bar', ledger.layout({}).parts, []);
is('a window without end', ledger.layout({ window: null, user: 5 }).parts.length, 1);
is('used', ledger.used({ reserve_out: 100, tools: 1, user: 2, framing: 3 }), 6);
holds('a broken prefix is told', ledger.cacheLine({ prefix: { messages: 3, previous: 25, broken_at: 3, tokens: 9 }, money: { cached: 1, plain: 1, written: 0 } }, 5)[0].includes('#3'));
holds('the first call', ledger.cacheLine({ prefix: { previous: null }, money: {} }, 0)[0].includes('first'));

// Differences.
is('lines', diff.lines('a\nb\nc\nd', 'a\nc\nx\nd').map((it) => `${it.is}:${it.lines.join()}`), ['equal:a', 'gone:b', 'equal:c', 'new:x', 'equal:d']);
is('no lines', diff.lines('', ''), []);
is('all gone', diff.lines('a\nb', '').map((it) => it.is), ['gone']);
const long = Array.from({ length: 9000 }, (_, at) => `line ${at}`);
holds('long texts are compared in bounded time', diff.lines(long.join('\n'), [...long].reverse().join('\n')).length >= 2);
is('folded', diff.folded([{ is: 'equal', tokens: 1 }, { is: 'equal', tokens: 2 }, { is: 'equal', tokens: 3 }, { is: 'new', tokens: 4 }]).map((it) => it.is + (it.tokens ?? '')), ['equals3', 'equal3', 'new4']);
is('fates apart', diff.fatesApart([run, one(10), one(11)], [one(3), one(10), one(11, 'changed')]).rows.map((it) => it.seq), [3, 11]);

// Long lists, against the plain way to count.
let seed = 7;
const random = (most) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % most; };
const heights = new virtual.Heights(500, 20);
const plain = Array(500).fill(20);
for (let times = 0; times < 800; times++) { const [row, height] = [random(500), 1 + random(300)]; heights.set(row, height); plain[row] = height; }
const tops = plain.reduce((all, height) => [...all, all.at(-1) + height], [0]);
holds('tops', tops.every((top, row) => Math.abs(heights.top(row) - top) < 1e-6));
holds('rows at places', Array.from({ length: 400 }, () => random(tops.at(-1))).every((place) => { const row = heights.at(place); return tops[row] <= place && place < tops[row + 1]; }));
is('beyond the end', [heights.at(-5), heights.at(1e12)], [0, 499]);
is('no rows', [new virtual.Heights(0, 20).total, virtual.inSight(new virtual.Heights(0, 20), 0, 100)], [0, { first: 0, end: 0 }]);
const sight = virtual.inSight(new virtual.Heights(100_000, 100), 5_000_000, 900, 6);
is('a hundred thousand rows', sight, { first: 49_994, end: 50_016 });
is('chunks', [virtual.chunks(95, 205, 100), virtual.chunks(5, 5, 100)], [[0, 1, 2], []]);
const kept = new virtual.Kept(2);
kept.set('a', 1); kept.set('b', 2); kept.get('a'); kept.set('c', 3);
is('what was not asked for goes', [kept.get('a'), kept.get('b'), kept.get('c')], [1, undefined, 3]);

// Charts.
is('ticks', [plot.ticks(68_000), plot.ticks(0), plot.ticks(4.6)], [[0, 20_000, 40_000, 60_000, 80_000], [0, 1], [0, 2, 4, 6]]);
is('a line with a gap', plot.line([[0, 0], [1, null], [2, 2]], (it) => it, (it) => it), 'M0 0M2 2');
const many = Array.from({ length: 10_000 }, (_, at) => [at, at === 5_000 ? 999 : at % 7]);
const thin = plot.thinned(many, 300);
holds('peaks stay when points are thinned out', thin.length <= 301 && thin.some(([, value]) => value === 999));
is('sums', plot.sums([1, null, 2]), [1, 1, 3]);
is('bars', plot.bars(Array.from({ length: 9 }, (_, turn) => ({ turn, tokens: turn, cached: 99 })), 3).map((it) => [it.from, it.to, it.tokens, it.cached]), [[0, 2, 2, 2], [3, 5, 5, 5], [6, 8, 8, 8]]);

// Streams: whoever was cut off goes on from the mark.
let state = live.fresh('0.0.1');
state = live.after(state, { type: 'added', id: '0.1.2' });
state = live.after(live.after(state, { type: 'added', id: '' }), { type: 'failed' });
is('the mark is kept', state, { mark: '0.1.2', failures: 1, over: null });
is('connected again', live.after(state, { type: 'open' }).failures, 0);
is('erased is the end', live.after(state, { type: 'erased' }).over, 'erased');
is('waits', [1, 2, 3, 50].map(live.wait), [500, 1000, 2000, live.WAIT_MAX]);
is('addresses', [live.address('/e', null), live.address('/e', 'a&b')], ['/e', '/e?since=a%26b']);

// Commands mean what they say.
is('quotes', curl.quoted("it's"), "'it'\\''s'");
holds('a command', curl.curl('anthropic', "{\"a\":\"$(x) 'y'\"}").includes("--data-raw '{\"a\":\"$(x) '\\''y'\\''\"}'"));

// Addresses: a name is never more than a name.
const odd = { conversation: 'a/b?c#d%', reader: '..', tab: 'turn', turn: 3 };
is('there and back', route.read(route.address(odd)), { view: 'conversation', ...odd });
is('nowhere', [route.read('#/x'), route.read(''), route.read('#/c/a/main/nope/9').tab, route.read('#/c/%zz').conversation], [{ view: 'conversations' }, { view: 'conversations' }, 'page', '%zz']);

return { checks, wrong };
