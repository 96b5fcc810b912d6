// A list that draws only what is in sight. Rows may be of any height; the one that has the focus is always drawn.
import { h } from './dom.js';
import { Heights, inSight } from './virtual.js';

export class VirtualList {
	// `render(index)` makes a row; `needs(first, end)` is told which rows are about to be seen.
	constructor({ label, guess, render, needs, act, className = '' }) {
		Object.assign(this, { guess, render, needs, act });
		this.drawn = new Map();
		this.current = 0;
		this.heights = new Heights(0, guess);
		this.spacer = h('div', { class: 'spacer', role: 'list', 'aria-label': label });
		this.element = h('div', { class: `scroller ${className}` }, this.spacer);
		this.element.addEventListener('scroll', () => this.soon(), { passive: true });
		this.element.addEventListener('keydown', (event) => this.key(event));
		this.element.addEventListener('focusin', (event) => this.focused(event));
		this.sizes = new ResizeObserver((changes) => this.measured(changes));
		this.room = new ResizeObserver(() => this.soon());
		this.room.observe(this.element);
	}

	// Has so many rows from now on. `top` is the row that is to stand first, if any.
	reset(length, top = null) {
		const hadFocus = this.spacer.contains(document.activeElement);
		for (const row of this.drawn.values()) this.drop(row);
		this.drawn.clear();
		this.heights = new Heights(length, this.guess);
		this.current = Math.min(this.current, Math.max(0, length - 1));
		if (top !== null) this.current = Math.max(0, Math.min(top, length - 1));
		this.spacer.style.height = `${this.heights.total}px`;
		this.element.scrollTop = top === null ? 0 : this.heights.top(top);
		this.draw();
		if (hadFocus) this.drawn.get(this.current)?.focus({ preventScroll: true });
	}

	// Has more rows at its end.
	grow(length) {
		const heights = new Heights(length, this.guess);
		for (let row = 0; row < Math.min(length, this.heights.length); row++) heights.set(row, this.heights.heights[row]);
		this.heights = heights;
		this.draw();
	}

	// Draws rows anew that are in sight.
	refresh(which = () => true) {
		const hadFocus = this.spacer.contains(document.activeElement) ? this.current : null;
		for (const [index, row] of [...this.drawn]) {
			if (!which(index)) continue;
			this.drop(row);
			this.drawn.delete(index);
		}
		this.draw();
		if (hadFocus !== null) this.drawn.get(hadFocus)?.focus({ preventScroll: true });
	}

	drop(row) {
		this.sizes.unobserve(row);
		row.remove();
	}

	soon() {
		this.pending ??= requestAnimationFrame(() => {
			this.pending = null;
			this.draw();
		});
	}

	draw() {
		const { first, end } = inSight(this.heights, this.element.scrollTop, this.element.clientHeight || 800);
		this.needs?.(first, end);
		for (const [index, row] of [...this.drawn]) {
			const isNeeded = (index >= first && index < end) || index === this.current;
			if (isNeeded && index < this.heights.length) continue;
			this.drop(row);
			this.drawn.delete(index);
		}
		for (let index = first; index < end; index++) this.make(index);
		if (this.current < this.heights.length) this.make(this.current);
		this.arrange();
	}

	make(index) {
		if (this.drawn.has(index)) return;
		const row = this.render(index);
		row.classList.add('virtual');
		row.dataset.index = index;
		row.setAttribute('role', 'listitem');
		row.setAttribute('aria-posinset', index + 1);
		row.setAttribute('aria-setsize', this.heights.length);
		row.tabIndex = index === this.current ? 0 : -1;
		this.drawn.set(index, row);
		// In the order in which they are read, so that the tabulator goes down the list.
		const after = [...this.spacer.children].find((other) => Number(other.dataset.index) > index);
		this.spacer.insertBefore(row, after ?? null);
		this.sizes.observe(row);
	}

	measured(changes) {
		let above = 0;
		const top = this.element.scrollTop;
		for (const { target } of changes) {
			const index = Number(target.dataset.index);
			if (this.drawn.get(index) !== target) continue;
			const isAbove = this.heights.top(index) + this.heights.heights[index] <= top;
			const by = this.heights.set(index, target.offsetHeight);
			if (isAbove) above += by;
		}
		this.arrange();
		// What is looked at stays where it is.
		if (above !== 0 && !this.isHeld) this.element.scrollTop = top + above;
		if (this.isHeld) this.element.scrollTop = this.heights.top(this.isHeld.index) - this.isHeld.offset;
		this.soon();
	}

	arrange() {
		this.spacer.style.height = `${this.heights.total}px`;
		for (const [index, row] of this.drawn) row.style.top = `${this.heights.top(index)}px`;
	}

	// Brings a row into sight, at a third of the height, and keeps it there until rows around it are measured.
	show(index) {
		const offset = Math.round(this.element.clientHeight / 3);
		this.select(index);
		this.isHeld = { index, offset };
		this.element.scrollTop = this.heights.top(index) - offset;
		this.draw();
		clearTimeout(this.holding);
		this.holding = setTimeout(() => { this.isHeld = null; }, 300);
	}

	// Makes a row the one that keys speak of.
	select(index) {
		const before = this.drawn.get(this.current);
		if (before) before.tabIndex = -1;
		this.current = index;
		this.make(index);
		this.drawn.get(index).tabIndex = 0;
		this.arrange();
	}

	focused(event) {
		const row = event.target.closest('.virtual');
		if (row && Number(row.dataset.index) !== this.current) this.select(Number(row.dataset.index));
	}

	// Goes to a row, and gives it the focus.
	go(index) {
		if (this.heights.length === 0) return;
		const to = Math.max(0, Math.min(this.heights.length - 1, index));
		this.select(to);
		const row = this.drawn.get(to);
		row.focus({ preventScroll: true });
		const [top, bottom] = [this.heights.top(to), this.heights.top(to) + row.offsetHeight];
		const { scrollTop, clientHeight } = this.element;
		if (top < scrollTop) this.element.scrollTop = top;
		else if (bottom > scrollTop + clientHeight) this.element.scrollTop = Math.min(top, bottom - clientHeight);
		this.soon();
	}

	key(event) {
		if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
		if (event.target.matches('input, select, textarea')) return;
		const page = Math.max(1, inSight(this.heights, this.element.scrollTop, this.element.clientHeight, 0).end - this.heights.at(this.element.scrollTop) - 1);
		const to = {
			ArrowDown: this.current + 1, j: this.current + 1, ArrowUp: this.current - 1, k: this.current - 1,
			Home: 0, End: this.heights.length - 1, PageDown: this.current + page, PageUp: this.current - page,
		}[event.key];
		if (to !== undefined) {
			event.preventDefault();
			this.go(to);
		} else if (event.key === 'Enter' && event.target.classList.contains('virtual')) {
			event.preventDefault();
			this.act?.(this.current);
		}
	}

	end() {
		this.sizes.disconnect();
		this.room.disconnect();
		clearTimeout(this.holding);
		cancelAnimationFrame(this.pending);
	}
}
