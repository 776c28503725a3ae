export function ReplayPage(_: { gameId?: string }) { return <main class="page"></main>; }
