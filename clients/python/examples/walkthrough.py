"""Walks through what a front end does: lobby, drafts, absence, clocks, rematch, record, puzzle, tickets, programs.

Ann and Bob play, on a running service or a temporary one as in demo.py. It takes half a minute, because turns time out.
"""

import asyncio
import sys
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from demo import DISCARDS, arguments, hand_text, service_at, take_turn, temporary_service
from google.protobuf.duration_pb2 import Duration
from join_ticket import join_ticket

from rummikub import (
    ABSENT_ACTION_BOT_EASY,
    BOT_LEVEL_MEDIUM,
    COACH_STAGE_COUNT,
    COACH_STAGE_MELDS,
    COACH_STAGE_STEP,
    DRAFT_VISIBILITY_EVERYONE,
    HINTS_TURN,
    MATCH_END_FIXED_ROUNDS,
    OPEN_SEAT_ANYONE,
    PRESET_SABRA,
    RECORD_FORM_TEXT,
    TABLE_LAYOUT_GRID,
    TURN_STEP_OPEN,
    VISIBILITY_UNLISTED,
    AbortGameRequest,
    AddBotRequest,
    BotLevel,
    ChallengePlayerRequest,
    CheckPuzzleRequest,
    CoachedTurn,
    CoachTurnRequest,
    CreateGameRequest,
    CreateRematchRequest,
    DealOptions,
    DiscardDealOptions,
    DiscardGameEndOptions,
    DiscardRuleset,
    ExportGameRequest,
    ExportOwnGamesRequest,
    ForgetSeatRequest,
    Game,
    GameEndOptions,
    GameEvent,
    GameState,
    GameSummary,
    GetGameRequest,
    GetPuzzleRequest,
    ImportRecordRequest,
    InitialMeldOptions,
    JoinGameRequest,
    JoinOrCreateGameRequest,
    KickPlayerRequest,
    ListOwnGamesRequest,
    Meld,
    MeldingRuleset,
    OwnSeat,
    Placement,
    PlayTurnRequest,
    Preset,
    ResignGameRequest,
    ReturnToSeatRequest,
    ReviewGameRequest,
    RoomSettings,
    RoundResult,
    Ruleset,
    Rummikub,
    SaveDraftRequest,
    SeatReservation,
    SetReadyRequest,
    StartGameRequest,
    StartPosition,
    StartSeat,
    SuggestTurnRequest,
    Table,
    WatchGameResponse,
    WatchOwnGamesRequest,
    aio,
    discard,
    draw,
    explain,
    melds,
    table_text,
    take_from_pool,
    tile_name,
    tiles,
    tiles_text,
)
from rummikub.bot import Bot, Legal

ANN, BOB = 1, 2
"""Their seats in the first game and its rematch."""
ROUNDS = 2
SETTINGS = RoomSettings(
    turn_time_limit=Duration(seconds=6),
    absent_after_timeouts=2,
    absent_action=ABSENT_ACTION_BOT_EASY,
    round_pause=Duration(seconds=1),
    draft_visibility=DRAFT_VISIBILITY_EVERYONE,
    hints=HINTS_TURN,
)
CHESS_CLOCK = RoomSettings(turn_time_limit=Duration(), clock_total=Duration(seconds=2))


class Watcher:
    """Watches a game from its present state on until its rematch is announced."""

    def __init__(self, client: Rummikub, game_id: str) -> None:
        self._watch = client.watch(game_id, until_rematch=True)
        self.update("snapshot")
        self._events = self._all_events()

    def event(self, name: str) -> GameEvent:
        """Waits for the next event of a kind, such as `round_ended`."""
        return next(event for event in self._events if event.WhichOneof("event") == name)

    def round_started(self) -> None:
        """Waits for the next deal."""
        dealt = {"round_started", "hands_dealt"}
        next(event for event in self._events if event.WhichOneof("event") in dealt)

    def update(self, name: str) -> WatchGameResponse:
        """Waits for the next update of a kind, such as `draft`."""
        return next(update for update in self._watch if update.WhichOneof("update") == name)

    def close(self) -> None:
        """Ends the watch."""
        self._watch.close()

    def _all_events(self) -> Iterator[GameEvent]:
        while True:
            yield from self.update("change").change.events


def rules_of(preset: Preset.ValueType, rounds: int) -> Ruleset:
    """Returns the rules of a preset for two players and a number of rounds."""
    if preset in DISCARDS:
        for_two, ends = DiscardDealOptions(players_min=2, players_max=2), DiscardGameEndOptions(match_rounds=rounds)
        return Ruleset(discard=DiscardRuleset(preset=preset, deal=for_two, game_end=ends))
    last = GameEndOptions(match_end=MATCH_END_FIXED_ROUNDS, match_rounds=rounds)
    deal = DealOptions(players_min=2, players_max=2)
    return Ruleset(melding=MeldingRuleset(preset=preset, deal=deal, game_end=last))


def say(text: str) -> None:
    """Prints a line at once."""
    print(text, flush=True)


def open_lobby(service: Rummikub, preset: Preset.ValueType) -> tuple[str, Rummikub, Rummikub]:
    """Ann creates an unlisted game and kicks a stranger; Bob joins by the code.

    Returns the game's id and the clients of Ann and Bob.
    """
    rules = rules_of(preset, ROUNDS)
    created = service.games.CreateGame(
        CreateGameRequest(ruleset=rules, settings=SETTINGS, visibility=VISIBILITY_UNLISTED)
    )
    game_id, code = created.game.game_id, created.game.join_code
    say(f"Ann creates an unlisted game; its code is {code}")
    host = service.seated(created.host_token)
    joined = host.games.JoinGame(JoinGameRequest(game_id=game_id, name="Ann", seat=ANN))
    ann = service.seated(joined.seat_token)
    stranger = service.games.JoinGame(JoinGameRequest(join_code=code, name="Mallory", seat=BOB))
    code = ann.games.KickPlayer(KickPlayerRequest(game_id=game_id, seat=stranger.seat)).game.join_code
    say(f"Mallory joins, and Ann kicks Mallory; the new code is {code}")
    joined = service.games.JoinGame(JoinGameRequest(join_code=code, name="Bob", seat=BOB))
    bob = service.seated(joined.seat_token)
    game = bob.games.SetReady(SetReadyRequest(game_id=game_id, is_ready=True)).game
    ready = [player.name for player in game.players if player.is_ready]
    say(f"Bob joins by the code and chooses seat {joined.seat}; ready: {', '.join(ready)}")
    return game_id, ann, bob


def read(client: Rummikub, game_id: str) -> Game:
    """Returns the game as a client sees it."""
    return client.games.GetGame(GetGameRequest(game_id=game_id)).game


def finish_turn(client: Rummikub, game_id: str) -> None:
    """Takes the turn without playing tiles: draws one, or takes and discards one."""
    game = read(client, game_id)
    if not game.HasField("discard_board"):
        client.turns.PlayTurn(draw(game))
        return
    if game.turn.step == TURN_STEP_OPEN:
        game = client.turns.PlayTurn(take_from_pool(game)).game
    client.turns.PlayTurn(discard(game, game.rack[0]))


def show_board(game_id: str, ann: Rummikub) -> None:
    """Ann looks at what lies face up, and asks what she lacks to finish or to open."""
    game = read(ann, game_id)
    board = game.discard_board
    newest = " ".join(f"{pile.seat}:{tile_name(pile.newest)}" for pile in board.piles if pile.newest) or "none"
    shown = {"indicator": board.indicator, "okey": board.okey, "trump": board.trump}
    face_up = ", the ".join(f"{name} is {tile_name(tile)}" for name, tile in shown.items() if tile)
    say(f"The {face_up}; discards: {newest}" if face_up else f"Discards: {newest}")
    lacks = ann.analysis.SuggestTurn(SuggestTurnRequest(game_id=game_id))
    if lacks.HasField("hand"):
        say(f"Ann has {hand_text(game.rack, lacks.hand)}")
    else:
        say(f"Ann has {tiles_text(game.rack)}; {lacks.opening.points_missing} points are missing to open")
    finish_turn(ann, game_id)


def show_draft(game_id: str, ann: Rummikub, bob_watches: Watcher) -> None:
    """Ann lays a tile in her turn without playing it; Bob sees it move. Then she draws instead."""
    game = read(ann, game_id)
    save = SaveDraftRequest(game_id=game_id, etag=game.etag)
    if game.ruleset.melding.melds.table_layout == TABLE_LAYOUT_GRID:
        save.draft.table.placements.append(Placement(tile=game.rack[0], x=0, y=0))
    else:
        save.draft.table.melds.append(Meld(tiles=game.rack[:1]))
    ann.turns.SaveDraft(save)
    draft = bob_watches.update("draft").draft
    say(f"Bob sees Ann try {table_text(draft.table)}; legal as it lies: {draft.is_legal}")
    finish_turn(ann, game_id)


def be_absent(game_id: str, ann: Rummikub, bob: Rummikub, watch: Watcher) -> None:
    """Bob misses two turns; a bot plays his seat until he returns."""
    timed_out = watch.event("turn_timed_out").turn_timed_out
    say(f"Bob touches nothing until his time is up, and draws {timed_out.tile_count} tile")
    finish_turn(ann, game_id)
    absent = watch.event("player_absent").player_absent
    say(f"Bob misses another turn and is absent; {BotLevel.Name(absent.bot_level)} plays for him")
    bob.turns.ReturnToSeat(ReturnToSeatRequest(game_id=game_id))
    watch.event("player_returned")
    say("Bob returns to his seat")


def play_round(game_id: str, clients: dict[int, Rummikub], watch: Watcher) -> RoundResult:
    """Plays suggested turns to the end of the round."""
    round_ = read(clients[ANN], game_id).round
    while (game := read(clients[ANN], game_id)).HasField("turn") and game.round == round_:
        take_turn(clients[game.turn.seat], game_id)
    result = watch.event("round_ended").round_ended.result
    for seat in result.seats:
        say(f"  seat {seat.seat}: {seat.points:+} points, rack {tiles_text(seat.rack) or 'empty'}")
    return result


def play_first_game(service: Rummikub, preset: Preset.ValueType) -> tuple[str, Rummikub, Rummikub]:
    """Plays a round and aborts the game in the next. Returns the id of the rematch and the clients of Ann and Bob."""
    game_id, ann, bob = open_lobby(service, preset)
    ann_watches, bob_watches = Watcher(ann, game_id), Watcher(bob, game_id)
    while ann_watches.update("presence").presence.seat != BOB:
        pass
    say("Ann sees that Bob is connected, and starts the game")
    game = ann.games.StartGame(StartGameRequest(game_id=game_id)).game
    if game.turn.seat == BOB:
        finish_turn(bob, game_id)
    if game.HasField("discard_board"):
        show_board(game_id, ann)
    else:
        show_draft(game_id, ann, bob_watches)
    be_absent(game_id, ann, bob, ann_watches)
    say("They play the round to its end")
    play_round(game_id, {ANN: ann, BOB: bob}, ann_watches)
    ann_watches.round_started()
    say(f"After a pause round {read(ann, game_id).round} starts by itself")
    for client in (ann, bob):  # before the first round ends the host's request is enough
        client.games.AbortGame(AbortGameRequest(game_id=game_id))
    bob_watches.event("game_aborted")
    ann.games.CreateRematch(CreateRematchRequest(game_id=game_id))
    rematch_id = bob_watches.event("rematch_created").rematch_created.game_id
    say("Both abort the game. Ann creates a rematch, in which a seat is reserved for each")
    return rematch_id, ann, bob


def take_reserved(old: Rummikub, rematch_id: str, name: str) -> Rummikub:
    """Takes the reserved seat with the token of the old game. Returns a client with the fresh token."""
    joined = old.games.JoinGame(JoinGameRequest(game_id=rematch_id, name=name))
    say(f"{name} takes the reserved seat {joined.seat}")
    return old.seated(joined.seat_token)


def play_rematch(game_id: str, old_ann: Rummikub, old_bob: Rummikub) -> None:
    """Plays a whole game, which starts by itself; exports, checks and reviews its record."""
    ann = take_reserved(old_ann, game_id, "Ann")
    watch = Watcher(ann, game_id)
    bob = take_reserved(old_bob, game_id, "Bob")
    watch.round_started()
    say("The rematch starts by itself, because all have come")
    for number in range(1, ROUNDS + 1):
        say(f"Round {number} of the rematch")
        play_round(game_id, {ANN: ann, BOB: bob}, watch)
        if number < ROUNDS:
            watch.round_started()
    watch.event("game_ended")
    watch.close()
    record = bob.records.ExportGame(ExportGameRequest(game_id=game_id, form=RECORD_FORM_TEXT)).text
    checked = bob.records.ImportRecord(ImportRecordRequest(text=record))
    verdict = "is by the rules" if checked.is_complete and not checked.HasField("fault") else "breaks a rule"
    say(f"Its record of {checked.moves_played} moves {verdict}; it ends with\n  {record.splitlines()[-1]}")
    if read(bob, game_id).HasField("discard_board"):
        return  # reviews compare plays on a table
    review = bob.records.ReviewGame(ReviewGameRequest(game_id=game_id))
    for seat in review.seats:
        say(f"  seat {seat.seat} played {seat.played} tiles; the best turns had {seat.missed} more")


def run_out_of_time(service: Rummikub, preset: Preset.ValueType) -> None:
    """Ann and Cem are matched by the rules that they want; the time of who is to move runs out."""
    rules = rules_of(preset, 1)
    wanted = JoinOrCreateGameRequest(ruleset=rules, settings=CHESS_CLOCK, name="Ann")
    first = service.games.JoinOrCreateGame(wanted)
    watch = Watcher(service.seated(first.seat_token), first.game.game_id)
    wanted = JoinOrCreateGameRequest(ruleset=rules, settings=CHESS_CLOCK, name="Cem")
    second = service.games.JoinOrCreateGame(wanted)
    tables = {first.game.game_id, second.game.game_id}
    say(f"Ann and Cem ask for a game with a chess clock and are seated at {len(tables)} table")
    watch.round_started()
    say("The table is full, so the game starts by itself")
    resigned = watch.event("player_resigned").player_resigned
    ended = watch.event("game_ended").game_ended
    say(f"The time of seat {resigned.seat} is used up; seat {ended.winner_seats[0]} wins")


def take_over(service: Rummikub) -> None:
    """Bob and Cem resign. A bot of the host plays on for Bob, and Dora, who comes by, for Cem."""
    settings = RoomSettings(open_seat=OPEN_SEAT_ANYONE)
    created = service.games.CreateGame(CreateGameRequest(settings=settings))
    host, game_id = service.seated(created.host_token), created.game.game_id
    names = ("Ann", "Bob", "Cem")
    seats = [service.games.JoinGame(JoinGameRequest(game_id=game_id, name=name)) for name in names]
    _, bob, cem = (service.seated(seat.seat_token) for seat in seats)
    host.games.StartGame(StartGameRequest(game_id=game_id))
    bob.turns.ResignGame(ResignGameRequest(game_id=game_id))
    host.games.AddBot(AddBotRequest(game_id=game_id, level=BOT_LEVEL_MEDIUM, seat=BOB))
    cem.turns.ResignGame(ResignGameRequest(game_id=game_id))
    dora = service.games.JoinGame(JoinGameRequest(game_id=game_id, name="Dora", seat=seats[2].seat))
    players = ", ".join(player.name for player in dora.game.players)
    say(f"Bob and Cem have resigned; a bot and Dora play on with their tiles: {players}")
    try:
        read(bob, game_id)
    except grpc.RpcError as error:
        say(f"Bob sees the seat no more: {explain(error)}")


def invite(service: Rummikub) -> None:
    """Ann reserves a seat for Bob, by the front end's reference to him. He takes it, and finds the game again."""
    seat = SeatReservation(seat=BOB, player_ref="account of Bob", name="Bob")
    game_id = service.games.CreateGame(CreateGameRequest(reserved_seats=[seat])).game.game_id
    try:
        service.games.JoinGame(JoinGameRequest(game_id=game_id, name="Mallory", seat=BOB))
    except grpc.RpcError as error:
        say(f"Mallory cannot take the seat that Ann reserved for Bob: {explain(error)}")
    joined = service.games.JoinGame(JoinGameRequest(game_id=game_id, name="Bob", player_ref="account of Bob"))
    own = OwnSeat(game_id=game_id, seat_token=joined.seat_token)
    listed = service.games.ListOwnGames(ListOwnGamesRequest(seats=[own])).games
    say(f"Bob takes it, and finds the game among his own: seat {listed[0].seat} of {listed[0].game.players_max}")


def learn(service: Rummikub) -> None:
    """A coach puts Ann at a position, and gives her ever larger hints until she plays the turn."""
    for_two = MeldingRuleset(preset=PRESET_SABRA, deal=DealOptions(players_min=2, players_max=2))
    position = StartPosition(
        table=Table(melds=melds("[R4 R5 R6] | [B9 K9 O9]")),
        seats=[
            StartSeat(seat=ANN, rack=tiles("R3 R7 O13"), has_melded=True),
            StartSeat(seat=BOB, rack=tiles("K1 K5 B12"), has_melded=True),
        ],
        turn_seat=ANN,
    )
    created = service.games.CreateGame(
        CreateGameRequest(ruleset=Ruleset(melding=for_two), settings=RoomSettings(hints=HINTS_TURN), position=position)
    )
    game_id = created.game.game_id
    joined = [service.games.JoinGame(JoinGameRequest(game_id=game_id, name=name)) for name in ("Ann", "Coach")]
    ann = service.seated(joined[0].seat_token)
    service.seated(created.host_token).games.StartGame(StartGameRequest(game_id=game_id))
    say(f"A lesson begins with {table_text(position.table)}; Ann has {tiles_text(position.seats[0].rack)}")
    for stage in (COACH_STAGE_COUNT, COACH_STAGE_MELDS, COACH_STAGE_STEP):
        hint = ann.analysis.CoachTurn(CoachTurnRequest(game_id=game_id, stage=stage))
        say(f"  The coach: {hint.advice[-1].text}")
    turn = CoachedTurn(table=Table(melds=melds("[R4 R5 R6 R7] | [B9 K9 O9]")))
    judged = ann.analysis.CoachTurn(CoachTurnRequest(game_id=game_id, turn=turn))
    say(f"Ann tries one tile. The coach: {judged.advice[0].text}")
    take_turn(ann, game_id)


def prove(key: str = "web") -> None:
    """Dora plays with a join ticket of her front end: it proves who she is, and she gets a copy of her data."""
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = urlsafe_b64encode(private.public_key().public_bytes_raw()).decode().rstrip("=")
    with tempfile.TemporaryDirectory(prefix="rummikub-keys-") as folder:
        keys = Path(folder) / "keys.toml"
        keys.write_text(
            f'[keys.{key}]\nsha256 = ["{sha256(key.encode()).hexdigest()}"]\n'
            f'ticket_keys = ["EdDSA:{public}"]\nrequire_tickets = true\nposition_searches = true\n'
        )
        with temporary_service(RUMMIKUB_KEYS_FILE=str(keys)) as address, Rummikub(address, api_key=key) as web:
            own_games(web, join_ticket(pem, key, "account of Dora", "Dora"))
            asyncio.run(duel(address, key, lambda name: join_ticket(pem, key, f"program {name}", name)))


def own_games(web: Rummikub, ticket: str) -> None:
    """Dora joins by a ticket, finds and exports her games by it, and has her name removed."""
    created = web.games.CreateGame(CreateGameRequest())
    game_id = created.game.game_id
    try:
        web.games.JoinGame(JoinGameRequest(game_id=game_id, name="Dora", player_ref="account of Dora"))
    except grpc.RpcError as error:
        say(f"Mallory claims to be Dora: {explain(error)}")
    joined = web.games.JoinGame(JoinGameRequest(game_id=game_id, join_ticket=ticket))
    dora = web.seated(joined.seat_token)
    inbox = web.games.WatchOwnGames(WatchOwnGamesRequest(join_ticket=ticket))
    say(f"Dora joins by a ticket; the stream of her games begins with seat {next(inbox).game.seat}")
    web.seated(created.host_token).games.AbortGame(AbortGameRequest(game_id=game_id))
    over = next(update.game for update in inbox if update.HasField("game"))
    say(f"Her stream has the end of the game: {GameState.Name(over.game.state)}")
    inbox.cancel()
    data = web.games.ExportOwnGames(ExportOwnGamesRequest(join_ticket=ticket)).game
    say(f"All that is stored of {data.player_ref}: seat {data.seat} and {len(data.changes)} changes of one game")
    name = dora.games.ForgetSeat(ForgetSeatRequest(game_id=game_id)).name
    say(f"Dora has her name removed, and is {name} there")


class Duelist(Bot):
    """Plays what the service suggests, and ends after its first game."""

    def __init__(self, client: aio.Rummikub, ticket: Callable[[str], str], name: str) -> None:
        super().__init__(client, lambda: ticket(name))
        self._own_name = name

    async def choose(self, view: Game, legal: Legal) -> PlayTurnRequest:  # noqa: ARG002 - the service looks at the game
        """Returns the next turn."""
        return await legal.suggest()

    async def over(self, game_id: str, game: GameSummary, *, won: bool) -> None:  # noqa: ARG002 - of a single game
        """Ends the program after its game."""
        say(f"The program {self._own_name} has {'won' if won else 'lost'} the game of the challenge")
        self.stop()


async def duel(address: str, key: str, ticket: Callable[[str], str]) -> None:
    """Two programs with tickets of one key play: one challenges the other, which accepts."""
    hand, initial = DealOptions(hand_size=7), InitialMeldOptions(threshold=0)
    short = Ruleset(melding=MeldingRuleset(preset=PRESET_SABRA, deal=hand, initial_meld=initial))
    async with aio.Rummikub(address, api_key=key) as client, asyncio.TaskGroup() as group:
        for name in ("Deep", "Blue"):
            group.create_task(Duelist(client, ticket, name).run())
        challenge = ChallengePlayerRequest(join_ticket=ticket("Deep"), player_ref="program Blue", ruleset=short)
        await client.challenges.ChallengePlayer(challenge)
        say("The program Deep challenges the program Blue")


def solve_puzzle(service: Rummikub) -> None:
    """Ann gets the puzzle of the day, lays nothing at first, and then looks at the solution."""
    puzzle = service.puzzles.GetPuzzle(GetPuzzleRequest()).puzzle
    say(f"the puzzle of the day is {puzzle.number} of {puzzle.count}: lay {puzzle.tiles_to_play} tiles")
    answer = CheckPuzzleRequest(preset=puzzle.preset, number=puzzle.number, table_after=puzzle.position.table)
    say(f"nothing laid: {service.puzzles.CheckPuzzle(answer).violations[0].text}")
    request = GetPuzzleRequest(preset=puzzle.preset, number=puzzle.number, reveal_solution=True)
    answer.table_after.CopyFrom(service.puzzles.GetPuzzle(request).solution.table_after)
    say(f"the solution is right: {service.puzzles.CheckPuzzle(answer).is_solved}")


def main() -> None:
    """Walks through everything."""
    target, preset = arguments(__doc__)
    try:
        with service_at(target) as address, Rummikub(address) as service:
            play_rematch(*play_first_game(service, preset))
            run_out_of_time(service, preset)
            take_over(service)
            invite(service)
            solve_puzzle(service)
            learn(service)
        prove()
    except grpc.RpcError as error:
        sys.exit(f"walkthrough: {explain(error)}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
