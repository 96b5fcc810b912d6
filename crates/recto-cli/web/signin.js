// The door: a key, pasted once.
import { signIn } from './api.js';
import { fill, h } from './dom.js';

export function mount(root, done) {
	const field = h('input', { type: 'password', id: 'key', autocomplete: 'off', required: true, maxlength: 512, placeholder: 'recto_\u2026' });
	const told = h('p', { class: 'bad', role: 'alert' });
	const form = h('form', { class: 'door stack', 'aria-labelledby': 'door-title' },
		h('h1', { id: 'door-title' }, 'Who is looking?'),
		h('p', 'This server has keys. Paste one, and this browser may look at what belongs to it until the server ends, or you sign out.'),
		h('label', { for: 'key' }, 'Key'), field, told,
		h('button', { type: 'submit', class: 'primary' }, 'Sign in'),
		h('p', { class: 'meta' }, 'The key itself is not kept. ', h('code', 'recto keys add NAME'), ' makes one.'));
	form.addEventListener('submit', async (event) => {
		event.preventDefault();
		fill(told);
		try {
			await signIn(field.value.trim());
			field.value = '';
			done();
		} catch (problem) {
			fill(told, problem.status === 401 ? 'That key opens nothing here. It may have been revoked.' : problem.message);
			field.select();
		}
	});
	fill(root, form);
	field.focus();
	return { end() {} };
}
