// Runs before anything is painted, so that a chosen theme does not flash.
(() => {
	try {
		const chosen = localStorage.getItem('recto.theme');
		if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
	} catch { /* Where nothing may be kept, it is as the system has it. */ }
})();
