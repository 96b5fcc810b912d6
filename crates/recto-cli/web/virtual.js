// The arithmetic of long lists: which rows are in sight, and where they stand, without asking the browser.

// The heights of many rows, some measured and the rest guessed. Every question takes logarithmic time.
export class Heights {
	constructor(length, guess) {
		this.length = length;
		this.guess = guess;
		this.heights = new Float64Array(length).fill(guess);
		this.tree = new Float64Array(length + 1);
		for (let at = 1; at <= length; at++) {
			this.tree[at] += guess;
			const up = at + (at & -at);
			if (up <= length) this.tree[up] += this.tree[at];
		}
	}

	// Says how high a row is; returns by how much it differs from what was thought.
	set(row, height) {
		const by = height - this.heights[row];
		if (by === 0 || row < 0 || row >= this.length) return 0;
		this.heights[row] = height;
		for (let at = row + 1; at <= this.length; at += at & -at) this.tree[at] += by;
		return by;
	}

	// Returns where a row begins.
	top(row) {
		let sum = 0;
		for (let at = Math.min(Math.max(0, row), this.length); at > 0; at -= at & -at) sum += this.tree[at];
		return sum;
	}

	// Returns the height of all rows.
	get total() {
		return this.top(this.length);
	}

	// Returns the row that stands at a place.
	at(place) {
		if (this.length === 0) return 0;
		let row = 0;
		let left = Math.max(0, place);
		for (let step = 2 ** Math.floor(Math.log2(this.length)); step >= 1; step /= 2) {
			if (row + step <= this.length && this.tree[row + step] <= left) {
				row += step;
				left -= this.tree[row];
			}
		}
		return Math.min(row, this.length - 1);
	}
}

// Returns the rows to draw: those in sight and some around them, `first` up to and without `end`.
export function inSight(heights, top, height, around = 6) {
	if (heights.length === 0) return { first: 0, end: 0 };
	const first = Math.max(0, heights.at(top) - around);
	const end = Math.min(heights.length, heights.at(top + Math.max(0, height)) + 1 + around);
	return { first, end };
}

// Returns which chunks of so many rows hold the rows from `first` up to and without `end`.
export function chunks(first, end, size) {
	const made = [];
	if (end <= first) return made;
	for (let at = Math.floor(Math.max(0, first) / size); at * size < end; at++) made.push(at);
	return made;
}

// Remembers chunks, and forgets those that were not asked for longest.
export class Kept {
	constructor(most) {
		this.most = most;
		this.map = new Map();
	}

	get(key) {
		const found = this.map.get(key);
		if (found !== undefined) {
			this.map.delete(key);
			this.map.set(key, found);
		}
		return found;
	}

	set(key, value) {
		this.map.delete(key);
		this.map.set(key, value);
		while (this.map.size > this.most) this.map.delete(this.map.keys().next().value);
	}

	clear() {
		this.map.clear();
	}
}
