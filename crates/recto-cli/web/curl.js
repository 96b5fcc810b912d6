// A request as a command that somebody can run.

const PLACES = {
	openai_chat: ['https://api.openai.com/v1/chat/completions', ['authorization: Bearer $OPENAI_API_KEY']],
	openai_responses: ['https://api.openai.com/v1/responses', ['authorization: Bearer $OPENAI_API_KEY']],
	gemini: ['https://generativelanguage.googleapis.com/v1beta/models/MODEL:generateContent', ['x-goog-api-key: $GEMINI_API_KEY']],
	ollama: ['http://localhost:11434/api/chat', []],
	anthropic: ['https://api.anthropic.com/v1/messages', ['x-api-key: $ANTHROPIC_API_KEY', 'anthropic-version: 2023-06-01']],
};

// Quotes a text for a shell, so that it means itself.
export const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

// Returns the command that sends a body to the provider of a wire; one address names the model.
export function curl(wire, body, model) {
	const [place, headers] = PLACES[wire] ?? PLACES.openai_chat;
	const lines = [`curl ${place.replace('MODEL', encodeURIComponent(model))}`, ...headers.map((it) => `  -H "${it}"`), `  -H 'content-type: application/json'`, `  --data-raw ${quoted(body)}`];
	return lines.join(' \\\n');
}
