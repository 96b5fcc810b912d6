// The geometry of charts: scales, ticks and paths.

// Returns round numbers from 0 up to at least `most`, about so many.
export function ticks(most, about = 4) {
	if (!(most > 0)) return [0, 1];
	const rough = most / about;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = power * ([1, 2, 2.5, 5, 10].find((it) => it * power >= rough * 0.999) ?? 10);
	const made = [];
	for (let at = 0; made.length < 20; at++) {
		made.push(Number((at * step).toPrecision(12)));
		if (made.at(-1) >= most * 0.999) break;
	}
	return made;
}

// Returns a function from values to places.
export const scale = (from, to, start, end) => (value) => (to === from ? start : start + ((value - from) * (end - start)) / (to - from));

// Thins points out to at most so many, keeping the highest and the lowest of each stretch.
export function thinned(points, most) {
	if (points.length <= most || most < 4) return points;
	const per = Math.ceil(points.length / (most / 2));
	const made = [];
	for (let at = 0; at < points.length; at += per) {
		const stretch = points.slice(at, at + per);
		const low = stretch.reduce((a, b) => (b[1] < a[1] ? b : a));
		const high = stretch.reduce((a, b) => (b[1] > a[1] ? b : a));
		made.push(...(low[0] <= high[0] ? [low, high] : [high, low]).filter((it, index, both) => index === 0 || it !== both[0]));
	}
	return made;
}

const place = (number) => Number(number.toFixed(2));

// Returns the path through points; where a value is missing, the line is interrupted.
export function line(points, x, y) {
	let path = '';
	let isDown = false;
	for (const [at, value] of points) {
		if (!Number.isFinite(value)) {
			isDown = false;
			continue;
		}
		path += `${isDown ? 'L' : 'M'}${place(x(at))} ${place(y(value))}`;
		isDown = true;
	}
	return path;
}

// Returns the path around the area between points and zero.
export function area(points, x, y) {
	const there = points.filter(([, value]) => Number.isFinite(value));
	if (there.length === 0) return '';
	return `${line(there, x, y)}L${place(x(there.at(-1)[0]))} ${place(y(0))}L${place(x(there[0][0]))} ${place(y(0))}Z`;
}

// Returns the running sums of values; missing ones count nothing.
export function sums(values) {
	let sum = 0;
	return values.map((value) => (sum += Number.isFinite(value) ? value : 0));
}

// Gathers calls into at most so many bars: `{from, to, most, cached, decisions}`.
export function bars(points, most) {
	const per = Math.max(1, Math.ceil(points.length / most));
	const made = [];
	for (let at = 0; at < points.length; at += per) {
		const stretch = points.slice(at, at + per);
		const highest = stretch.reduce((a, b) => ((b.tokens ?? 0) > (a.tokens ?? 0) ? b : a));
		const decisions = stretch.reduce((sum, it) => sum + (it.reductions?.decisions ?? 0), 0);
		made.push({ from: stretch[0].turn, to: stretch.at(-1).turn, tokens: highest.tokens ?? 0, cached: Math.min(highest.cached ?? 0, highest.tokens ?? 0), decisions });
	}
	return made;
}

// Returns what points come to together; missing numbers count nothing.
export function totalled(points) {
	const names = ['tokens', 'tokens_without', 'cached', 'usd', 'usd_without'];
	return { calls: points.length, ...Object.fromEntries(names.map((name) => [name, sums(points.map((one) => one[name])).at(-1) ?? 0])) };
}
