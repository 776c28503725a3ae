package rummikub.conformance

import com.google.protobuf.Message
import io.grpc.Status
import io.grpc.StatusException
import java.text.Normalizer
import java.util.concurrent.TimeUnit
import kotlin.system.exitProcess
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.asFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.produceIn
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import rummikub.client.Tiles
import rummikub.client.Turns
import rummikub.client.WatchOptions
import rummikub.client.kotlin.Rummikub
import rummikub.client.kotlin.refusal
import rummikub.v1.AddBotRequest
import rummikub.v1.BatchSuggestTurnsRequest
import rummikub.v1.BotLevel
import rummikub.v1.CreateGameRequest
import rummikub.v1.ErrorReason
import rummikub.v1.Game
import rummikub.v1.GameState
import rummikub.v1.GetGameRequest
import rummikub.v1.JoinGameRequest
import rummikub.v1.Meld
import rummikub.v1.Position
import rummikub.v1.ScoreRoundRequest
import rummikub.v1.ScoreRoundResponse
import rummikub.v1.StartGameRequest
import rummikub.v1.StreamValidateTurnsRequest
import rummikub.v1.SuggestTurnRequest
import rummikub.v1.ValidateDiscardTurnRequest
import rummikub.v1.ValidateDiscardTurnResponse
import rummikub.v1.ValidateHandRequest
import rummikub.v1.ValidateHandResponse
import rummikub.v1.ValidateMeldsRequest
import rummikub.v1.ValidateMeldsResponse
import rummikub.v1.ValidatePlacementRequest
import rummikub.v1.ValidatePlacementResponse
import rummikub.v1.ValidateTurnRequest
import rummikub.v1.ValidateTurnResponse
import rummikub.v1.WatchContent
import rummikub.v1.WatchGameRequest

/** Checks the Kotlin client against a live server (clients/conformance/README.md). */
class KotlinConformance(arguments: Array<String>) : Suite(arguments) {
    private val lobby = Rummikub(target)
    private val rules = Rummikub(validation)

    override fun checks(): Map<String, Check> = mapOf(
        "wire" to ::wire,
        "batch" to ::batch,
        "stream" to ::stream,
        "refusal" to ::refusal,
        "game" to ::game,
        "turns" to ::suggestedTurns,
        "rules" to ::rules,
        "names" to ::names,
        "unknown" to ::unknown,
        "deadline" to ::deadline,
        "retry" to ::retry,
        "watches" to ::watches,
    ).mapValues { (_, check) -> Check { runBlocking { check() } } }

    private suspend fun wire() {
        for (row in rows) {
            when (row.rpc) {
                "rummikub.v1.ValidationService/ValidateMelds" ->
                    replay(row, ValidateMeldsRequest.getDefaultInstance(), ValidateMeldsResponse.getDefaultInstance()) {
                        rules.validation.validateMelds(it)
                    }
                "rummikub.v1.ValidationService/ValidateTurn" ->
                    replay(row, ValidateTurnRequest.getDefaultInstance(), ValidateTurnResponse.getDefaultInstance()) {
                        rules.validation.validateTurn(it)
                    }
                "rummikub.v1.ValidationService/ValidatePlacement" ->
                    replay(
                        row,
                        ValidatePlacementRequest.getDefaultInstance(),
                        ValidatePlacementResponse.getDefaultInstance(),
                    ) { rules.validation.validatePlacement(it) }
                "rummikub.v1.ValidationService/ValidateHand" ->
                    replay(row, ValidateHandRequest.getDefaultInstance(), ValidateHandResponse.getDefaultInstance()) {
                        rules.validation.validateHand(it)
                    }
                "rummikub.v1.ValidationService/ValidateDiscardTurn" ->
                    replay(
                        row,
                        ValidateDiscardTurnRequest.getDefaultInstance(),
                        ValidateDiscardTurnResponse.getDefaultInstance(),
                    ) { rules.validation.validateDiscardTurn(it) }
                "rummikub.v1.ValidationService/ScoreRound" ->
                    replay(row, ScoreRoundRequest.getDefaultInstance(), ScoreRoundResponse.getDefaultInstance()) {
                        rules.validation.scoreRound(it)
                    }
                else -> expect(false, "${row.id}: add the RPC ${row.rpc} to this program")
            }
        }
    }

    private suspend fun <Q : Message> replay(row: Row, request: Q, response: Message, rpc: suspend (Q) -> Message) {
        @Suppress("UNCHECKED_CAST")
        val sent = parsed(row.request, request) as Q
        val answer = try {
            rpc(sent)
        } catch (error: StatusException) {
            return expectAnswer(row, response, null, error)
        }
        expectAnswer(row, response, answer, null)
    }

    private suspend fun batch() {
        for (batch in batches()) {
            expectAnswers(rules.validation.batchValidateTurns(batch.request).turnsList, batch.turns)
        }
    }

    private suspend fun stream() {
        val turns = turns()
        val sent = turns.asFlow().map {
            StreamValidateTurnsRequest.newBuilder().setTurn(it.request).setCorrelationId(it.id).build()
        }
        val answers = rules.validation.streamValidateTurns(sent).toList()
        expectEqual("ids", answers.map { it.correlationId }, turns.map { it.id })
        expectAnswers(answers.map { it.turn }, turns)
    }

    /** Creates a game and seats players, the first of whom is the host. */
    private suspend fun join(lobby: Rummikub, names: List<String>): Pair<Game, List<Rummikub>> {
        val created = lobby.games.createGame(CreateGameRequest.getDefaultInstance())
        var game = created.game
        val seats = mutableListOf<Rummikub>()
        for (name in names) {
            val caller = if (seats.isEmpty()) lobby.seated(created.hostToken) else lobby
            val request = JoinGameRequest.newBuilder().setGameId(game.gameId).setName(name).build()
            val joined = caller.games.joinGame(request)
            game = joined.game
            seats += lobby.seated(joined.seatToken)
        }
        return game to seats
    }

    private suspend fun read(client: Rummikub, id: String): Game =
        client.games.getGame(GetGameRequest.newBuilder().setGameId(id).build()).game

    private suspend fun refusal() {
        val (table, seats) = join(lobby, listOf("Ann", "Bob"))
        val id = table.gameId
        val started = seats[0].games.startGame(StartGameRequest.newBuilder().setGameId(id).build()).game
        val player = seats[started.turn.seat - 1]
        val game = read(player, id)
        val tiles = game.rackList.take(2)
        val pair = Meld.newBuilder().addAllTiles(tiles).build()
        val error = refused { player.turns.playTurn(Turns.play(game, listOf(pair))) }
        expectEqual("a meld of two tiles", error.status.code, Status.Code.FAILED_PRECONDITION)
        expectEqual("a meld of two tiles", error.refusal.reason, ErrorReason.MELD_TOO_SHORT)
        expectEqual("metadata", error.refusal.metadataMap["violations"].toString(), "${error.refusal.violationsCount}")
        val first = error.refusal.getViolations(0)
        expectEqual("the violation", first.reason, ErrorReason.MELD_TOO_SHORT)
        expectEqual("the violation's tiles", first.tilesList, tiles)
        expectEqual("the violation's subject", first.subject, "play.table[0]")

        val low = Tiles.melds("[R1 R2 R3]")
        val turn = ValidateTurnRequest.newBuilder().setTableAfter(rummikub.v1.Table.newBuilder().addAllMelds(low)).addAllRack(low[0].tilesList)
        val judged = rules.validation.validateTurn(turn.setHasMelded(false).build()).violationsList.single()
        expectEqual("an initial meld of 6", judged.reason, ErrorReason.INITIAL_MELD_BELOW_THRESHOLD)
        expectEqual("its metadata", judged.metadataMap, mapOf("total" to 6, "threshold" to 30))

        expectWatchesEnd(id)
        expectExplained(lobby.seated("A".repeat(43)), id, "TOKEN_VOID: ", "use the token that replaced it, or join again")
        expectExplained(lobby.seated("a b"), id, "AUTHORIZATION_MALFORMED: ", "pass seated() the token")
        expectExplained(lobby, "0".repeat(32), "GAME_NOT_FOUND: ", "check the game's id")
        Rummikub("127.0.0.1:1").use {
            expectExplained(it, id, "no service answers at 127.0.0.1:1; start one with `make run`")
        }
    }

    /** A watch ends with a refusal, and does not take an error of its collector for one of its own. */
    private suspend fun expectWatchesEnd(known: String) {
        val unknown = WatchGameRequest.newBuilder().setGameId("0".repeat(32)).build()
        val error = refused { lobby.watch(unknown).first() }
        expectEqual("a watch of an unknown game", error.refusal.reason, ErrorReason.GAME_NOT_FOUND)
        val watching = WatchGameRequest.newBuilder().setGameId(known).build()
        val thrown = Status.UNAVAILABLE.asException()
        expect(refused { lobby.watch(watching).collect { throw thrown } } === thrown, "a collector's error is lost")
    }

    private suspend fun expectExplained(client: Rummikub, id: String, vararg texts: String) {
        val request = GetGameRequest.newBuilder().setGameId(id).build()
        val error = refused { client.games.withDeadlineAfter(1, TimeUnit.SECONDS).getGame(request) }
        for (text in texts) {
            expect(error.message.orEmpty().contains(text), "the error ${error.message} does not contain $text")
        }
    }

    private suspend fun refused(call: suspend () -> Any): StatusException {
        try {
            call()
        } catch (error: StatusException) {
            return error
        }
        throw AssertionError("a call is answered, not refused")
    }

    /** Plays rounds until one is long enough to be cut twice. */
    private suspend fun game() {
        repeat(3) {
            if (wasCutTwice()) return
        }
        expect(false, "three rounds had fewer than ${CUTS[1]} changes")
    }

    private suspend fun wasCutTwice(): Boolean {
        val created = lobby.games.createGame(CreateGameRequest.getDefaultInstance())
        val id = created.game.gameId
        val joining = JoinGameRequest.newBuilder().setGameId(id).setName("Ann").build()
        val token = lobby.seated(created.hostToken).games.joinGame(joining).seatToken
        val ann = lobby.seated(token)
        for (level in listOf(BotLevel.BOT_LEVEL_EASY, BotLevel.BOT_LEVEL_MEDIUM, BotLevel.BOT_LEVEL_HARD)) {
            ann.games.addBot(AddBotRequest.newBuilder().setGameId(id).setLevel(level).build())
        }
        ann.games.startGame(StartGameRequest.newBuilder().setGameId(id).build())

        val link = Link()
        val watcher = Rummikub(connect(target, link))
        val watching = WatchGameRequest.newBuilder().setGameId(id).setContent(WatchContent.WATCH_CONTENT_BOTH).build()
        var view = Game.getDefaultInstance()
        var revision = 0
        var played = 0
        var changes = 0
        var reconnected = 0
        val options = WatchOptions.DEFAULT.withOnReconnect { _, _ -> reconnected++ }
        watcher.seated(token).watch(watching, options).collect { update ->
            if (update.hasSnapshot()) {
                expectEqual("the revision before a snapshot", revision, 0)
                view = update.snapshot // the person may have the first turn
                revision = view.revision
            } else if (update.hasChange()) {
                expectEqual("the next revision", update.change.revision, revision + 1)
                revision = update.change.revision
                if (++changes in CUTS) link.cut()
            }
            if (update.hasGame()) view = update.game
            if (view.hasTurn() && view.turn.seat == view.seat && view.revision != played) {
                played = view.revision
                val found = ann.analysis.suggestTurn(SuggestTurnRequest.newBuilder().setGameId(id).build())
                ann.turns.playTurn(found.turn)
            }
        }
        watcher.close()
        val last = read(ann, id)
        expectEqual("the state at the end", last.state, GameState.GAME_STATE_FINISHED)
        expectEqual("the last revision", revision, last.revision)
        expectEqual("the last view", still(view), still(last))
        if (changes <= CUTS[1]) return false
        expectEqual("reconnections", reconnected, CUTS.size)
        return true
    }

    /** Plays the games to their ends, all at the same time, as the first game of the README does. */
    private suspend fun suggestedTurns() = coroutineScope {
        for ((id, token) in games.map { it.split(":") }) {
            launch { example.play(lobby.seated(token), id) }
        }
    }

    /** Watches a game that two players join, and compares what never changes. */
    private suspend fun rules() {
        val created = lobby.games.createGame(LABELLED).game
        val names = ArrayDeque(listOf("Ann", "Bob"))
        lobby.watchGames(created.gameId).first { game ->
            expectSameRules(game, created)
            val name = names.removeFirstOrNull() ?: return@first true
            lobby.games.joinGame(JoinGameRequest.newBuilder().setGameId(created.gameId).setName(name).build())
            false
        }
    }

    private suspend fun names() {
        val game = join(lobby, NAMES).first
        for ((player, name) in game.playersList.zip(NAMES)) {
            expectEqual("a name", player.name, Normalizer.normalize(name, Normalizer.Form.NFC))
        }
    }

    private suspend fun unknown() = expectTolerance(join(lobby, listOf("Ann")).first)

    private suspend fun deadline() {
        val rack = Tiles.tiles("R1 R3 R4 B5 B6 B7 K7 K8 K10 O7 O10 O11 O13 J")
        val position = Position.newBuilder().addAllRack(rack).setHasMelded(false).build()
        val batch = // a faster call may be answered
            BatchSuggestTurnsRequest.newBuilder().addAllPositions(List(100) { position }).build()
        val error = refused { lobby.analysis.withDeadlineAfter(1, TimeUnit.MILLISECONDS).batchSuggestTurns(batch) }
        expectEqual("a call of 1 ms", error.status.code, Status.Code.DEADLINE_EXCEEDED)

        val deadlines = Deadlines()
        Rummikub(connect(target, Link(), deadlines)).use { client ->
            val id = join(client, listOf("Ann")).first.gameId
            client.watch(WatchGameRequest.newBuilder().setGameId(id).build()).first()
        }
        deadlines.expect()
    }

    private suspend fun retry() {
        val twice = Twice()
        Rummikub(connect(target, Link(), twice)).use { client ->
            expectAppliedOnce(twice, join(client, listOf("Ann", "Bob")).first)
        }
    }

    private suspend fun watches() = Rummikub(target).use { client ->
        val id = join(client, listOf("Ann")).first.gameId
        val request = WatchGameRequest.newBuilder().setGameId(id).build()
        coroutineScope {
            val watches = List(WATCHES) { client.watch(request).produceIn(this) }
            for (watch in watches) expectEqual("the first update", watch.receive().snapshot.gameId, id)
            expectEqual("the game", read(client, id).gameId, id)
            watches.forEach { it.cancel() }
        }
    }
}

fun main(arguments: Array<String>): Unit = exitProcess(KotlinConformance(arguments).run())
